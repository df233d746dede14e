package queue

import (
	"context"
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
	seq uint64
}

// checkInterval is how often a log is checked to be the same one still, besides
// after every loss of the connection.
const checkInterval = 10 * time.Second

// follow returns the messages of a stream in their order, without end: the
// consumer is made anew from where it was whenever it or the broker was away.
// It ends with ErrNotFound when the stream, or its end, is lost.
func (c *Conn) follow(ctx context.Context, stream string, config jetstream.OrderedConsumerConfig) iter.Seq2[logged, error] {
	return func(yield func(logged, error) bool) {
		var messages jetstream.MessagesContext
		var created time.Time
		err := c.do(ctx, func(ctx context.Context) error {
			s, err := c.js.Stream(ctx, stream)
			if err != nil {
				return err
			}
			created = s.CachedInfo().Created
			consumer, err := s.OrderedConsumer(ctx, config)
			if err != nil {
				return err
			}
			messages, err = consumer.Messages(jetstream.PullMaxMessages(readAhead))
			return err
		})
		if err != nil {
			yield(logged{}, err)
			return
		}
		defer messages.Stop()
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
	return logged{msg, meta.Sequence.Stream}, nil
}

// awaitLoss returns an error when the stream is no longer the one that is being
// followed: it was deleted, or the broker came back without it or without its
// end. The ordered consumer does not notice. It would wait for the place after
// its last one, and pass over all that is stored until then.
func (f *follower) awaitLoss(ctx context.Context) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
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
		var info *jetstream.StreamInfo
		err := f.conn.do(ctx, func(ctx context.Context) error {
			s, err := f.conn.js.Stream(ctx, f.stream)
			if err == nil {
				info = s.CachedInfo()
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !info.Created.Equal(f.created):
			return fmt.Errorf("%w: stream %s was deleted, this is another", ErrNotFound, f.stream)
		case info.State.LastSeq < last:
			return fmt.Errorf("%w: stream %s has lost what followed its message %d", ErrNotFound, f.stream, info.State.LastSeq)
		}
	}
}
