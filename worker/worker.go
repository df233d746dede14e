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

	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/solver"
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
// ends, what it holds goes back to the queue instead.
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

	generator func() (*generate.Generator, error) // makes it once, where the boards are generated
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
