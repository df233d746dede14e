package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// retryDelay is the pause before a task that met a passing trouble is tried again.
const retryDelay = time.Second

var (
	errUnknownJob = errors.New("unknown job")
	errCancelled  = errors.New("job cancelled")
	errUnreadable = errors.New("task cannot be read")
)

// errand is a delivery that a slot has in hand.
type errand struct {
	*queue.Delivery
	slot   *slot
	log    *slog.Logger
	job    *job
	result *wire.Result
	took   time.Duration // to make the result
	cause  error         // of the last step, nil if it went well
}

// handle carries a delivery through to its end. It returns an error only if the
// worker cannot go on.
func (w *worker) handle(ctx context.Context, s *slot, d *queue.Delivery) error {
	e := &errand{Delivery: d, slot: s, log: w.log.With("job", d.ID.Job, "chunk", d.ID.Chunk)}
	w.opts.Metrics.taken(d.Delivered)
	defer w.opts.Metrics.held.Dec()
	h := protocol.NewHandling(d.Delivered, w.opts.Child != nil)
	for {
		step := h.Next()
		switch step {
		case protocol.Rest:
			return nil
		case protocol.Drop, protocol.Return, protocol.Delay, protocol.Leave:
			w.opts.Metrics.returned.Inc()
			return w.putDown(ctx, e, step)
		}
		e.cause = w.carryOut(ctx, e, step)
		h.Did(outcome(ctx, e.cause))
	}
}

// outcome is the one place that decides what an error means.
func outcome(ctx context.Context, err error) protocol.Outcome {
	switch {
	case err == nil:
		return protocol.Done
	case ctx.Err() != nil:
		return protocol.Stopped
	case errors.Is(err, errCancelled), errors.Is(err, errUnknownJob):
		return protocol.Unwanted
	case errors.Is(err, errUnreadable):
		return protocol.Unreadable
	case errors.Is(err, queue.ErrTooLarge):
		return protocol.TooLarge
	case errors.Is(err, queue.ErrDenied), errors.Is(err, queue.ErrClosed), errors.Is(err, queue.ErrNotFound): // such as without a stream
		return protocol.Broken
	}
	return protocol.Trouble
}

// carryOut does a step on the way to the answer and its acknowledgement.
func (w *worker) carryOut(ctx context.Context, e *errand, step protocol.Step) error {
	switch step {
	case protocol.LookUp:
		return w.lookUp(ctx, e)
	case protocol.Solve, protocol.Isolate, protocol.GiveUp:
		return w.answer(ctx, e, step)
	case protocol.Refuse:
		id := e.ID
		if id.Part = id.Chunk / int64(e.job.spec.PartChunks); e.result != nil {
			id = e.result.ID
		}
		e.result = failed(id, e.cause)
		return nil
	case protocol.Store:
		return w.store(ctx, e)
	case protocol.Ack:
		if err := e.DoubleAck(ctx); err != nil {
			return err
		}
		e.log.Debug("chunk solved", "seconds", e.took.Seconds())
		return nil
	}
	panic("BUG: a step of no worker: " + step.String())
}

// lookUp finds out whether somebody wants the answer.
func (w *worker) lookUp(ctx context.Context, e *errand) (err error) {
	if e.job, err = w.job(ctx, e.ID.Job); err != nil {
		return err
	}
	order, err := w.conn.Order(ctx, e.ID.Job)
	if err != nil {
		return err
	}
	if order == wire.Cancel {
		return errCancelled
	}
	if e.Delivered > 1 {
		w.tellAgain(ctx, e.Delivery)
	}
	return nil
}

// answer makes the result, unless the job is cancelled meanwhile.
func (w *worker) answer(ctx context.Context, e *errand, step protocol.Step) error {
	start := time.Now()
	task := &e.slot.task
	err := e.Parse(task)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	e.log = w.log.With("job", e.ID.Job, "chunk", e.ID.Chunk, "part", task.ID.Part) // of which the subject says nothing
	ctx, done := w.whileWanted(ctx, e.ID.Job)
	defer done()
	switch step {
	case protocol.GiveUp:
		e.result = e.slot.giveUp(e.job, task, fmt.Sprintf("delivered %d times without an answer", e.Delivered-1))
	case protocol.Isolate:
		e.result, err = w.isolate(ctx, e.job, task)
	default:
		e.slot.stop = ctx.Done()
		e.result = e.slot.answer(e.job, task)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	e.took = time.Since(start)
	return nil
}

// orderInterval is how often somebody who is long about a chunk looks whether it is
// still wanted. Most chunks are done before that.
const orderInterval = time.Second

// whileWanted returns a context that ends when the job is cancelled, with errCancelled
// as its cause. Call done at the end.
func (w *worker) whileWanted(ctx context.Context, job string) (wanted context.Context, done func()) {
	wanted, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(orderInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-wanted.Done():
				return
			}
			// Without an answer the work goes on: whoever has trouble with the broker
			// will have it when the result is to be stored.
			if order, err := w.conn.Order(wanted, job); err == nil && order == wire.Cancel {
				cancel(errCancelled)
			}
		}
	})
	return wanted, func() {
		cancel(nil)
		looking.Wait()
	}
}

// store returns when the broker has the result.
func (w *worker) store(ctx context.Context, e *errand) (err error) {
	if e.result.Failure != "" {
		e.log.Error("chunk failed", "part", e.result.ID.Part, "error", e.result.Failure)
	}
	s := e.slot
	if s.message, err = wire.AppendResult(s.message[:0], e.result); err != nil {
		return err
	}
	if err := w.conn.PublishResult(ctx, e.result.ID, s.message); err != nil {
		return err
	}
	w.opts.Metrics.stored(e.result, e.took)
	return nil
}

// putDown settles a delivery without an answer.
func (w *worker) putDown(ctx context.Context, e *errand, step protocol.Step) error {
	switch step {
	case protocol.Drop:
		if errors.Is(e.cause, errCancelled) {
			e.log.Debug("task of a cancelled job dropped")
			return e.Term("job cancelled")
		}
		e.log.Warn("task of an unknown job dropped", "error", e.cause)
		return e.Term("unknown job")
	case protocol.Return:
		return e.NakWithDelay(0)
	case protocol.Leave:
		return errors.Join(e.cause, e.NakWithDelay(retryDelay))
	}
	e.log.Warn("chunk put back", "delivered", e.Delivered, "error", e.cause)
	w.tell(ctx, e.Delivery, e.cause.Error(), retryDelay)
	return e.NakWithDelay(retryDelay)
}
