package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// contrary is the worker and the aggregator of some jobs, as unlucky as can be:
// of all tasks that there are it solves those first that complete no part, and
// every result is as large as the broker takes.
type contrary struct {
	t      *testing.T
	ctx    context.Context
	conn   *queue.Conn
	tasks  *queue.Tasks
	held   []*queue.Delivery
	solved map[string]map[int64]*wire.Task // by job and chunk
	parts  map[string][]wire.Part          // committed
}

// gather takes all tasks that come.
func (w *contrary) gather() {
	for {
		ctx, cancel := context.WithTimeout(w.ctx, quiet)
		d, err := w.tasks.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		ok(w.t, err)
		w.held = append(w.held, d)
	}
}

// solve answers one task; it returns false where there is none.
func (w *contrary) solve(partChunks int64) bool {
	w.t.Helper()
	if w.gather(); len(w.held) == 0 {
		return false
	}
	slices.SortFunc(w.held, func(a, b *queue.Delivery) int {
		if first, second := a.ID.Chunk%partChunks, b.ID.Chunk%partChunks; first != second {
			return int(first - second)
		}
		return int(a.ID.Chunk - b.ID.Chunk)
	})
	d := w.held[len(w.held)-1]
	w.held = w.held[:len(w.held)-1]
	task := new(wire.Task)
	err := d.Parse(task)
	ok(w.t, err)
	ok(w.t, w.conn.PublishResult(w.ctx, task.ID, make([]byte, w.conn.MaxData())))
	ok(w.t, d.DoubleAck(w.ctx))
	job, number := task.ID.Job, task.ID.Part
	if w.solved[job] == nil {
		w.solved[job] = map[int64]*wire.Task{}
	}
	w.solved[job][task.ID.Chunk] = task
	var all []*wire.Task
	for chunk := number * partChunks; chunk < (number+1)*partChunks; chunk++ {
		if task := w.solved[job][chunk]; task != nil {
			all = append(all, task)
		}
	}
	if len(all) == int(partChunks) {
		w.parts[job] = append(w.parts[job], part(number, all...))
		slices.SortFunc(w.parts[job], func(a, b wire.Part) int { return int(a.Number - b.Number) })
		writeLedger(w.t, w.ctx, w.conn, job, &wire.Ledger{State: wire.Open, Parts: w.parts[job]})
		ok(w.t, w.conn.PurgePart(w.ctx, job, number))
	}
	return true
}

// committed counts the parts of all jobs.
func (w *contrary) committed() (n int) {
	for _, parts := range w.parts {
		n += len(parts)
	}
	return n
}

// Jobs whose windows are far larger than the log of results come to their ends,
// however contrary the order of the results, alone and side by side. Without a
// look at the room they would fill the log with parts of which none is whole.
func TestWindowsBeyondTheLog(t *testing.T) {
	const parts, partChunks = 4, 2
	for _, jobs := range []int{1, 3} {
		t.Run(fmt.Sprint(jobs, " jobs"), func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			// Half of it holds a part of each job.
			conn := broker(t, queue.Limits{ResultBytes: int64(2*jobs*partChunks) * queue.MostResult})
			tasks, err := conn.Tasks(ctx, queue.Lanes()...)
			ok(t, err)
			defer tasks.Close()
			w := &contrary{t: t, ctx: ctx, conn: conn, tasks: tasks, solved: map[string]map[int64]*wire.Task{}, parts: map[string][]wire.Part{}}
			spec := testSpec(t)
			spec.PartChunks = partChunks
			ended := make(chan error, jobs)
			for n := range jobs {
				job := fmt.Sprint("job-", n)
				writeLedger(t, ctx, conn, job, &wire.Ledger{State: wire.Open})
				text := testCorpus(uint64(n), parts*partChunks*chunkRecords)
				go func() {
					ended <- Run(ctx, conn, open(t, text), Options{Job: job, Spec: spec, Window: 64})
				}()
			}
			for done := 0; done < jobs || w.committed() < jobs*parts; {
				ok(t, ctx.Err())
				select {
				case err := <-ended:
					ok(t, err)
					done++
				default:
					w.solve(partChunks)
				}
			}
			for n := range jobs {
				if got := len(w.parts[fmt.Sprint("job-", n)]); got != parts {
					t.Errorf("job %d has %d parts, want %d", n, got, parts)
				}
			}
		})
	}
}

// A job of which one part might not fit into the log is refused.
func TestPartBeyondTheLog(t *testing.T) {
	ctx := testContext(t)
	spec := testSpec(t)
	conn := broker(t, queue.Limits{ResultBytes: int64(spec.PartChunks)*queue.MostResult - 1})
	writeLedger(t, ctx, conn, "j", &wire.Ledger{State: wire.Open})
	if err := Run(ctx, conn, open(t, []byte("0\n")), Options{Job: "j", Spec: spec, Window: 1}); !errors.Is(err, ErrNoRoom) {
		t.Errorf("got error %v", err)
	}
}
