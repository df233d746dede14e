package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// generatedTask returns a spec that generates all boards of trapSize, the task of
// some of them, and the chunk that has their boards. It counts by itself.
func generatedTask(t *testing.T, first int64, count int) (puzzle.Spec, *wire.Task, *puzzle.Chunk) {
	t.Helper()
	spec := testSpec(t, "plus", puzzle.Zero)
	spec.Generate, spec.Size = puzzle.Generate{Kind: puzzle.GenerateAll}, trapSize()
	spans := []puzzle.Span{{Records: count}}
	task := &wire.Task{ID: wire.ID{Job: "j", Chunk: 2, Part: 1, Epoch: 1}, Chunk: puzzle.Chunk{First: first, Generated: count, Spans: spans}}
	chunk := &puzzle.Chunk{First: first, Spans: spans}
	for i := range count {
		board, err := puzzle.ParseText(spec.Size, fmt.Sprintf("%012b", first+int64(i)))
		ok(t, err)
		chunk.Runs = append(chunk.Runs, board)
	}
	return spec, task, chunk
}

// The rows of generated boards are those of the same boards in a task.
func TestGenerated(t *testing.T) {
	spec, task, chunk := generatedTask(t, 4000, 96)
	s, j := quietSlot(), newJob("j", spec)
	got := s.answer(j, task)
	compare(t, got, want(t, spec, task, chunk))
	if got.Digest == chunk.Digest() {
		t.Error("the digest depends on boards that the producer does not make")
	}
	given := s.giveUp(j, task, "why")
	if given.Boards != 0 || given.Rejected != 96 || given.Digest != got.Digest {
		t.Errorf("given up: %d boards and %d rejects of another digest", given.Boards, given.Rejected)
	}
	task.Chunk.First++ // one too many
	if got := s.answer(j, task); !strings.Contains(got.Failure, "there are 4096") {
		t.Errorf("boards that do not exist: failure %q", got.Failure)
	}
}

// A worker survives a generator that panics: the answer fails the job.
func TestGeneratorPanics(t *testing.T) {
	_, task, _ := generatedTask(t, 0, 1)
	j := &job{id: "j", generator: func() (*generate.Generator, error) { panic("a bug") }}
	s := quietSlot()
	for _, got := range []*wire.Result{s.answer(j, task), s.giveUp(j, task, "why")} {
		if !strings.Contains(got.Failure, "generate boards: the worker panicked: a bug") {
			t.Errorf("failure %q", got.Failure)
		}
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
