package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// Publisher sends tasks without waiting for each to be stored.
type Publisher struct {
	conn  *Conn
	lane  Lane
	bytes int64               // most bytes under way
	room  *semaphore.Weighted // the bytes that are not under way

	mu       sync.Mutex
	err      error // first failure; the publisher is then of no more use
	underWay int64 // tasks that are not stored yet
}

// Publisher returns a publisher of tasks in a lane, with at most maxBytes
// under way; a larger single task goes alone.
func (c *Conn) Publisher(lane Lane, maxBytes int64) *Publisher {
	return &Publisher{conn: c, lane: lane, bytes: maxBytes, room: semaphore.NewWeighted(maxBytes)}
}

// Publish sends the bytes of a task, which must not change until Flush. It waits
// until there is room for them under way. Tasks may be stored in another order.
// Its error may be that of an earlier task. ctx also ends the sending.
func (p *Publisher) Publish(ctx context.Context, id wire.ID, data []byte) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("publish task: %w", err)
	}
	size := min(int64(len(data)+headerBudget), p.bytes)
	if err := p.room.Acquire(ctx, size); err != nil {
		return fmt.Errorf("publish task %s: %w", id, err)
	}
	if err := p.failure(); err != nil {
		p.room.Release(size)
		return err
	}
	p.mu.Lock()
	p.underWay++
	p.mu.Unlock()
	go func() {
		defer p.room.Release(size)
		err := p.conn.publish(ctx, tasksStream, taskSubject(p.lane, id), id, data)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay--
		if err != nil && p.err == nil {
			p.err = fmt.Errorf("publish task %s: %w", id, err)
		}
	}()
	return nil
}

// Flush waits until all tasks are stored and returns the first failure.
func (p *Publisher) Flush(ctx context.Context) error {
	if err := p.room.Acquire(ctx, p.bytes); err != nil {
		return fmt.Errorf("publish tasks: %w", err)
	}
	p.room.Release(p.bytes)
	return p.failure()
}

// UnderWay returns how many tasks are sent and not yet stored.
func (p *Publisher) UnderWay() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.underWay
}

func (p *Publisher) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// PublishResult sends the bytes of a result and returns when they are stored.
func (c *Conn) PublishResult(ctx context.Context, id wire.ID, data []byte) error {
	if err := id.Validate(); err != nil {
		return fmt.Errorf("publish result: %w", err)
	}
	if err := c.publish(ctx, resultsStream, resultSubject(id), id, data); err != nil {
		return fmt.Errorf("publish result %s: %w", id, err)
	}
	return nil
}

// publish stores a message, for as long as it takes: a full stream is waited
// for, and a message without an acknowledgement is sent again under its id.
//
// The broker refuses an id that it has seen, also when the first message is gone
// by now, such as that of a job which was deleted and comes again. So no two
// sendings have the same id, not even of the same chunk.
func (c *Conn) publish(ctx context.Context, stream, subject string, id wire.ID, data []byte) error {
	if len(data) > c.MaxData() {
		return fmt.Errorf("%w: %d bytes, it takes %d", ErrTooLarge, len(data), c.MaxData())
	}
	m := &nats.Msg{Subject: subject, Data: data}
	sending := id.String() + "/" + rand.Text()
	return c.do(ctx, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, m, jetstream.WithMsgID(sending), jetstream.WithRetryAttempts(0))
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			// Either the broker is not ready, or the stream does not exist, which
			// this error tells apart.
			if _, missing := c.js.Stream(ctx, stream); missing != nil {
				return missing
			}
		}
		return err
	})
}

func taskSubject(lane Lane, id wire.ID) string {
	return fmt.Sprintf("%s.%s.%s.%d", taskPrefix, lane, id.Job, id.Chunk)
}

func resultSubject(id wire.ID) string {
	return fmt.Sprintf("%s.%d.%s.%d.%d", resultPrefix, id.Part%Partitions, id.Job, id.Part, id.Chunk)
}

// parseTaskSubject returns the job and the chunk of a task.
func parseTaskSubject(subject string) (lane Lane, id wire.ID, err error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) == 5 {
		lane, id.Job = Lane(tokens[2]), tokens[3]
		id.Chunk, err = strconv.ParseInt(tokens[4], 10, 64)
	}
	if err == nil {
		err = id.Validate()
	}
	if err != nil || subject != taskSubject(lane, id) {
		return "", wire.ID{}, fmt.Errorf("subject %q is not a task's", subject)
	}
	return lane, id, nil
}

// parseResultSubject returns the job, the part and the chunk of a result.
func parseResultSubject(subject string) (id wire.ID, err error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) == 6 {
		id.Job = tokens[3]
		id.Part, err = strconv.ParseInt(tokens[4], 10, 64)
	}
	if len(tokens) == 6 && err == nil {
		id.Chunk, err = strconv.ParseInt(tokens[5], 10, 64)
	}
	if err == nil {
		err = id.Validate()
	}
	if err != nil || subject != resultSubject(id) {
		return wire.ID{}, fmt.Errorf("subject %q is not a result's", subject)
	}
	return id, nil
}
