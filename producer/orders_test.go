package producer

import (
	"errors"
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
