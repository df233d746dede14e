package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// grace is how long after its time the broker may answer a request for a task.
const grace = time.Second

// Why a request brought no task.
var (
	errNoTask  = errors.New("no task")
	errCrowded = errors.New("too many workers wait at the broker")
)

// ask asks a lane for one task, which may come until expires is over; 0 is for one
// that is there now. When ctx ends nobody waits for the task any more.
//
// The client's Fetch does the same, but it leaves when it has waited long enough,
// and a task that is on its way then is dropped, and missing everywhere until AckWait
// is over. Here the broker is told first: what it has sent until it knows is read, and
// what it would have sent later it hands to somebody else.
func (t *Tasks) ask(ctx context.Context, lane Lane, expires time.Duration) (*nats.Msg, error) {
	nc, answers := t.conn.nc, make(chan *nats.Msg, 2) // there is one, unless the broker errs
	sub, err := nc.ChanSubscribe(nc.NewInbox(), answers)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }() // it fails where the connection is closed
	}
	var msg *nats.Msg
	err = t.conn.attempt(ctx, expires+grace, func(ctx context.Context) error {
		if err != nil {
			return err
		}
		if err := nc.PublishRequest(api+"CONSUMER.MSG.NEXT."+tasksStream+"."+string(lane), sub.Subject, pullRequest(expires)); err != nil {
			return err
		}
		select {
		case msg = <-answers:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = t.takeBack(ctx, sub)
	}
	if len(answers) > 0 { // it came after all
		msg, err = <-answers, nil
	}
	if err == nil {
		err = status(msg)
	}
	if !errors.Is(err, nats.ErrNoResponders) {
		return msg, err
	}
	// Either the broker is not ready, or the consumer does not exist.
	return nil, t.conn.once(ctx, func(ctx context.Context) error {
		if _, missing := t.conn.js.Consumer(ctx, tasksStream, string(lane)); missing != nil {
			return missing
		}
		return err
	})
}

// takeBack tells the broker that nobody waits for the answers to a request any more.
// Those that it has sent before it knew are there when this returns.
func (t *Tasks) takeBack(ctx context.Context, sub *nats.Subscription) error {
	return t.conn.once(context.WithoutCancel(ctx), func(ctx context.Context) error {
		err := sub.Drain()
		if err == nil {
			err = t.conn.nc.FlushWithContext(ctx)
		}
		if err != nil {
			// The client calls the connection closed even where it is only cut.
			return fmt.Errorf("%w: take back a request: %v", ErrUnreachable, err)
		}
		return errNoTask
	})
}

// pullRequest is a request for one task, by the specification of NATS (ADR-13).
func pullRequest(expires time.Duration) []byte {
	if expires == 0 {
		return []byte(`{"batch":1,"no_wait":true}`)
	}
	return fmt.Appendf(nil, `{"batch":1,"expires":%d}`, expires.Nanoseconds())
}

// status returns why a message is no task, if so.
func status(msg *nats.Msg) error {
	code, why := msg.Header.Get("Status"), msg.Header.Get("Description")
	switch {
	case code == "" || len(msg.Data) > 0:
		return nil
	case code == "404", code == "408":
		return errNoTask
	case code == "503":
		return nats.ErrNoResponders
	case why == "Exceeded MaxWaiting":
		return errCrowded
	case why == "Consumer Deleted":
		return fmt.Errorf("%w: %w", ErrNotFound, jetstream.ErrConsumerDeleted)
	case why == "Leadership Change":
		return jetstream.ErrConsumerLeadershipChanged
	case why == "Server Shutdown":
		return jetstream.ErrServerShutdown
	}
	return fmt.Errorf("the broker answers %s %s", code, why)
}
