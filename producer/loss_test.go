package producer

import (
	"errors"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// A drive that waits for its window ends when what it waits for is gone, and not
// while a worker is long about it.
func TestLost(t *testing.T) {
	t.Parallel()
	j := drive(t, broker(t, queue.Limits{}), open(t, testCorpus(1, 4*chunkRecords)), testSpec(t))
	j.ledger(2)
	var held []*queue.Delivery
	for range 2 {
		d, err := j.tasks.Next(j.ctx)
		ok(t, err)
		held = append(held, d)
	}
	for range 3 {
		j.write(&wire.Ledger{State: wire.Open})
		select {
		case err := <-j.ended:
			t.Fatalf("the drive ended with %v, though both tasks are with a worker", err)
		case <-time.After(quiet):
		}
	}
	ok(t, held[1].DoubleAck(j.ctx)) // and there is no result
	j.write(&wire.Ledger{State: wire.Open})
	if err := j.end(); !errors.Is(err, protocol.ErrLost) {
		t.Errorf("the drive ended with %v, want %v", err, protocol.ErrLost)
	}
	if j.totals() != nil {
		t.Error("the job is sealed")
	}
}

// TestStreamGone: the stream of tasks is gone when the producer looks for room, and not
// when it rests. That is a loss as well, after which the corpus can be driven again.
func TestStreamGone(t *testing.T) {
	t.Parallel()
	conn := broker(t, queue.Limits{})
	j := drive(t, conn, open(t, testCorpus(1, chunkRecords)), testSpec(t))
	ok(t, conn.DropTasks(j.ctx))
	j.ledger(2) // for which it has waited
	err := j.end()
	if !errors.Is(err, protocol.ErrLost) {
		t.Errorf("the drive ended with %v, want %v", err, protocol.ErrLost)
	}
}
