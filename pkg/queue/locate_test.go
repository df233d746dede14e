package queue

import (
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
)

// A chunk is followed from the queue through a worker's hands, back, and to its
// result; those of other jobs are not seen.
func TestLocate(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	before := time.Now().Add(-time.Second)
	at := func(want map[int64]string) {
		t.Helper()
		places, err := c.Locate(ctx, "j")
		ok(t, err)
		if len(places) != len(want) {
			t.Errorf("got %+v, want %v", places, want)
		}
		for chunk, where := range want {
			p := places[chunk]
			if p.Where != where || p.Since.Before(before) || p.Since.After(time.Now().Add(time.Second)) {
				t.Errorf("chunk %d: got %+v, want %s", chunk, p, where)
			}
			if (p.Lane == Low) != (where != Solved) {
				t.Errorf("chunk %d in lane %q", chunk, p.Lane)
			}
		}
	}
	at(nil)
	p := c.Publisher(Low, 1<<20)
	for chunk := range int64(3) {
		for _, job := range []string{"j", "j-2"} {
			ok(t, p.Publish(ctx, wire.ID{Job: job, Chunk: chunk}, []byte("task")))
			ok(t, p.Flush(ctx))
		}
	}
	at(map[int64]string{0: Queued, 1: Queued, 2: Queued})
	tasks, err := c.Tasks(ctx, Lanes()...)
	ok(t, err)
	defer tasks.Close()
	first, err := tasks.Next(ctx)
	ok(t, err)
	at(map[int64]string{0: Taken, 1: Queued, 2: Queued})
	ok(t, c.PublishResult(ctx, wire.ID{Job: "j"}, []byte("result")))
	ok(t, c.PublishResult(ctx, wire.ID{Job: "j-2", Chunk: 7}, []byte("result")))
	at(map[int64]string{0: Solved, 1: Queued, 2: Queued})
	ok(t, first.DoubleAck(ctx))
	at(map[int64]string{0: Solved, 1: Queued, 2: Queued})
	second, err := tasks.Next(ctx)
	ok(t, err)
	third, err := tasks.Next(ctx)
	ok(t, err)
	ok(t, second.DoubleAck(ctx)) // of j-2
	ok(t, third.NakWithDelay(time.Hour))
	at(map[int64]string{0: Solved, 1: Taken, 2: Queued})
	ok(t, c.PurgePart(ctx, "j", 0))
	at(map[int64]string{1: Taken, 2: Queued})
	ok(t, c.js.DeleteStream(ctx, tasksStream))
	at(nil)
	if _, err := c.Locate(ctx, "*"); err == nil {
		t.Error("jobs are located by a pattern")
	}
}
