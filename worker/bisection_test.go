//go:build cluster

package worker

import (
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Boards that kill worker processes are found: they alone are rejects, the
// chunks around are untouched, and the worker that finds them lives on.
func TestPoison(t *testing.T) {
	for name, poisons := range map[string][]uint16{
		"out of memory": {killed},
		"exit":          {exits, exits},
		"all kinds":     {killed, exits, fatal, panics},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t, queue.ServerOptions{Listen: "127.0.0.1:0"}, queue.Limits{AckWait: time.Second})
			spec := testSpec(t, "plus", puzzle.Zero)
			b.create("j", spec)
			wanted := map[wire.ID]*wire.Result{}
			for chunk, p := range [][]uint16{nil, poisons, nil} {
				task, rows := poisoned(int64(chunk), p...)
				b.publish(task)
				wanted[task.ID] = want(t, spec, task, rows)
			}
			dies, _ := b.process()
			if err := dies.Wait(); err == nil {
				t.Error("the first worker survives")
			}
			lives, stop := b.process()
			for _, got := range b.results("j", 3) {
				clean(got)
				clean(wanted[got.ID])
				compare(t, got, wanted[got.ID])
			}
			ok(t, stop.Close())
			ok(t, lives.Wait())
			b.noTasks()
		})
	}
}

// Generated boards that kill worker processes are found like others.
func TestGeneratedPoison(t *testing.T) {
	spec, task, chunk := generatedTask(t, 0b1111_0000_0000, 100)
	rows := &puzzle.Chunk{First: chunk.First, Spans: chunk.Spans}
	for i, board := range chunk.Runs {
		if poison := board.Masks[1]; poison > 0 && poison <= panics {
			rows.Rejects = append(rows.Rejects, puzzle.Reject{
				Index: chunk.First + int64(i), Reason: puzzle.WorkerFailed, Detail: details[poison], Raw: board.AppendText(nil, 0),
			})
		} else if poison != terminate {
			rows.Runs = append(rows.Runs, board)
		}
	}
	keep := 5 * 16 // boards before those that a stop would put back
	task.Chunk.Generated, task.Chunk.Spans = keep, []puzzle.Span{{Records: keep}}
	rows.Spans, rows.Runs = task.Chunk.Spans, rows.Runs[:16]
	b := newBroker(t, queue.ServerOptions{Listen: "127.0.0.1:0"}, queue.Limits{AckWait: time.Second})
	b.create("j", spec)
	b.publish(task)
	wanted := want(t, spec, task, rows)
	dies, _ := b.process()
	if err := dies.Wait(); err == nil {
		t.Error("the first worker survives")
	}
	lives, stop := b.process()
	got := b.results("j", 1)[0]
	clean(got)
	clean(wanted)
	compare(t, got, wanted)
	ok(t, stop.Close())
	ok(t, lives.Wait())
	b.noTasks()
}
