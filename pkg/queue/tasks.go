package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// How long a request for a task waits at the broker: at first, and when there has
// been none for long, each time twice as long. While a worker has tasks its requests
// are short, since one that is left in another lane may bring a task to a worker that
// is at work. Those of an idle one, which are long, are taken back when it gets a task.
const (
	idleWait    = 250 * time.Millisecond
	longestWait = 4 * time.Second
)

// Tasks hands out tasks, the first lane before the second before the third.
//
// A task is asked for only when somebody waits for it, one at a time: whatever
// lies in a buffer has its AckWait run down and is missing elsewhere. Only when
// all lanes are empty is there a request in each, so that at most one task per
// lane may arrive unasked; it is kept alive and is the next to be handed out.
type Tasks struct {
	conn    *Conn
	lanes   []Lane
	alive   keeper
	ctx     context.Context // of what runs in the background, until Close
	stop    context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	turn    chan struct{}   // full while a Next asks; it then owns what follows
	waiting []bool          // per lane: a request waits at the broker
	wait    []time.Duration // per lane: for how long the next one will
	held    []*Delivery     // per lane: arrived and not yet handed out
	arrived chan arrival    // from waiting requests; room for all
	wanted  context.Context // of waiting requests, until they are taken back
	recall  context.CancelFunc
}

// arrival is how a waiting request ended: with a delivery, an error, or, where it was
// taken back or the broker was away, neither.
type arrival struct {
	lane     int
	delivery *Delivery
	err      error
}

// Tasks prepares to take tasks from the given lanes, which are served in that
// order.
func (c *Conn) Tasks(ctx context.Context, lanes ...Lane) (*Tasks, error) {
	t := &Tasks{
		conn:    c,
		lanes:   lanes,
		turn:    make(chan struct{}, 1),
		waiting: make([]bool, len(lanes)),
		wait:    make([]time.Duration, len(lanes)),
		held:    make([]*Delivery, len(lanes)),
		arrived: make(chan arrival, len(lanes)),
	}
	var ackWait time.Duration
	for _, lane := range lanes {
		var consumer jetstream.Consumer
		err := c.do(ctx, func(ctx context.Context) (err error) {
			consumer, err = c.js.Consumer(ctx, tasksStream, string(lane))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look up lane %s: %w", lane, err)
		}
		c.warn("lane "+string(lane), laneDrift(consumer.CachedInfo().Config, laneConfig(lane, Limits{}.withDefaults())))
		ackWait = consumer.CachedInfo().Config.AckWait
	}
	c.warnDrift(ctx, tasksStream, resultsStream)
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.beShort()
	t.alive.open = make(map[*Delivery]struct{})
	t.running.Go(func() { t.alive.run(t.ctx, ackWait/3) })
	return t, nil
}

// Close takes back the requests and gives back what was not handed out. Deliveries
// that are not settled by then are no longer kept alive.
func (t *Tasks) Close() { t.closing.Do(t.close) }

func (t *Tasks) close() {
	t.stop()
	t.turn <- struct{}{} // no Next asks any more
	t.running.Wait()
	for len(t.arrived) > 0 {
		_ = t.note(<-t.arrived) // why there is no task concerns nobody now
	}
	for _, d := range t.held {
		if d != nil {
			_ = d.NakWithDelay(0) // otherwise it comes back after AckWait
		}
	}
}

// DropTasks deletes all tasks and whatever waits for one. It is for a broker of
// one's own that nobody wants any more: without it Server.Close waits for the
// consumers, which is most of a small run.
func (c *Conn) DropTasks(ctx context.Context) error {
	err := c.once(ctx, func(ctx context.Context) error { return c.js.DeleteStream(ctx, tasksStream) })
	if err != nil {
		return fmt.Errorf("drop tasks: %w", err)
	}
	return nil
}

// Next returns the next task, waiting for one if need be. Callers that are free
// call it; as many tasks are under way as there are callers.
func (t *Tasks) Next(ctx context.Context) (*Delivery, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	d, err := t.next(asking)
	switch {
	case d != nil, asking.Err() == nil:
		return d, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, errTasksClosed
}

func (t *Tasks) next(ctx context.Context) (*Delivery, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d := t.take(); d != nil {
		return d, nil
	}
	if d, err := t.probe(ctx); d != nil || err != nil {
		t.beShort()
		return d, err
	}
	for ctx.Err() == nil {
		t.await()
		select {
		case a := <-t.arrived:
			if err := t.note(a); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if d := t.take(); d != nil {
			return d, nil
		}
	}
	return nil, ctx.Err()
}

var errTasksClosed = errors.New("take task: closed")

// take returns the first delivery that has arrived, if any.
func (t *Tasks) take() *Delivery {
	for len(t.arrived) > 0 {
		_ = t.note(<-t.arrived) // the next request runs into the same
	}
	for lane, d := range t.held {
		if d != nil {
			t.held[lane] = nil
			t.beShort()
			return d
		}
	}
	return nil
}

// note takes down how a waiting request ended.
func (t *Tasks) note(a arrival) error {
	t.waiting[a.lane] = false
	if errors.Is(a.err, errNoTask) {
		t.wait[a.lane] = min(2*t.wait[a.lane], longestWait)
		return nil
	}
	t.held[a.lane] = a.delivery
	return a.err
}

// beShort makes requests short again, and takes back those that are not.
func (t *Tasks) beShort() {
	if slices.Max(t.wait) == idleWait {
		return
	}
	if t.recall != nil {
		t.recall()
	}
	t.wanted, t.recall = context.WithCancel(t.ctx)
	for lane := range t.wait {
		t.wait[lane] = idleWait
	}
}

// probe asks the lanes in their order for a task that is there now.
func (t *Tasks) probe(ctx context.Context) (*Delivery, error) {
	for lane := range t.lanes {
		if t.waiting[lane] {
			continue
		}
		d, err := t.fetch(ctx, lane, 0)
		if d != nil || (err != nil && !errors.Is(err, errNoTask)) {
			return d, err
		}
	}
	return nil, nil
}

// await asks each lane for a task that comes in a while.
func (t *Tasks) await() {
	for lane := range t.lanes {
		if t.waiting[lane] {
			continue
		}
		t.waiting[lane] = true
		ctx, wait := t.wanted, t.wait[lane]
		t.running.Go(func() {
			d, err := t.fetch(ctx, lane, wait)
			t.arrived <- arrival{lane, d, err}
		})
	}
}

// fetch asks a lane for one task. While the broker is away it takes a while and
// finds nothing.
func (t *Tasks) fetch(ctx context.Context, lane int, expires time.Duration) (*Delivery, error) {
	msg, err := t.ask(ctx, t.lanes[lane], expires)
	switch {
	case err == nil:
		return t.deliver(lane, msg), nil
	case ctx.Err() != nil:
		return nil, nil
	case errors.Is(err, errNoTask):
		return nil, errNoTask
	case isTransient(err), errors.Is(err, errCrowded):
		_ = t.conn.sleep(ctx, idleWait) // whatever ends the pause, the next request finds out
		return nil, nil
	}
	return nil, fmt.Errorf("take task from lane %s: %w", t.lanes[lane], err)
}
