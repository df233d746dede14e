package worker

import (
	"context"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// noAnswer is all that is known of a task that comes again, if nobody said more.
const noAnswer = "delivered again: a worker was stopped, or cut off, or died with it"

// tellAgain writes down that a task comes again, unless who had it said why.
func (w *worker) tellAgain(ctx context.Context, d *queue.Delivery) {
	known, err := w.conn.Trouble(ctx, d.ID.Job)
	if err == nil && known != nil && known.Chunk == d.ID.Chunk && known.Delivered == int64(d.Delivered)-1 {
		return
	}
	w.tell(ctx, d, noAnswer)
}

// tell writes down what went wrong with a task, for people who ask what the job
// waits for. Nothing depends on it, so it may fail.
func (w *worker) tell(ctx context.Context, d *queue.Delivery, message string) {
	err := w.conn.PutTrouble(ctx, d.ID.Job, &wire.Trouble{Chunk: d.ID.Chunk, Delivered: int64(d.Delivered), Message: message})
	if err != nil {
		w.log.Debug("trouble not written down", "job", d.ID.Job, "chunk", d.ID.Chunk, "error", err)
	}
}
