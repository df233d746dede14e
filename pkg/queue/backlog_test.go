package queue

import (
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
)

// TestBacklog counts what waits, in any lane and of any job.
func TestBacklog(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{AckWait: time.Hour})
	// A consumer hears of a message after the one who sent it: what is counted comes
	// to be right, or the test's time is up.
	expect := func(queued, taken, results int64) {
		t.Helper()
		for {
			b, err := c.Backlog(ctx)
			if err != nil {
				t.Fatalf("last %+v, want %d queued, %d taken, %d results: %v", b, queued, taken, results, err)
			}
			if b.Queued == queued && b.Taken == taken && b.Results == results && b.Bytes > 0 == (results > 0) {
				return
			}
		}
	}
	expect(0, 0, 0)
	for i, lane := range Lanes() {
		p := c.Publisher(lane, 1<<20)
		ok(t, p.Publish(ctx, wire.ID{Job: "j", Chunk: int64(i)}, []byte("task")))
		ok(t, p.Flush(ctx))
	}
	expect(3, 0, 0)
	tasks := tasksOf(t, c, High)
	d := next(t, tasks)
	expect(2, 1, 0)
	ok(t, c.PublishResult(ctx, d.ID, []byte("result")))
	ok(t, d.DoubleAck(ctx))
	expect(2, 0, 1)
	asked := make(chan error, 1)
	go func() {
		_, err := tasks.Next(ctx)
		asked <- err
	}()
	for b, err := c.Backlog(ctx); b.Idle != 1; b, err = c.Backlog(ctx) {
		ok(t, err)
	}
	tasks.Close()
	wantError(t, <-asked, errTasksClosed)
	ok(t, c.PurgePart(ctx, "j", 0))
	expect(2, 0, 0)
}
