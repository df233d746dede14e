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
	meta   *jetstream.MsgMetadata
	latest bool // to a follower: of what was there when the reading began, nothing is left
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
				if all = append(all, logged{Msg: m, meta: meta}); meta.Sequence.Consumer != uint64(len(all)) {
					return errGap
				}
				left = meta.NumPending
			}
			if err := batch.Error(); err != nil {
				return err
			}
			if len(all) == before { // or what was left has been removed meanwhile
				return errGap
			}
		}
		return nil
	})
	return all, err
}

// snapshotBatch is how many messages of a snapshot are asked for at a time.
const snapshotBatch = 1000

// errGap says that a message was sent and did not arrive.
var errGap = fmt.Errorf("%w: a message was lost on its way", ErrUnreachable)

// checkInterval is how often a log is checked to be the same one still, besides
// after every loss of the connection.
const checkInterval = 10 * time.Second

// heartbeat is how often the broker tells a follower that there is nothing new. A
// consumer is given up when it has said nothing for twice as long: its server is gone.
const heartbeat = 5 * time.Second

// askedAgain is after how long a follower makes sure that it has asked for messages.
const askedAgain = 250 * time.Millisecond

// follow returns the messages of a stream in their order, from the oldest on and
// without end: the consumer is made anew from where it was whenever it or the broker
// was away. It ends with ErrNotFound when the stream, or its end, is lost.
//
// The client's ordered consumer does the same, but what it asked a broker that died it
// waits for ten seconds, and then another one.
func (c *Conn) follow(ctx context.Context, stream string, filters ...string) iter.Seq2[logged, error] {
	return func(yield func(logged, error) bool) {
		f := &follower{conn: c, stream: stream, filters: filters}
		err := c.do(ctx, func(ctx context.Context) error {
			s, err := c.js.Stream(ctx, stream)
			if err == nil {
				f.created = s.CachedInfo().Created
			}
			return err
		})
		if err != nil {
			yield(logged{}, err)
			return
		}
		watched, lose := context.WithCancelCause(ctx)
		var watching sync.WaitGroup
		watching.Go(func() {
			if err := f.awaitLoss(watched); err != nil {
				lose(err)
			}
		})
		defer watching.Wait()
		defer lose(nil)
		for pause := firstPause; ; pause = min(2*pause, lastPause) {
			before := f.last.Load()
			err := f.read(watched, func(m logged) bool { return yield(m, nil) })
			switch {
			case err == nil:
				return
			case watched.Err() != nil:
				yield(logged{}, context.Cause(watched))
				return
			case !isTransient(err):
				yield(logged{}, err)
				return
			case f.last.Load() != before:
				pause = firstPause
			}
			_ = c.sleep(watched, pause) // whatever ends the pause, read finds out
		}
	}
}

// follower is where follow stands in a stream.
type follower struct {
	conn    *Conn
	stream  string
	filters []string
	created time.Time
	last    atomic.Uint64 // place of the latest message
}

// read reads what comes after the latest message, until each returns false, which is
// no error, or the consumer that it makes is lost.
func (f *follower) read(ctx context.Context, each func(logged) bool) error {
	c := f.conn
	var consumer jetstream.Consumer
	var link context.Context
	err := c.do(ctx, func(ctx context.Context) (err error) {
		c.mu.Lock()
		link = c.link
		c.mu.Unlock()
		consumer, err = c.js.CreateConsumer(ctx, f.stream, f.config())
		return err
	})
	if err != nil {
		return err
	}
	err = f.readFrom(ctx, link, consumer, each)
	if err == nil || ctx.Err() != nil {
		c.dismiss(ctx, f.stream, consumer)
	}
	return err
}

// config is that of a consumer which begins after the latest message. Of a bucket, which
// has one message of each subject, all are the last ones.
func (f *follower) config() jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		FilterSubjects:    f.filters,
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: leftBehind,
		MemoryStorage:     true,
		Replicas:          1,
	}
	if last := f.last.Load(); last > 0 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverByStartSequencePolicy, last+1
	}
	return config
}

func (f *follower) readFrom(ctx, link context.Context, consumer jetstream.Consumer, each func(logged) bool) error {
	messages, err := consumer.Messages(jetstream.PullMaxMessages(readAhead), jetstream.PullHeartbeat(heartbeat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return err
	}
	defer messages.Stop()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(link, stop)()
	// One that is replaced before it is sent comes as what it has become: so as many come
	// as there are. How many the broker says are left may stay wrong where one was
	// replaced while the consumer was being made.
	there := consumer.CachedInfo().NumPending
	for n := uint64(1); ; n++ {
		msg, err := nextOf(reading, messages)
		if err != nil {
			return fmt.Errorf("%w: %w", errGap, err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != n {
			return errGap
		}
		f.last.Store(meta.Sequence.Stream)
		if !each(logged{msg, meta, n >= there || meta.NumPending == 0}) {
			return nil
		}
	}
}

// nextOf returns the next message. The client asks for more whenever it is called, but not
// while it has not noticed yet that it has asked: where all came meanwhile, nobody would
// ask again. So it is called again after a while; heartbeats are missed after that.
func nextOf(ctx context.Context, messages jetstream.MessagesContext) (jetstream.Msg, error) {
	soon, stop := context.WithTimeout(ctx, askedAgain)
	defer stop()
	msg, err := messages.Next(jetstream.NextContext(soon))
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		return messages.Next(jetstream.NextContext(ctx))
	}
	return msg, err
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
