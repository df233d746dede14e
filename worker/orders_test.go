package worker

import (
	"fmt"
	"sync"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// The tasks of a cancelled job are dropped, those of a paused one are finished.
func TestOrders(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	for id, order := range map[string]wire.Order{"cancelled": wire.Cancel, "paused": wire.Pause} {
		b.create(id, testSpec(t, "plus", puzzle.Zero))
		ok(t, b.conn.PutOrder(testContext(t), id, order))
	}
	b.publish(testTask(1, "cancelled", 0), testTask(2, "paused", 0), testTask(3, "cancelled", 1))
	w := b.work(1)
	if got := b.results("paused", 1)[0]; got.ID.Job != "paused" {
		t.Errorf("got a result of job %s", got.ID.Job)
	}
	b.await("task of a cancelled job dropped")
	b.await("task of a cancelled job dropped")
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// Work on a chunk ends when its job is cancelled, in the middle of a board, and also
// where a child process does it: nobody would live to see the end of this one.
func TestCancelledInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, isolated := range []bool{false, true} {
		t.Run(fmt.Sprint("isolated ", isolated), func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
			endless, spec := testSpec(t, "king-torus", puzzle.Zero), testSpec(t, "plus", puzzle.Zero)
			endless.SearchLimit = 1 << 50
			b.create("endless", endless)
			b.create("j", spec)
			task := &wire.Task{ID: wire.ID{Job: "endless", Epoch: 1}}
			board := puzzle.NewRun(puzzle.Size{Rows: 12, Cols: 12}, 1) // 2^44 solutions
			task.Chunk = puzzle.Chunk{Spans: []puzzle.Span{{Records: 1}}, Runs: []puzzle.Run{board}}
			b.publish(task)
			solving := make(chan struct{})
			once := sync.OnceFunc(func() { close(solving) })
			opts := Options{Slots: 1, trap: func(*puzzle.Chunk) { once() }}
			if isolated {
				opts = Options{Slots: 1, Child: childCommand()}
				d, err := b.tasks().Next(testContext(t)) // a first delivery, as if of a worker that died
				ok(t, err)
				ok(t, d.NakWithDelay(0))
			}
			w := b.workWith(opts)
			if isolated {
				b.toldAgain("endless")
			} else {
				<-solving
			}
			ok(t, b.conn.PutOrder(testContext(t), "endless", wire.Cancel))
			b.await("task of a cancelled job dropped")
			b.publish(testTask(1, "j", 0))
			b.results("j", 1)
			w.drain()
			ok(t, <-w.ended)
			b.noTasks()
		})
	}
}

// toldAgain waits until a worker has looked up what a second delivery is about.
func (b *broker) toldAgain(id string) {
	b.t.Helper()
	for s, err := range b.conn.WatchStanding(testContext(b.t), id) {
		ok(b.t, err)
		if len(s.Troubles.Latest) > 0 {
			return
		}
	}
}
