package queue

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
)

// As many tasks are under way as callers asked for; the others are there for
// other workers.
func TestNothingIsTakenUnasked(t *testing.T) {
	c := setUp(t, Limits{})
	publish(t, c, Normal, 0, 1, 2, 3, 4)
	first, second := tasksOf(t, c, Lanes()...), tasksOf(t, c, Lanes()...)
	next(t, first)
	if out, in := pending(t, c, Normal); out != 1 || in != 4 {
		t.Errorf("one asked: %d handed out, %d not", out, in)
	}
	next(t, second)
	next(t, second)
	if out, in := pending(t, c, Normal); out != 3 || in != 2 {
		t.Errorf("three asked: %d handed out, %d not", out, in)
	}
}

// Whoever waits for a task learns that there will be none.
func TestDropTasks(t *testing.T) {
	c := setUp(t, Limits{})
	ctx := testContext(t)
	tasks := tasksOf(t, c, Lanes()...)
	ended := make(chan error, 1)
	go func() {
		_, err := tasks.Next(ctx)
		ended <- err
	}()
	ok(t, c.DropTasks(ctx))
	if err := <-ended; !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want %v", err, ErrNotFound)
	}
}

func TestLanesInOrder(t *testing.T) {
	c := setUp(t, Limits{})
	publish(t, c, Low, 1, 2)
	publish(t, c, Normal, 3)
	publish(t, c, High, 4, 5)
	tasks := tasksOf(t, c, Lanes()...)
	var got []Lane
	for range 5 {
		d := next(t, tasks)
		got = append(got, d.Lane)
		ok(t, d.DoubleAck(testContext(t)))
	}
	for i, want := range []Lane{High, High, Normal, Low, Low} {
		if got[i] != want {
			t.Fatalf("got lanes %v", got)
		}
	}
}

// A caller that waits gets a task from whatever lane, and one that came besides
// goes to the next caller.
func TestWaitingForAnyLane(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	tasks := tasksOf(t, c, Lanes()...)
	for chunk := range int64(20) {
		lane := Lanes()[chunk%3]
		got := make(chan *Delivery)
		go func() {
			d, err := tasks.Next(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- d
		}()
		publish(t, c, lane, chunk)
		d := <-got
		if d == nil || d.ID.Chunk != chunk || d.Lane != lane {
			t.Fatalf("chunk %d in lane %s: got %+v", chunk, lane, d)
		}
		ok(t, d.DoubleAck(ctx))
	}
}

// A worker that dies does not settle its task; another gets it.
func TestWorkerDies(t *testing.T) {
	ctx := testContext(t)
	s := start(t, ServerOptions{})
	c := connect(t, Options{Server: s})
	ok(t, c.Setup(ctx, Limits{AckWait: 300 * time.Millisecond}))
	publish(t, c, Normal, 9)
	dying := connect(t, Options{Server: s})
	tasks, err := dying.Tasks(ctx, Normal)
	ok(t, err)
	first := next(t, tasks)
	tasks.Close()
	dying.Close()
	wantError(t, first.DoubleAck(ctx), ErrClosed)
	d := next(t, tasksOf(t, c, Normal))
	if d.ID.Chunk != 9 || d.Delivered != 2 {
		t.Errorf("got %+v", d)
	}
}

func TestNakAndTerm(t *testing.T) {
	c := setUp(t, Limits{})
	publish(t, c, Normal, 1)
	tasks := tasksOf(t, c, Normal)
	ok(t, next(t, tasks).NakWithDelay(0))
	ok(t, next(t, tasks).NakWithDelay(10*time.Millisecond))
	d := next(t, tasks)
	if d.Delivered != 3 {
		t.Errorf("delivery %d, want the third", d.Delivered)
	}
	ok(t, d.Term("not worth it"))
	ctx := testContext(t)
	for n := stored(t, c, tasksStream); n != 0; n = stored(t, c, tasksStream) { // it does not wait for the broker
		ok(t, ctx.Err())
	}
}

// Close takes back at once a request that would wait for an hour.
func TestCloseGivesBack(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{AckWait: time.Hour})
	tasks, err := c.Tasks(ctx, Normal)
	ok(t, err)
	tasks.wait[0] = time.Hour
	gone, cancel := context.WithCancel(ctx)
	asked := make(chan error)
	go func() {
		_, err := tasks.Next(gone)
		asked <- err
	}()
	awaitWaiting(t, c, Normal, 1)
	cancel() // the request still waits at the broker
	wantError(t, <-asked, context.Canceled)
	tasks.Close()
	tasks.Close() // once more is harmless
	publish(t, c, Normal, 1)
	_, err = tasks.Next(ctx)
	wantError(t, err, errTasksClosed)
	if d := next(t, tasksOf(t, c, Normal)); d.ID != (wire.ID{Job: "j", Chunk: 1}) || d.Delivered != 1 {
		t.Errorf("got %+v", d)
	}
}

// awaitWaiting waits until so many requests for a task wait in a lane.
func awaitWaiting(t *testing.T, c *Conn, lane Lane, want int) {
	t.Helper()
	ctx := testContext(t)
	for {
		consumer, err := c.js.Consumer(ctx, tasksStream, string(lane))
		ok(t, err)
		if consumer.CachedInfo().NumWaiting == want {
			return
		}
	}
}

// A worker that has long been idle asks each lane for a long time. Once it has a task
// it takes back what it asked the others for: their tasks are for workers that are free.
func TestLongRequestsAreTakenBack(t *testing.T) {
	c := setUp(t, Limits{AckWait: time.Hour})
	busy := tasksOf(t, c, High, Normal)
	busy.wait[0], busy.wait[1] = time.Hour, time.Hour
	got := make(chan *Delivery)
	go func() {
		d, err := busy.Next(testContext(t))
		if err != nil {
			t.Error(err)
		}
		got <- d
	}()
	awaitWaiting(t, c, High, 1)
	awaitWaiting(t, c, Normal, 1)
	publish(t, c, Normal, 1)
	if d := <-got; d == nil || d.ID.Chunk != 1 {
		t.Fatalf("got %+v", d)
	}
	awaitWaiting(t, c, High, 0)
	publish(t, c, High, 2)
	if d := next(t, tasksOf(t, c, High)); d.ID.Chunk != 2 || d.Delivered != 1 {
		t.Errorf("got %+v", d)
	}
}

// Whoever finds no task asks for longer each time, up to a limit, and begins anew
// when there is one.
func TestIdleAskSeldom(t *testing.T) {
	tasks := tasksOf(t, setUp(t, Limits{}), High, Normal)
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 16} {
		if tasks.wait[1] != want*idleWait || tasks.wait[0] != idleWait {
			t.Fatalf("waits %v, want %v and %v", tasks.wait, idleWait, want*idleWait)
		}
		ok(t, tasks.note(arrival{lane: 1, err: errNoTask}))
	}
	tasks.arrived <- arrival{lane: 0, delivery: &Delivery{}}
	if d := tasks.take(); d == nil || tasks.wait[1] != idleWait {
		t.Errorf("took %v, waits %v", d, tasks.wait)
	}
}

// TestTaskComesLate: the broker's answer comes when the request has been given up. The
// task is there all the same, at once, though AckWait is an hour.
func TestTaskComesLate(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := start(t, ServerOptions{Listen: "127.0.0.1:0"})
	admin := connect(t, Options{Server: s})
	ok(t, admin.Setup(ctx, Limits{AckWait: time.Hour}))
	publish(t, admin, Normal, 1)
	mute := make(chan struct{})
	c := connect(t, Options{URL: muteUntil(t, s, mute, "UNSUB ")})
	tasks := tasksOf(t, c, Normal)
	close(mute)
	if d := next(t, tasks); d.ID.Chunk != 1 || d.Delivered != 1 {
		t.Errorf("got %+v", d)
	}
}

// Closing while somebody waits ends the waiting.
func TestCloseWhileWaiting(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	tasks, err := c.Tasks(ctx, Lanes()...)
	ok(t, err)
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := tasks.Next(ctx)
			errs <- err
		}()
	}
	tasks.Close()
	for range 3 {
		wantError(t, <-errs, errTasksClosed)
	}
}

func TestConsumerDeleted(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	tasks := tasksOf(t, c, Normal)
	ok(t, c.js.DeleteConsumer(ctx, tasksStream, string(Normal)))
	_, err := tasks.Next(ctx)
	wantError(t, err, ErrNotFound)
}

// TestForgottenDelivery: a broker that was killed may come back without knowing that it
// delivered a task, here because its consumer begins anew. It does not answer who
// acknowledges that delivery: nobody waits for the answer until a time is over, here two
// minutes, and the task comes again.
func TestForgottenDelivery(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	c := setUp(t, Limits{AckWait: time.Hour})
	publish(t, c, Normal, 1)
	tasks := tasksOf(t, c, Normal)
	d := next(t, tasks)
	ok(t, c.js.DeleteConsumer(ctx, tasksStream, string(Normal)))
	ok(t, c.Setup(ctx, Limits{AckWait: time.Hour}))
	wantError(t, d.DoubleAck(ctx), errForgotten)
	again := next(t, tasks)
	if again.ID.Chunk != 1 {
		t.Errorf("got %+v", again)
	}
	ok(t, again.DoubleAck(ctx))
	if n := stored(t, c, tasksStream); n != 0 {
		t.Errorf("%d tasks left", n)
	}
}

// To give a task back while the broker is away is no error: the task comes back
// by itself.
func TestGiveBackWhileBrokerIsAway(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := t.TempDir()
	address := freeAddress(t)
	s := start(t, ServerOptions{StoreDir: dir, Listen: address})
	c := connect(t, Options{URL: "nats://" + address})
	ok(t, c.Setup(ctx, Limits{AckWait: time.Second}))
	publish(t, c, Normal, 1, 2)
	tasks := tasksOf(t, c, Normal)
	first, second := next(t, tasks), next(t, tasks)
	s.Close()
	for c.nc.IsConnected() && ctx.Err() == nil {
		runtime.Gosched()
	}
	ok(t, first.NakWithDelay(0))
	ok(t, second.Term("not wanted"))
	start(t, ServerOptions{StoreDir: dir, Listen: address})
	if a, b := next(t, tasks), next(t, tasks); a.Delivered != 2 || b.Delivered != 2 {
		t.Errorf("delivered %d and %d times, want twice each", a.Delivered, b.Delivered)
	}
}

// TestManyWait: more workers than a lane has room for, by default or because somebody
// else has made it so, wait for a task, and each gets one.
func TestManyWait(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"as set up": 600, "room for one": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			c := setUp(t, Limits{})
			if workers < 10 {
				config := laneConfig(Normal, Limits{}.withDefaults())
				config.MaxWaiting = 1
				ok(t, c.js.DeleteConsumer(ctx, tasksStream, string(Normal)))
				_, err := c.js.CreateConsumer(ctx, tasksStream, config)
				ok(t, err)
			}
			all := make([]*Tasks, workers)
			for i := range all {
				all[i] = tasksOf(t, c, Normal)
			}
			got := make(chan int64, workers)
			for _, tasks := range all {
				go func() {
					d, err := tasks.Next(ctx)
					if err == nil {
						err = d.DoubleAck(ctx)
					}
					if err != nil {
						t.Error(err)
						got <- -1
						return
					}
					got <- d.ID.Chunk
				}()
			}
			for chunk := range int64(workers) {
				publish(t, c, Normal, chunk)
			}
			seen := map[int64]bool{}
			for range workers {
				seen[<-got] = true
			}
			if len(seen) != workers || seen[-1] {
				t.Errorf("%d different tasks for %d workers", len(seen), workers)
			}
		})
	}
}
