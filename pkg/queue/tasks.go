package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// idleWait is how long a request for a task waits at the broker. A request that
// is abandoned may take a task with it until AckWait is over, so requests are
// short and Close waits for them.
const idleWait = 250 * time.Millisecond

// Tasks hands out tasks, the first lane before the second before the third.
//
// A task is asked for only when somebody waits for it, one at a time: whatever
// lies in a buffer has its AckWait run down and is missing elsewhere. Only when
// all lanes are empty is there a request in each, so that at most one task per
// lane may arrive unasked; it is kept alive and is the next to be handed out.
type Tasks struct {
	conn      *Conn
	lanes     []Lane
	consumers []jetstream.Consumer
	alive     keeper
	ctx       context.Context // of what runs in the background, until Close
	stop      context.CancelFunc
	running   sync.WaitGroup
	closing   sync.Once

	turn    chan struct{} // full while a Next asks; it then owns waiting and held
	waiting []bool        // per lane: a request waits at the broker
	held    []*Delivery   // per lane: arrived and not yet handed out
	arrived chan arrival  // from waiting requests; room for all
}

// arrival is how a waiting request ended: with a delivery, an error, or neither.
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
		t.consumers = append(t.consumers, consumer)
		c.warn("lane "+string(lane), laneDrift(consumer.CachedInfo().Config, laneConfig(lane, Limits{}.withDefaults())))
		ackWait = consumer.CachedInfo().Config.AckWait
	}
	c.warnDrift(ctx, tasksStream, resultsStream)
	t.ctx, t.stop = context.WithCancel(context.Background())
	t.alive.open = make(map[*Delivery]struct{})
	t.running.Go(func() { t.alive.run(t.ctx, ackWait/3) })
	return t, nil
}

// Close ends the requests and gives back what was not handed out. Deliveries
// that are not settled by then are no longer kept alive.
func (t *Tasks) Close() { t.closing.Do(t.close) }

func (t *Tasks) close() {
	t.stop()
	t.turn <- struct{}{} // no Next asks any more
	t.running.Wait()
	for _, waits := range t.waiting {
		if waits {
			t.note(<-t.arrived)
		}
	}
	for _, d := range t.held {
		if d != nil {
			_ = d.NakWithDelay(0) // otherwise it comes back after AckWait
		}
	}
}

// DropTasks deletes all tasks and whatever waits for one. It is for a broker of
// one's own that nobody wants any more: without it Tasks.Close waits for requests
// to run out and Server.Close for the consumers, together most of a small run.
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
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.ctx.Done():
		return nil, errTasksClosed
	}
	if d := t.take(); d != nil {
		return d, nil
	}
	if d, err := t.probe(); d != nil || err != nil {
		return d, err
	}
	for {
		t.wait()
		select {
		case a := <-t.arrived:
			if t.note(a); a.err != nil {
				return nil, a.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-t.ctx.Done():
			return nil, errTasksClosed
		}
		if d := t.take(); d != nil {
			return d, nil
		}
	}
}

var errTasksClosed = errors.New("take task: closed")

// take returns the first delivery that has arrived, if any.
func (t *Tasks) take() *Delivery {
	for len(t.arrived) > 0 {
		t.note(<-t.arrived)
	}
	for lane, d := range t.held {
		if d != nil {
			t.held[lane] = nil
			return d
		}
	}
	return nil
}

func (t *Tasks) note(a arrival) {
	t.waiting[a.lane] = false
	t.held[a.lane] = a.delivery
}

// probe asks the lanes in their order for a task that is there now.
func (t *Tasks) probe() (*Delivery, error) {
	for lane := range t.lanes {
		if t.waiting[lane] {
			continue
		}
		d, err := t.fetch(lane, func(c jetstream.Consumer) (jetstream.MessageBatch, error) { return c.FetchNoWait(1) })
		if d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// wait asks each lane for a task that comes within idleWait.
func (t *Tasks) wait() {
	for lane := range t.lanes {
		if t.waiting[lane] {
			continue
		}
		t.waiting[lane] = true
		t.running.Go(func() {
			d, err := t.fetch(lane, func(c jetstream.Consumer) (jetstream.MessageBatch, error) {
				return c.Fetch(1, jetstream.FetchMaxWait(idleWait))
			})
			t.arrived <- arrival{lane, d, err}
		})
	}
}

// fetch runs one request for one task. While the broker is away it takes a
// while and finds nothing.
func (t *Tasks) fetch(lane int, request func(jetstream.Consumer) (jetstream.MessageBatch, error)) (*Delivery, error) {
	var msg jetstream.Msg
	err := t.conn.once(t.ctx, func(ctx context.Context) error {
		batch, err := request(t.consumers[lane])
		if err != nil {
			return err
		}
		if msg = <-batch.Messages(); msg != nil {
			return nil
		}
		switch err := batch.Error(); {
		case errors.Is(err, jetstream.ErrConsumerDeleted):
			return jetstream.ErrConsumerNotFound
		case errors.Is(err, nats.ErrNoResponders):
			// Either the broker is not ready, or the consumer does not exist.
			if _, missing := t.conn.js.Consumer(ctx, tasksStream, string(t.lanes[lane])); missing != nil {
				return missing
			}
			return err
		case err != nil && strings.HasSuffix(err.Error(), tooManyWait):
			return errCrowded
		case err != nil:
			return err
		}
		return errNoTask
	})
	switch {
	case err == nil:
		return t.deliver(lane, msg), nil
	case errors.Is(err, errNoTask), t.ctx.Err() != nil:
		return nil, nil
	case isTransient(err), errors.Is(err, errCrowded):
		_ = t.conn.sleep(t.ctx, idleWait) // whatever ends the pause, the next request finds out
		return nil, nil
	}
	return nil, fmt.Errorf("take task from lane %s: %w", t.lanes[lane], err)
}

// tooManyWait is what the broker says where more workers wait for a task than it
// lets: a lane that somebody else has made. The client has no error for it.
const tooManyWait = "Exceeded MaxWaiting"

var (
	errNoTask  = errors.New("no task")
	errCrowded = errors.New("too many workers wait at the broker")
)
