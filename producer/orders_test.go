package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// While a job is paused nothing is handed over, whatever the window allows, and
// nothing is lost by it.
func TestPause(t *testing.T) {
	j := drive(t, broker(t, queue.Limits{}), open(t, testCorpus(1, 4*chunkRecords)), testSpec(t))
	j.ledger(2)
	tasks := j.take(2)
	ok(t, j.conn.PutOrder(j.ctx, "j", wire.Pause))
	j.ledger(4, part(0, tasks...))
	j.limit.Store(2 * chunkRecords)
	j.nothing()
	j.limit.Store(4 * chunkRecords)
	ok(t, j.conn.PutOrder(j.ctx, "j", wire.Proceed))
	for i, task := range j.take(2) {
		if task.ID.Chunk != int64(2+i) {
			t.Errorf("got chunk %d, want %d", task.ID.Chunk, 2+i)
		}
	}
	ok(t, j.end())
	if j.totals() == nil {
		t.Error("the job is not sealed")
	}
}

// A cancelled job is not driven any further, whatever the drive waits for, and
// not again. There need not be an aggregator for that.
func TestCancelled(t *testing.T) {
	roomy := testSpec(t)
	roomy.PartChunks = 100
	for name, test := range map[string]struct {
		spec   puzzle.Spec
		limits queue.Limits
		wait   func(j *job)
	}{
		"for a ledger":     {testSpec(t), queue.Limits{}, func(j *job) { j.nothing() }},
		"for the window":   {testSpec(t), queue.Limits{}, func(j *job) { j.ledger(2); j.take(2); j.nothing() }},
		"for a full queue": {roomy, queue.Limits{TaskBytes: 256 << 10}, func(j *job) { j.ledger(5); j.take(1) }}, // room for one
	} {
		t.Run(name, func(t *testing.T) {
			conn := broker(t, test.limits)
			j := drive(t, conn, open(t, testCorpus(1, 5*chunkRecords)), test.spec)
			test.wait(j)
			ok(t, conn.PutOrder(j.ctx, "j", wire.Cancel))
			cancelled := func(err error) {
				t.Helper()
				if !errors.Is(err, ErrJobFailed) || !strings.Contains(err.Error(), "cancelled") {
					t.Errorf("got error %v", err)
				}
			}
			cancelled(j.end())
			cancelled(drive(t, conn, open(t, testCorpus(1, 10)), test.spec).end())
			if j.totals() != nil {
				t.Error("the job is sealed")
			}
		})
	}
}

// A drive publishes what the broker lacks: neither the task that is queued, nor
// the one in a worker's hands, nor the one that has a result, but the one that is
// lost, and what was never handed over.
func TestOnlyMissing(t *testing.T) {
	conn, text := broker(t, queue.Limits{}), testCorpus(1, 5*chunkRecords)
	first := drive(t, conn, open(t, text), testSpec(t)) // of which the window is one part of two chunks
	first.ledger(2)
	tasks := first.take(2)
	ok(t, conn.PublishResult(testContext(t), tasks[0].ID, []byte("result"))) // and the other is lost
	first.ledger(4, part(0, tasks...))
	held, err := first.tasks.Next(testContext(t))
	ok(t, err)
	other, err := first.tasks.Next(testContext(t)) // then both are stored
	ok(t, err)
	ok(t, other.NakWithDelay(0))
	first.tasks.Close() // what else it has asked for is queued again
	first.cancel()
	if err := <-first.ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	writeLedger(t, testContext(t), conn, "j", &wire.Ledger{State: wire.Open}) // of which nothing is committed after all
	again := driveWithin(t, conn, open(t, text), testSpec(t), 2)
	lost := again.take(2)
	ids := []string{lost[0].ID.String(), lost[1].ID.String()}
	if left := 5 - held.ID.Chunk; !slices.Equal(ids, []string{"j/1/2", fmt.Sprintf("j/%d/1", left)}) {
		t.Errorf("got the tasks %v, the first drive's task %d is held", ids, held.ID.Chunk)
	}
	again.ledger(5, part(0, tasks...), part(1, wireTasks(t, text)[2:4]...))
	if id := again.take(1)[0].ID.String(); id != "j/4/2" {
		t.Errorf("got the task %s", id)
	}
	ok(t, again.end())
	ok(t, held.NakWithDelay(0))
}

// wireTasks returns the chunks of a corpus as tasks.
func wireTasks(t testing.TB, text []byte) (tasks []*wire.Task) {
	t.Helper()
	for _, c := range split(testSpec(t), readAll(t, open(t, text))) {
		tasks = append(tasks, &wire.Task{Chunk: *c})
	}
	return tasks
}
