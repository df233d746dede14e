package queue

import (
	"context"
	"iter"

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

// follow returns the messages of a stream in their order, without end: the
// consumer is made anew from where it was whenever it or the broker was away.
func (c *Conn) follow(ctx context.Context, stream string, config jetstream.OrderedConsumerConfig) iter.Seq2[logged, error] {
	return func(yield func(logged, error) bool) {
		var messages jetstream.MessagesContext
		err := c.do(ctx, func(ctx context.Context) error {
			consumer, err := c.js.OrderedConsumer(ctx, stream, config)
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
		// Next hears of neither while it makes the consumer anew.
		defer context.AfterFunc(ctx, messages.Stop)()
		defer context.AfterFunc(c.life, messages.Stop)()
		for {
			m, err := c.nextLogged(ctx, messages)
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func (c *Conn) nextLogged(ctx context.Context, messages jetstream.MessagesContext) (logged, error) {
	msg, err := messages.Next(jetstream.NextContext(ctx))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return logged{}, ctx.Err()
	case c.nc.IsClosed():
		return logged{}, c.Err()
	default:
		return logged{}, err
	}
	meta, err := msg.Metadata()
	if err != nil {
		return logged{}, err
	}
	return logged{msg, meta.Sequence.Stream}, nil
}
