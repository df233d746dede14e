package queue

import (
	"context"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
)

func create(t testing.TB, c *Conn, ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := c.CreateJob(testContext(t), newJob(t, id))
		ok(t, err)
	}
}

func wantState(t testing.TB, c *Conn, id, want string) {
	t.Helper()
	s, err := c.Standing(testContext(t), id)
	ok(t, err)
	if got := s.State(); got != want {
		t.Errorf("job %s is %s, want %s", id, got, want)
	}
}

func TestStanding(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	_, err := c.Standing(ctx, "j")
	wantError(t, err, ErrNotFound)
	all, err := c.Standings(ctx)
	if ok(t, err); len(all) != 0 {
		t.Errorf("%d jobs in an empty bucket", len(all))
	}
	create(t, c, "j", "i")
	before := time.Now()
	ok(t, writeLedger(ctx, c, "j", &wire.Ledger{State: wire.Open, Received: wire.Count{Chunks: 1, Records: 9}}))
	ok(t, c.PutOrder(ctx, "i", wire.Pause))
	ok(t, c.PutTrouble(ctx, "j", wire.Trouble{Chunk: 3, Delivered: 1, Message: "no"}))
	trouble := wire.Trouble{Chunk: 7, Delivered: 2, Message: "no answer"}
	ok(t, c.PutTrouble(ctx, "j", trouble))
	all, err = c.Standings(ctx)
	ok(t, err)
	if len(all) != 2 || all[0].Job.ID != "i" || all[1].Job.ID != "j" {
		t.Fatalf("jobs %+v", all)
	}
	if i := all[0]; i.Ledger != nil || !i.Heard.IsZero() || i.State() != "paused" || len(i.Troubles.Latest) > 0 {
		t.Errorf("job i: %+v", i)
	}
	if j := all[1]; j.Ledger.Received.Records != 9 || j.Heard.Before(before.Add(-time.Second)) || j.State() != "open" ||
		len(j.Troubles.Latest) != 2 || *j.Troubles.Of(7) != trouble || j.Troubles.Latest[1] != trouble {
		t.Errorf("job j: %+v", j)
	}
	if _, err := c.Standing(ctx, "*"); err == nil {
		t.Error("a job is read by a pattern")
	}
}

// An order changes nothing but the job's own state; cancel is for good.
func TestOrders(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	wantError(t, c.PutOrder(ctx, "j", wire.Pause), ErrNotFound)
	create(t, c, "j", "done")
	for _, step := range []struct {
		order wire.Order
		state string
		err   error
	}{
		{wire.Proceed, "open", nil},
		{wire.Pause, "paused", nil},
		{wire.Pause, "paused", nil},
		{wire.Proceed, "open", nil},
		{wire.Cancel, "cancelling", nil},
		{wire.Cancel, "cancelling", nil},
		{wire.Proceed, "cancelling", ErrEnded},
		{wire.Pause, "cancelling", ErrEnded},
	} {
		if err := c.PutOrder(ctx, "j", step.order); step.err != nil {
			wantError(t, err, step.err)
		} else {
			ok(t, err)
		}
		wantState(t, c, "j", step.state)
	}
	for state, name := range map[wire.State]string{wire.Done: "done", wire.Failed: "failed", wire.Cancelled: "cancelled"} {
		ok(t, writeLedger(ctx, c, "done", &wire.Ledger{State: state}))
		wantState(t, c, "done", name)
		wantError(t, c.PutOrder(ctx, "done", wire.Cancel), ErrEnded)
	}

	// A job that is deleted and made again has no orders.
	forget(t, c, "j")
	_, err := c.Standing(ctx, "j")
	wantError(t, err, ErrNotFound)
	create(t, c, "j")
	wantState(t, c, "j", "open")
	ok(t, c.PutOrder(ctx, "j", wire.Pause))
	wantState(t, c, "j", "paused")
}

// Cancel takes the job's tasks out of the queue, in every lane, and no others.
func TestCancelPurgesTasks(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	create(t, c, "j", "k")
	for chunk, lane := range Lanes() {
		p := c.Publisher(lane, 1<<20)
		for _, job := range []string{"j", "k"} {
			ok(t, p.Publish(ctx, wire.ID{Job: job, Chunk: int64(chunk)}, []byte("task")))
		}
		ok(t, p.Flush(ctx))
	}
	ok(t, c.PutOrder(ctx, "j", wire.Cancel))
	tasks, err := c.Tasks(ctx, Lanes()...)
	ok(t, err)
	defer tasks.Close()
	for range Lanes() {
		d, err := tasks.Next(ctx)
		ok(t, err)
		if d.ID.Job != "k" {
			t.Errorf("a task of job %s is left", d.ID.Job)
		}
		ok(t, d.DoubleAck(ctx))
	}
}

// Every record is followed, whichever comes first, and those of other jobs are not.
func TestWatchStanding(t *testing.T) {
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	c := setUp(t, Limits{})
	ok(t, writeLedger(ctx, c, "j", &wire.Ledger{State: wire.Open}))
	states := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		for s, err := range c.WatchStanding(ctx, "j") {
			if err != nil {
				ended <- err
				return
			}
			states <- s.State()
		}
	}()
	await := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-states:
				if got == want {
					return
				}
			case <-ctx.Done():
				t.Fatalf("never %s", want)
			}
		}
	}
	create(t, c, "j", "j-2")
	await("open")
	ok(t, c.PutOrder(ctx, "j-2", wire.Cancel))
	ok(t, c.PutOrder(ctx, "j", wire.Pause))
	await("paused")
	ok(t, c.PutOrder(ctx, "j", wire.Cancel))
	await("cancelling")
	ok(t, writeLedger(ctx, c, "j", &wire.Ledger{State: wire.Cancelled}))
	await("cancelled")
	cancel()
	wantError(t, <-ended, context.Canceled)
}

// TestCancelWithoutStreams: a job whose tasks and results are gone with their streams can
// be cancelled all the same.
func TestCancelWithoutStreams(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	create(t, c, "j")
	ok(t, c.js.DeleteStream(ctx, tasksStream))
	ok(t, c.js.DeleteStream(ctx, resultsStream))
	ok(t, c.PutOrder(ctx, "j", wire.Cancel))
	wantState(t, c, "j", "cancelling")
	ok(t, c.PurgeResults(ctx, "j"))
}
