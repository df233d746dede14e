package queue

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
)

func TestEnsureLeavesWhatIsThere(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{TaskBytes: 1 << 21, AckWait: time.Minute})
	ok(t, c.js.DeleteStream(ctx, resultsStream))
	ok(t, c.Ensure(ctx, Limits{}))
	s, err := c.js.Stream(ctx, tasksStream)
	ok(t, err)
	lane, err := c.js.Consumer(ctx, tasksStream, string(High))
	ok(t, err)
	if s.CachedInfo().Config.MaxBytes != 1<<21 || lane.CachedInfo().Config.AckWait != time.Minute {
		t.Errorf("the limits were changed: %+v, %+v", s.CachedInfo().Config, lane.CachedInfo().Config)
	}
	ok(t, c.PublishResult(ctx, wire.ID{Job: "j"}, nil)) // its stream is there again
}

// Whoever reads or follows leaves no consumer on the broker, however it ends: it
// allows a stream only so many.
func TestNoConsumerIsLeft(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := setUp(t, Limits{})
	_, err := c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	ok(t, c.PublishResult(ctx, wire.ID{Job: "j"}, nil))
	for _, read := range []func(ctx context.Context){
		func(ctx context.Context) { _, err := c.Standing(ctx, "j"); ok(t, err) },
		func(ctx context.Context) { _, err := c.Standings(ctx); ok(t, err) },
		func(ctx context.Context) { _, err := c.Locate(ctx, "j"); ok(t, err) },
		func(ctx context.Context) {
			for _, err := range c.WatchStanding(ctx, "j") {
				ok(t, err)
				break
			}
		},
		func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			for _, err := range c.Results(ctx, "j") {
				if err != nil {
					wantError(t, err, context.Canceled)
				}
				cancel()
			}
		},
	} {
		for range 100 {
			read(ctx)
		}
	}
	for _, name := range []string{bucketStream, resultsStream} {
		s, err := c.js.Stream(ctx, name)
		ok(t, err)
		if n := s.CachedInfo().State.Consumers; n != 0 {
			t.Errorf("%s has %d consumers", name, n)
		}
	}
}

// Far more than the 1000 that a server allows a stream as it comes follow a job
// at a time.
func TestManyFollow(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := setUp(t, Limits{})
	_, err := c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	const many = 1050 // each takes time on a busy machine
	for range many {
		next, stop := iter.Pull2(c.WatchStanding(ctx, "j"))
		defer stop()
		_, err, _ := next()
		ok(t, err)
	}
	s, err := c.js.Stream(ctx, bucketStream)
	ok(t, err)
	if n := s.CachedInfo().State.Consumers; n != many {
		t.Errorf("%d consumers, want %d", n, many)
	}
}

// TestSnapshotOverLostConnection: the connection is lost when records are asked for, so
// that the request never comes to the broker. They are read all the same: nobody takes
// what did not answer for an empty list.
func TestSnapshotOverLostConnection(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := start(t, ServerOptions{Listen: "127.0.0.1:0"})
	admin := connect(t, Options{Server: s})
	ok(t, admin.Setup(ctx, Limits{}))
	create(t, admin, "a", "b")
	url, cuts := cutAt(t, s, "CONSUMER.MSG.NEXT", 0, 1)
	c := connect(t, Options{URL: url})
	all, err := c.Standings(ctx)
	ok(t, err)
	if len(all) != 2 || cuts.Load() == 0 {
		t.Errorf("%d jobs, want 2, after %d cuts", len(all), cuts.Load())
	}
}

// What is rewritten while somebody begins to watch all the same shows him all that there
// is: what the broker then says is left to come may stay wrong.
func TestWatchWhileWritten(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := setUp(t, Limits{})
	create(t, c, "a", "b", "c")
	beside(t, func(worker int) {
		id := []string{"a", "b", "c", "a"}[worker]
		for range 100 {
			var writing sync.WaitGroup
			writing.Go(func() {
				err := writeLedger(ctx, c, id, &wire.Ledger{State: wire.Open})
				if err != nil && !errors.Is(err, ErrConflict) { // of the two that write to a
					t.Error(err)
				}
			})
			seen := map[string]bool{}
			for s, err := range c.WatchStandings(ctx) {
				if err != nil {
					t.Errorf("%d jobs were seen: %v", len(seen), err)
				} else if seen[s.Job.ID] = true; len(seen) < 3 {
					continue
				}
				break
			}
			for _, err := range c.WatchStanding(ctx, id) {
				if err != nil {
					t.Error(err)
				}
				break
			}
			writing.Wait()
		}
	})
}

// However fast messages come, a follower goes on to ask for more.
func TestFollowGoesOn(t *testing.T) {
	t.Parallel()
	const messages = 5 * readAhead
	ctx := testContext(t)
	c := setUp(t, Limits{})
	for chunk := range int64(messages) {
		ok(t, c.PublishResult(ctx, wire.ID{Job: "j", Chunk: chunk}, nil))
	}
	beside(t, func(int) {
		for range 50 {
			f := &follower{conn: c, stream: resultsStream, filters: []string{resultsOf("j")}}
			n := 0
			err := f.read(ctx, func(m logged) bool {
				n++
				if m.latest != (n == messages) {
					t.Errorf("message %d: latest %t", n, m.latest)
				}
				return n < messages
			})
			if err != nil {
				t.Errorf("after %d messages: %v", n, err)
			}
		}
	})
}

// beside runs four at a time.
func beside(t *testing.T, work func(worker int)) {
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() { work(worker) })
	}
	group.Wait()
}
