package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Delivery is a task in a worker's hands. It is kept alive until it is settled
// by one of DoubleAck, NakWithDelay and Term; each of them is final.
type Delivery struct {
	Lane      Lane
	ID        wire.ID // Job and Chunk, from the subject; Part and Epoch are in the payload
	Data      []byte
	Delivered int // how often the task has been delivered, this time included
	msg       *nats.Msg
	tasks     *Tasks
}

// deliver makes a delivery of a message. A message that no producer of ours can
// have sent is removed for good; deliver then returns nil.
func (t *Tasks) deliver(lane int, msg *nats.Msg) *Delivery {
	_, id, err := parseTaskSubject(msg.Subject)
	meta, metaErr := msg.Metadata()
	if err != nil || metaErr != nil {
		t.conn.log.Warn("task put aside", "subject", msg.Subject, "error", err)
		_ = t.terminate(msg, "not a task") // it would only be put aside again
		return nil
	}
	d := &Delivery{
		Lane:      t.lanes[lane],
		ID:        id,
		Data:      msg.Data,
		Delivered: int(meta.NumDelivered),
		msg:       msg,
		tasks:     t,
	}
	t.alive.add(d)
	return d
}

// Parse reads the task into t, as wire.Task.Parse does. It must be the one that the
// subject names.
func (d *Delivery) Parse(t *wire.Task) error {
	if err := t.Parse(d.Data); err != nil {
		return err
	}
	if t.ID.Job != d.ID.Job || t.ID.Chunk != d.ID.Chunk {
		return fmt.Errorf("task %s under the subject of chunk %d of job %s", t.ID, d.ID.Chunk, d.ID.Job)
	}
	return nil
}

// errForgotten says that a task comes again, whatever we say of this delivery of it.
var errForgotten = errors.New("the broker has forgotten that it delivered it")

// DoubleAck says that the task is done: its result is stored. It waits until
// the broker has noted it. After an error the task may be delivered again.
func (d *Delivery) DoubleAck(ctx context.Context) error {
	d.tasks.alive.remove(d)
	err := d.tasks.conn.do(ctx, func(ctx context.Context) error {
		err := d.msg.AckSync(nats.Context(ctx))
		if errors.Is(err, context.DeadlineExceeded) && d.isForgotten(ctx) {
			return errForgotten
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("acknowledge chunk %d of job %s: %w", d.ID.Chunk, d.ID.Job, err)
	}
	return nil
}

// isForgotten reports whether the broker no longer knows of the delivery, after an
// acknowledgement without an answer. A server notes a little later than it delivers how
// far it has come. If it is killed in between it goes on from there, and answers
// nothing to what is beyond.
func (d *Delivery) isForgotten(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), firstAttempt)
	defer cancel()
	meta, err := d.msg.Metadata()
	if err != nil {
		return false
	}
	lane, err := d.tasks.conn.js.Consumer(ctx, tasksStream, string(d.Lane))
	return err == nil && lane.CachedInfo().Delivered.Stream < meta.Sequence.Stream
}

// NakWithDelay gives the task back, to be delivered again after the delay, or
// after AckWait if the broker is away now.
func (d *Delivery) NakWithDelay(delay time.Duration) error {
	d.tasks.alive.remove(d)
	if err := d.msg.NakWithDelay(delay); err != nil && !isTransient(err) {
		return fmt.Errorf("give back chunk %d of job %s: %w", d.ID.Chunk, d.ID.Job, err)
	}
	return nil
}

// Term removes the task, although it is not done. The reason is for the broker's
// log, in one line. If the broker is away now, the task comes again.
func (d *Delivery) Term(reason string) error {
	d.tasks.alive.remove(d)
	if err := d.tasks.terminate(d.msg, reason); err != nil && !isTransient(err) {
		return fmt.Errorf("give up chunk %d of job %s: %w", d.ID.Chunk, d.ID.Job, err)
	}
	return nil
}

// terminate is msg.Term with a reason, by the specification of NATS (ADR-15).
func (t *Tasks) terminate(msg *nats.Msg, reason string) error {
	return t.conn.nc.Publish(msg.Reply, []byte("+TERM "+reason))
}

// keeper keeps deliveries alive: it tells the broker in time that they are
// worked on.
type keeper struct {
	mu   sync.Mutex
	open map[*Delivery]struct{}
}

func (k *keeper) add(d *Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open[d] = struct{}{}
}

func (k *keeper) remove(d *Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open, d)
}

// run keeps deliveries alive until ctx ends.
func (k *keeper) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		k.mu.Lock()
		for d := range k.open {
			// While the broker is away nothing helps, and afterwards the next tick does.
			_ = d.msg.InProgress()
		}
		k.mu.Unlock()
	}
}
