package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// readAhead is how many messages are fetched before they are asked for. One can
// be as large as the broker's maximum payload.
const readAhead = 16

// logged is a message with its place in the log.
type logged struct {
	jetstream.Msg
	meta *jetstream.MsgMetadata
}

// A consumer is made for each reading of a stream, and the broker allows a stream
// only so many at a time. So who has read deletes his; what a process leaves that
// dies, the broker deletes after leftBehind.
const (
	leftBehind  = 30 * time.Second
	dismissTime = 2 * time.Second // for the deletion: nobody waits longer for tidiness
)

// dismiss deletes a consumer that is no longer read from, also where ctx has
// ended. If that fails the broker does it later.
func (c *Conn) dismiss(ctx context.Context, stream string, consumer jetstream.Consumer) {
	if !c.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dismissTime)
	defer cancel()
	if err := c.js.DeleteConsumer(ctx, stream, consumer.CachedInfo().Name); err != nil {
		c.log.Debug("consumer left behind", "stream", stream, "error", err)
	}
}

// snapshot returns the latest message of each subject that the filters match, as
// it is now. Headers alone will do where headersOnly.
func (c *Conn) snapshot(ctx context.Context, stream string, headersOnly bool, filters ...string) (all []logged, err error) {
	err = c.do(ctx, func(ctx context.Context) error {
		all = nil
		consumer, err := c.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
			FilterSubjects:    filters,
			DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
			AckPolicy:         jetstream.AckNonePolicy,
			HeadersOnly:       headersOnly,
			InactiveThreshold: leftBehind,
			MemoryStorage:     true,
			Replicas:          1,
		})
		if err != nil {
			return err
		}
		defer c.dismiss(ctx, stream, consumer)
		for left := consumer.CachedInfo().NumPending; left > 0; {
			before := len(all)
			batch, err := consumer.FetchNoWait(snapshotBatch)
			if err != nil {
				return err
			}
			for m := range batch.Messages() {
				meta, err := m.Metadata()
				if err != nil {
					return err
				}
				if all = append(all, logged{m, meta}); meta.Sequence.Consumer != uint64(len(all)) {
					return errGap
				}
				left = meta.NumPending
			}
			if err := batch.Error(); err != nil {
				return err
			}
			if len(all) == before {
				return isRead(ctx, consumer)
			}
		}
		return nil
	})
	return all, err
}

// isRead returns nil if nothing is left to read for a consumer that brings nothing
// more: what was left has been removed. To the client that looks the same as a request,
// or an answer, that was lost on its way.
func isRead(ctx context.Context, consumer jetstream.Consumer) error {
	info, err := consumer.Info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound): // the broker was away, too
		return errGap
	case err == nil && info.NumPending > 0:
		return errGap
	}
	return err
}

// snapshotBatch is how many messages of a snapshot are asked for at a time.
const snapshotBatch = 1000

// errGap says that a message was sent and did not arrive.
var errGap = fmt.Errorf("%w: a message was lost on its way", ErrUnreachable)

// checkInterval is how often a log is checked to be the same one still, besides
// after every loss of the connection.
const checkInterval = 10 * time.Second

// follow returns the messages of a stream in their order, without end: the
// consumer is made anew from where it was whenever it or the broker was away.
// It ends with ErrNotFound when the stream, or its end, is lost.
func (c *Conn) follow(ctx context.Context, stream string, config jetstream.OrderedConsumerConfig) iter.Seq2[logged, error] {
	return func(yield func(logged, error) bool) {
		var consumer jetstream.Consumer
		var messages jetstream.MessagesContext
		var created time.Time
		config.InactiveThreshold = leftBehind
		err := c.do(ctx, func(ctx context.Context) error {
			s, err := c.js.Stream(ctx, stream)
			if err != nil {
				return err
			}
			created = s.CachedInfo().Created
			if consumer, err = s.OrderedConsumer(ctx, config); err != nil {
				return err
			}
			if messages, err = consumer.Messages(jetstream.PullMaxMessages(readAhead)); err != nil {
				c.dismiss(ctx, stream, consumer)
			}
			return err
		})
		if err != nil {
			yield(logged{}, err)
			return
		}
		defer func() {
			messages.Stop()
			c.dismiss(ctx, stream, consumer)
		}()
		f := &follower{conn: c, messages: messages, stream: stream, created: created}
		watched, lose := context.WithCancelCause(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			if err := f.awaitLoss(watched); err != nil {
				lose(err)
			}
		})
		defer watching.Wait()
		defer lose(nil)
		// Next hears of neither while it makes the consumer anew.
		defer context.AfterFunc(watched, messages.Stop)()
		defer context.AfterFunc(c.life, messages.Stop)()
		for {
			m, err := f.next(ctx, watched)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// follower is where follow stands in a stream.
type follower struct {
	conn     *Conn
	messages jetstream.MessagesContext
	stream   string
	created  time.Time
	last     atomic.Uint64 // place of the latest message
}

// next returns the next message. The context watched ends when ctx does, or with
// the loss of the stream as its cause.
func (f *follower) next(ctx, watched context.Context) (logged, error) {
	msg, err := f.messages.Next(jetstream.NextContext(watched))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return logged{}, ctx.Err()
	case watched.Err() != nil:
		return logged{}, context.Cause(watched)
	case f.conn.nc.IsClosed():
		return logged{}, f.conn.Err()
	default:
		return logged{}, err
	}
	meta, err := msg.Metadata()
	if err != nil {
		return logged{}, err
	}
	f.last.Store(meta.Sequence.Stream)
	return logged{msg, meta}, nil
}

// awaitLoss returns an error when the stream is no longer the one that is being
// followed: it was deleted, or the broker came back without it or without its
// end. The ordered consumer does not notice. It would wait for the place after
// its last one, and pass over all that is stored until then.
func (f *follower) awaitLoss(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	doubted := false
	for {
		f.conn.mu.Lock()
		link := f.conn.link
		f.conn.mu.Unlock()
		select {
		case <-tick.C:
		case <-link.Done():
		case <-ctx.Done():
			return nil
		}
		last := f.last.Load()
		info, err := f.conn.streamInfo(ctx, f.stream)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !info.Created.Equal(f.created):
			return fmt.Errorf("%w: stream %s was deleted, this is another", ErrNotFound, f.stream)
		case info.State.LastSeq >= last:
			doubted = false
		case info.Config.Replicas > 1 && !doubted:
			doubted = true // a copy may be behind that has just begun to lead
		default:
			return fmt.Errorf("%w: stream %s has lost what followed its message %d", ErrNotFound, f.stream, info.State.LastSeq)
		}
	}
}
