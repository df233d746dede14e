//go:build cluster

package queue

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Handlers that take longer than AckWait get every task once: what waits stays
// at the broker, and what is worked on is kept alive.
func TestSlowHandlersGetNothingTwice(t *testing.T) {
	t.Parallel()                                           // it waits most of the time
	const ackWait, chunks, workers = 2 * time.Second, 6, 3 // a third of which a busy machine may be late
	ctx := testContext(t)
	c := setUp(t, Limits{AckWait: ackWait})
	for chunk := range int64(chunks) {
		publish(t, c, Normal, chunk)
	}
	tasks := tasksOf(t, c, Lanes()...)
	var mu sync.Mutex
	seen := make(map[int64]int)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for range chunks / workers {
				d, err := tasks.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[d.ID.Chunk]++
				mu.Unlock()
				<-time.After(ackWait * 3 / 2) // the work
				if err := d.DoubleAck(ctx); err != nil || d.Delivered != 1 {
					t.Errorf("chunk %d, delivery %d: %v", d.ID.Chunk, d.Delivered, err)
				}
			}
		})
	}
	running.Wait()
	if len(seen) != chunks {
		t.Errorf("got %v, want each of %d chunks once", seen, chunks)
	}
	if n := stored(t, c, tasksStream); n != 0 {
		t.Errorf("%d tasks left", n)
	}
}

// TestSetupIsAskedAgain: what the servers of a young cluster do not answer is asked again.
func TestSetupIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, ServerOptions{Listen: "127.0.0.1:0"})
	var lost atomic.Bool
	url := detour(t, s, func(b []byte) ([]byte, error) {
		if bytes.Contains(b, []byte("CONSUMER.CREATE")) && lost.CompareAndSwap(false, true) {
			return nil, nil
		}
		return b, nil
	}, passed)
	ok(t, connect(t, Options{URL: url}).Setup(testContext(t), Limits{}))
	if !lost.Load() {
		t.Error("nothing was lost")
	}
}
