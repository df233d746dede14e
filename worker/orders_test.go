package worker

import (
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
