package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Names on the broker. Operators and permissions depend on them, do not change.
const (
	tasksStream   = "FLIPMILL_TASKS"
	resultsStream = "FLIPMILL_RESULTS"
	jobsBucket    = "FLIPMILL_JOBS"
	taskPrefix    = "flipmill.task"   // then <lane>.<job>.<chunk>
	resultPrefix  = "flipmill.result" // then <partition>.<job>.<part>.<chunk>
)

// Partitions is the number of partitions of the results: part p is in partition
// p mod Partitions. It is part of the subjects, do not change.
const Partitions = 16

// Lane is a priority among tasks.
type Lane string

// The lanes.
const (
	High   Lane = "high"
	Normal Lane = "normal"
	Low    Lane = "low"
)

// Lanes returns all lanes, the first to be served first.
func Lanes() []Lane { return []Lane{High, Normal, Low} }

// duplicateWindow is how long the broker refuses a message id it has seen. It
// only has to outlast a publisher that sends again what was not acknowledged.
const duplicateWindow = 2 * time.Minute

// mostConsumers bounds how many follow a stream at a time: each process that waits
// for a job follows its records. A server allows 1000 as it comes, which is few.
const mostConsumers = 100_000

// Limits bounds what the broker keeps. Zero values mean the defaults.
type Limits struct {
	Memory        bool          // keep streams in memory instead of in files
	TaskBytes     int64         // tasks; 256 MiB
	ResultBytes   int64         // results; 1 GiB
	MaxAckPending int           // unsettled tasks of a lane; 1024. About 4 times the workers' slots is right
	AckWait       time.Duration // after which a task whose worker is silent goes to another; 30 s
	Replicas      int           // servers that keep a copy, in a cluster; 1
}

func (l Limits) withDefaults() Limits {
	if l.TaskBytes == 0 {
		l.TaskBytes = 256 << 20
	}
	if l.ResultBytes == 0 {
		l.ResultBytes = 1 << 30
	}
	if l.MaxAckPending == 0 {
		l.MaxAckPending = 1024
	}
	if l.AckWait == 0 {
		l.AckWait = 30 * time.Second
	}
	if l.Replicas == 0 {
		l.Replicas = 1
	}
	return l
}

// Setup creates the streams, the lanes' consumers and the bucket, or changes
// their limits. Doing it again is harmless. It fails where waiting would not:
// a broker that is away, has no JetStream or too little room.
func (c *Conn) Setup(ctx context.Context, limits Limits) error {
	return c.setUp(ctx, limits, func(_, setUp func(context.Context) error) error { return c.askAgain(ctx, setUp) })
}

// Ensure is Setup for what is missing: what is there stays as it is. It waits for
// a broker that is away.
func (c *Conn) Ensure(ctx context.Context, limits Limits) error {
	return c.setUp(ctx, limits, func(lookUp, setUp func(context.Context) error) error {
		for {
			err := c.do(ctx, lookUp)
			if errors.Is(err, ErrNotFound) {
				err = c.askAgain(ctx, setUp)
			}
			if ctx.Err() != nil || !errors.Is(err, ErrUnreachable) {
				return err
			}
		}
	})
}

// setUp leaves to do whether something is looked up or set up.
func (c *Conn) setUp(ctx context.Context, limits Limits, do func(lookUp, setUp func(context.Context) error) error) error {
	l := limits.withDefaults()
	for _, s := range append(c.streamConfigs(l), bucketConfig(l)) {
		if err := do(func(ctx context.Context) error {
			_, err := c.js.Stream(ctx, s.Name)
			return err
		}, func(ctx context.Context) error { return c.setUpStream(ctx, s) }); err != nil {
			return fmt.Errorf("set up stream %s: %w", s.Name, err)
		}
	}
	for _, lane := range Lanes() {
		if err := do(func(ctx context.Context) error {
			_, err := c.js.Consumer(ctx, tasksStream, string(lane))
			return err
		}, func(ctx context.Context) error {
			_, err := c.js.CreateOrUpdateConsumer(ctx, tasksStream, laneConfig(lane, l))
			return err
		}); err != nil {
			return fmt.Errorf("set up lane %s: %w", lane, err)
		}
	}
	return nil
}

// setUpStream creates a stream or changes its limits.
func (c *Conn) setUpStream(ctx context.Context, s jetstream.StreamConfig) error {
	_, err := c.js.CreateOrUpdateStream(ctx, s)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == errTooManyConsumers {
		s.MaxConsumers = noLimit // of its own: the account has one that is lower
		_, err = c.js.CreateOrUpdateStream(ctx, s)
	}
	return err
}

func (l Limits) storage() jetstream.StorageType {
	if l.Memory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// streamConfigs returns the two streams of messages.
func (c *Conn) streamConfigs(l Limits) []jetstream.StreamConfig {
	streams := []jetstream.StreamConfig{{
		Name:      tasksStream,
		Subjects:  []string{taskPrefix + ".*.*.*"},
		Retention: jetstream.WorkQueuePolicy,
		MaxBytes:  l.TaskBytes,
	}, {
		Name:         resultsStream,
		Subjects:     []string{resultPrefix + ".*.*.*.*"},
		Retention:    jetstream.LimitsPolicy,
		MaxBytes:     l.ResultBytes,
		AllowDirect:  true,
		MaxConsumers: mostConsumers,
	}}
	for i := range streams {
		s := &streams[i]
		s.Storage, s.Replicas = l.storage(), l.Replicas
		s.Discard = jetstream.DiscardNew // a full stream refuses; it forgets nothing
		s.Duplicates = duplicateWindow
		s.MaxMsgSize = int32(c.nc.MaxPayload())
	}
	return streams
}

// laneConfig describes the consumer that all workers share. MaxDeliver has no
// limit: a task that reaches it would stay in the stream, delivered to nobody,
// so that giving up is the worker's decision. BackOff is not used, as it
// overrides AckWait. MaxWaiting, 512 by default, is how many workers may wait for a
// task of the lane at once; it cannot be changed later.
func laneConfig(lane Lane, l Limits) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       string(lane),
		FilterSubject: taskPrefix + "." + string(lane) + ".*.*",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       l.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: l.MaxAckPending,
		MaxWaiting:    1 << 16,
	}
}

// bucketConfig describes the stream below the bucket, by the specification of
// NATS (ADR-8).
func bucketConfig(l Limits) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              bucketStream,
		Subjects:          []string{keyPrefix + ">"},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           noLimit,
		MaxBytes:          noLimit,
		MaxMsgSize:        noLimit,
		MaxConsumers:      mostConsumers,
		Duplicates:        duplicateWindow,
		AllowRollup:       true,
		DenyDelete:        true,
		AllowDirect:       false, // each copy would answer, also one that is behind
		Storage:           l.storage(),
		Replicas:          l.Replicas,
	}
}
