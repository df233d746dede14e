package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Pauses before a request is sent again.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// firstAttempt is how long the first attempt at a request may take that can be
// repeated. What a server was asked before it died, or before another one led, is never
// answered, and everybody would stand still for as long as that is waited for. Each
// further attempt may take twice as long, up to the Timeout of the Options, so that a
// broker that is slow is waited for too.
const firstAttempt = 2 * time.Second

// Connected reports whether the broker is there at the moment.
func (c *Conn) Connected() bool { return c.nc.IsConnected() }

// do runs a request until it succeeds, fails for good, or ctx ends. The request
// must be one that can be repeated.
func (c *Conn) do(ctx context.Context, request func(context.Context) error) error {
	patience := min(firstAttempt, c.timeout)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := c.attempt(ctx, patience, request)
		if err == nil || ctx.Err() != nil || !isTransient(err) {
			return err
		}
		if pause == firstPause {
			c.log.Info("waiting for the broker", "error", err)
		}
		if err := c.sleep(ctx, pause); err != nil {
			return err
		}
		if errors.Is(err, context.DeadlineExceeded) { // not where there was nobody to ask
			patience = min(2*patience, c.timeout)
		}
	}
}

// once runs a request that may not be repeated, or only by those who know how.
func (c *Conn) once(ctx context.Context, request func(context.Context) error) error {
	return c.attempt(ctx, c.timeout, request)
}

// askAgain is once for a request that may be repeated, and is where there is no answer: the
// servers of a cluster answer nothing about a stream that has no leader yet. Unlike do it
// comes to an end, after twice the Timeout of the Options.
func (c *Conn) askAgain(ctx context.Context, request func(context.Context) error) error {
	end := time.Now().Add(2 * c.timeout)
	for patience := min(firstAttempt, c.timeout); ; patience *= 2 {
		err := c.attempt(ctx, min(patience, time.Until(end)), request)
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || !time.Now().Before(end) {
			return err
		}
	}
}

// attempt runs a request. Its context ends early when the connection is lost,
// because the answer would never come.
func (c *Conn) attempt(ctx context.Context, patience time.Duration, request func(context.Context) error) error {
	attempt, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.mu.Lock()
	link, denials := c.link, c.denials
	c.mu.Unlock()
	stop := context.AfterFunc(link, cancel)
	defer stop()
	err := request(attempt)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case link.Err() != nil && c.life.Err() == nil && errors.Is(err, context.Canceled):
		err = fmt.Errorf("%w: the connection was lost", ErrUnreachable)
	}
	return c.explain(err, denials)
}

// explain puts an error into our terms. denials is the number of permission
// errors before the request: one that came since then is the reason.
func (c *Conn) explain(err error, denials int) error {
	c.mu.Lock()
	denied, now := c.denied, c.denials
	c.mu.Unlock()
	switch {
	case now > denials:
		return fmt.Errorf("%w: %w", ErrDenied, denied)
	case errors.Is(err, nats.ErrConnectionClosed):
		return c.Err()
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	for _, missing := range []error{
		jetstream.ErrMsgNotFound, jetstream.ErrKeyNotFound,
		jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound, jetstream.ErrBucketNotFound,
	} {
		if errors.Is(err, missing) {
			return fmt.Errorf("%w: %w", ErrNotFound, err)
		}
	}
	return err
}

// Error codes of the JetStream API for what passes, besides those that come with
// status 503. First a lack of room, of which errStoreFailed is a stream at its
// limit; then what a cluster says while its servers come, go and choose leaders. A
// message is in process until its copies are stored: who sends it again meanwhile,
// because the answer was lost, is told so.
const (
	errTooManyConsumers jetstream.ErrorCode = 10026
	errMemoryExceeded   jetstream.ErrorCode = 10028
	errStorageExceeded  jetstream.ErrorCode = 10047
	errStoreFailed      jetstream.ErrorCode = 10077

	errNotAssigned     jetstream.ErrorCode = 10007
	errNotLeader       jetstream.ErrorCode = 10009
	errRaft            jetstream.ErrorCode = 10041
	errStreamOffline   jetstream.ErrorCode = 10118
	errConsumerOffline jetstream.ErrorCode = 10119
	errInProcess       jetstream.ErrorCode = 10158
)

const statusUnavailable = 503

// isTransient reports whether waiting can heal an error that explain returned.
func isTransient(err error) bool {
	if errors.Is(err, ErrDenied) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrClosed) {
		return false
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode {
		case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
			return false // 503 as well
		case errTooManyConsumers, errMemoryExceeded, errStorageExceeded, errStoreFailed,
			errNotAssigned, errNotLeader, errRaft, errStreamOffline, errConsumerOffline, errInProcess:
			return true
		}
		return api.Code == statusUnavailable
	}
	if _, cut := errors.AsType[net.Error](err); cut {
		return true // the connection broke while the request was written
	}
	for _, transient := range []error{
		ErrUnreachable, context.Canceled, context.DeadlineExceeded, nats.ErrTimeout, // no answer, or the connection was lost
		nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrStaleConnection,
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, // the broker is there, its streams are not yet
		jetstream.ErrServerShutdown, jetstream.ErrConsumerLeadershipChanged,
	} {
		if errors.Is(err, transient) {
			return true
		}
	}
	return false
}

// sleep waits for a while, at most until ctx ends or the connection is closed.
func (c *Conn) sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return c.Err()
	}
}

// stream returns the handle of a stream, which is looked up once.
func (c *Conn) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	c.mu.Lock()
	s := c.streams[name]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	err := c.do(ctx, func(ctx context.Context) (err error) {
		s, err = c.js.Stream(ctx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up stream %s: %w", name, err)
	}
	c.mu.Lock()
	c.streams[name] = s
	c.mu.Unlock()
	return s, nil
}

// streamInfo returns how a stream is.
func (c *Conn) streamInfo(ctx context.Context, name string, opts ...jetstream.StreamInfoOpt) (info *jetstream.StreamInfo, err error) {
	s, err := c.stream(ctx, name)
	if err != nil {
		return nil, err
	}
	err = c.do(ctx, func(ctx context.Context) (err error) {
		info, err = s.Info(ctx, opts...)
		// Where no server leads the stream, another one answers that knows nothing
		// of its messages.
		if err == nil && info.Cluster != nil && info.Cluster.Leader == "" {
			return fmt.Errorf("%w: no server leads stream %s", ErrUnreachable, name)
		}
		return err
	})
	return info, err
}

// jobs returns the handle of the bucket, which is looked up once.
func (c *Conn) jobs(ctx context.Context) (jetstream.KeyValue, error) {
	c.mu.Lock()
	kv := c.bucket
	c.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	err := c.do(ctx, func(ctx context.Context) (err error) {
		kv, err = c.js.KeyValue(ctx, jobsBucket)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up bucket %s: %w", jobsBucket, err)
	}
	c.mu.Lock()
	c.bucket = kv
	c.mu.Unlock()
	return kv, nil
}
