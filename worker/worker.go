// Package worker takes tasks from the queue, solves and checks their boards,
// and sends back each chunk as a finished Parquet row group.
//
// A worker keeps nothing between tasks that another could not rebuild. It has
// slots; each slot solves one chunk at a time.
//
//	err := worker.Run(fetch, work, conn, worker.Options{Slots: runtime.GOMAXPROCS(0)})
//
// Invariants:
//   - A task is acknowledged only after the broker has stored its result, so a
//     crash at any point costs a second solving, never a chunk.
//   - A solution leaves the worker only after it was applied to its board by
//     the definition of the rule. A wrong one fails the job.
//   - Every task that can be read gets a result, and the job ends. Boards that
//     a worker does not survive are found, and they alone are rejects.
//
// Run returns when all its slots have returned.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/wire"
)

// maxDeliveries is how often a task is tried before its boards become rejects.
// Poisonous boards are found at the second delivery. Workers that are killed or
// stopped for reasons of their own use up some of them too, so there are many.
const maxDeliveries = 20

// retryDelay is the pause before a task that met a passing trouble is tried again.
const retryDelay = time.Second

var (
	errUnknownJob = errors.New("unknown job")
	errCancelled  = errors.New("job cancelled")
)

// maxJobs bounds what a worker remembers of the jobs it has served.
const maxJobs = 16

// Options tunes a worker. Slots is required.
type Options struct {
	Slots int          // chunks solved at once
	Child []string     // command that calls Child, for tasks that may have killed a worker; nil: they are solved like others
	Ready func()       // told when tasks can be taken; may be nil
	Log   *slog.Logger // nil means no logs

	Metrics *Metrics // nil means none

	trap func(*puzzle.Chunk) // for tests: boards that kill a worker
}

// Run serves tasks until fetch ends, then finishes what it holds. When work
// ends, what it holds goes back to the queue instead; a chunk that is being
// solved holds Run up until then.
func Run(fetch, work context.Context, conn *queue.Conn, opts Options) error {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Metrics == nil {
		opts.Metrics = NewMetrics(nil)
	}
	tasks, err := conn.Tasks(fetch, queue.Lanes()...)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer tasks.Close()
	if opts.Ready != nil {
		opts.Ready()
	}
	w := &worker{conn: conn, tasks: tasks, opts: opts, log: opts.Log, jobs: map[string]*job{}}
	slots, fetch := errgroup.WithContext(fetch)
	for range opts.Slots {
		slots.Go(func() error { return w.serve(fetch, work, &slot{log: w.log, trap: opts.trap}) })
	}
	if err := slots.Wait(); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// worker is what the slots share.
type worker struct {
	conn  *queue.Conn
	tasks *queue.Tasks
	opts  Options
	log   *slog.Logger

	mu   sync.Mutex
	jobs map[string]*job // by id; at most maxJobs
}

// job is what a worker knows of a job; it never changes.
type job struct {
	id      string
	spec    puzzle.Spec
	solvers *solver.Set
}

func (w *worker) serve(fetch, work context.Context, s *slot) error {
	for fetch.Err() == nil {
		d, err := w.tasks.Next(fetch)
		switch {
		case fetch.Err() != nil && d != nil:
			return d.NakWithDelay(0)
		case fetch.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := w.handle(work, s, d); err != nil {
			return err
		}
	}
	return nil
}

// handle settles one delivery: the one place that decides what an error means.
// It returns an error only if the worker cannot go on.
func (w *worker) handle(ctx context.Context, s *slot, d *queue.Delivery) error {
	log := w.log.With("job", d.ID.Job, "chunk", d.ID.Chunk)
	start := time.Now()
	w.opts.Metrics.taken(d.Delivered)
	defer w.opts.Metrics.held.Dec()
	err := w.process(ctx, s, d)
	if err != nil {
		w.opts.Metrics.returned.Inc()
	}
	switch {
	case err == nil:
		log.Debug("chunk solved", "seconds", time.Since(start).Seconds())
		return nil
	case ctx.Err() != nil:
		return d.NakWithDelay(0)
	case errors.Is(err, errCancelled):
		log.Debug("task of a cancelled job dropped")
		return d.Term("job cancelled")
	case errors.Is(err, errUnknownJob): // nobody wants the result
		log.Warn("task of an unknown job dropped", "error", err)
		return d.Term("unknown job")
	case errors.Is(err, queue.ErrDenied), errors.Is(err, queue.ErrClosed), errors.Is(err, queue.ErrNotFound):
		// Not this task but the broker is not as it must be, such as without a stream.
		return errors.Join(err, d.NakWithDelay(retryDelay))
	}
	log.Warn("chunk put back", "delivered", d.Delivered, "error", err)
	w.tell(ctx, d, err.Error())
	return d.NakWithDelay(retryDelay)
}

// process solves the chunk, stores its result, and acknowledges the task.
func (w *worker) process(ctx context.Context, s *slot, d *queue.Delivery) error {
	j, err := w.job(ctx, d.ID.Job)
	if err != nil {
		return err
	}
	order, err := w.conn.Order(ctx, d.ID.Job)
	if err != nil {
		return err
	}
	if order == wire.Cancel {
		return errCancelled
	}
	if d.Delivered > 1 {
		w.tellAgain(ctx, d)
	}
	start := time.Now()
	result, err := w.result(ctx, s, j, d)
	if err != nil {
		return err
	}
	took := time.Since(start)
	if result.Failure != "" {
		w.log.Error("chunk failed", "job", d.ID.Job, "chunk", d.ID.Chunk, "part", result.ID.Part, "error", result.Failure)
	}
	err = w.send(ctx, s, result)
	if errors.Is(err, queue.ErrTooLarge) {
		err = w.send(ctx, s, failed(result.ID, err))
	}
	if err != nil {
		return err
	}
	w.opts.Metrics.stored(result, took)
	return d.DoubleAck(ctx)
}

// result answers a delivery, whatever is in it.
func (w *worker) result(ctx context.Context, s *slot, j *job, d *queue.Delivery) (*wire.Result, error) {
	task, err := d.Parse()
	switch {
	case err != nil: // the records are lost: only driving the job again can help
		id := d.ID
		id.Part = id.Chunk / int64(j.spec.PartChunks)
		return failed(id, err), nil
	case d.Delivered > maxDeliveries:
		return s.giveUp(j, task, fmt.Sprintf("delivered %d times without an answer", d.Delivered-1)), nil
	case d.Delivered > 1 && w.opts.Child != nil:
		return w.isolate(ctx, j, task)
	}
	return s.answer(j, task), nil
}

func (w *worker) send(ctx context.Context, s *slot, result *wire.Result) (err error) {
	if s.message, err = wire.AppendResult(s.message[:0], result); err != nil {
		return err
	}
	return w.conn.PublishResult(ctx, result.ID, s.message)
}

// job returns what is known of a job, asking the broker when it is new.
func (w *worker) job(ctx context.Context, id string) (*job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j := w.jobs[id]; j != nil {
		return j, nil
	}
	record, err := w.conn.Job(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", errUnknownJob, err)
	}
	if err != nil {
		return nil, err
	}
	if len(w.jobs) >= maxJobs {
		clear(w.jobs)
	}
	j := jobOf(record)
	w.jobs[id] = j
	return j, nil
}
