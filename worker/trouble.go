package worker

import (
	"context"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// noAnswer is all that is known of a task that comes again, if nobody said more.
const noAnswer = "delivered again: a worker was stopped, or cut off, or died with it"

// tellAgain writes down that a task comes again, and why, if who had it said so.
func (w *worker) tellAgain(ctx context.Context, d *queue.Delivery) {
	message := noAnswer
	if known, err := w.conn.Troubles(ctx, d.ID.Job); err == nil {
		if t := known.Of(d.ID.Chunk); t != nil && t.Delivered == int64(d.Delivered)-1 {
			message = t.Message
		}
	}
	w.tell(ctx, d, message, 0)
}

// tell writes down what went wrong with a task, and after which delay it is tried
// again if it was put back, for people who ask what the job waits for. Nothing
// depends on it, so it may fail.
func (w *worker) tell(ctx context.Context, d *queue.Delivery, message string, delay time.Duration) {
	now := time.Now()
	t := wire.Trouble{Chunk: d.ID.Chunk, Delivered: int64(d.Delivered), Message: message, At: now.UnixMilli()}
	if delay > 0 {
		t.Retry = now.Add(delay).UnixMilli()
	}
	if err := w.conn.PutTrouble(ctx, d.ID.Job, t); err != nil {
		w.log.Debug("trouble not written down", "job", d.ID.Job, "chunk", d.ID.Chunk, "error", err)
	}
}
