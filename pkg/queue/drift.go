package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// drift is how something on the broker differs from what Setup makes. Rules are
// what the roles rely on; limits are for an operator to choose.
type drift struct{ rules, limits []string }

func (d *drift) rule(name string, got, want any)  { d.rules = differ(d.rules, name, got, want) }
func (d *drift) limit(name string, got, want any) { d.limits = differ(d.limits, name, got, want) }
func (d *drift) all() []string                    { return slices.Concat(d.rules, d.limits) }

func differ(list []string, name string, got, want any) []string {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		list = append(list, fmt.Sprintf("%s is %s, not %s", name, g, w))
	}
	return list
}

// noLimit is what the broker makes of a limit that is not set.
const noLimit = -1

func streamDrift(got, want jetstream.StreamConfig) (d drift) {
	d.rule("subjects", got.Subjects, want.Subjects)
	d.rule("retention", got.Retention, want.Retention)
	d.rule("discard", got.Discard, want.Discard)
	d.rule("max-age", got.MaxAge, want.MaxAge)
	d.rule("max-msgs", got.MaxMsgs, noLimit)
	d.rule("max-msgs-per-subject", got.MaxMsgsPerSubject, perSubject(want))
	d.rule("allow-direct", got.AllowDirect, want.AllowDirect)
	d.limit("storage", got.Storage, want.Storage)
	d.limit("replicas", got.Replicas, want.Replicas)
	d.limit("max-bytes", got.MaxBytes, want.MaxBytes)
	d.limit("max-msg-size", got.MaxMsgSize, want.MaxMsgSize)
	d.limit("max-consumers", got.MaxConsumers, maxConsumers(want))
	return d
}

func maxConsumers(want jetstream.StreamConfig) int {
	if want.MaxConsumers == 0 {
		return noLimit
	}
	return want.MaxConsumers
}

func perSubject(want jetstream.StreamConfig) int64 {
	if want.MaxMsgsPerSubject == 0 {
		return noLimit
	}
	return want.MaxMsgsPerSubject
}

func laneDrift(got, want jetstream.ConsumerConfig) (d drift) {
	d.rule("filter", got.FilterSubject, want.FilterSubject)
	d.rule("ack-policy", got.AckPolicy, want.AckPolicy)
	d.rule("max-deliver", got.MaxDeliver, want.MaxDeliver)
	d.rule("backoff", got.BackOff, want.BackOff)
	d.limit("ack-wait", got.AckWait, want.AckWait)
	d.limit("max-ack-pending", got.MaxAckPending, want.MaxAckPending)
	return d
}

// warnDrift says in the log where streams break the rules. Who binds to them
// never changes them: an operator may know why they are so, and setup is the
// one that may. A look-up that fails is not told here: what needs the stream
// will fail the same way.
func (c *Conn) warnDrift(ctx context.Context, names ...string) {
	for _, want := range c.streamConfigs(Limits{}.withDefaults()) {
		if !slices.Contains(names, want.Name) {
			continue
		}
		if s, err := c.stream(ctx, want.Name); err == nil {
			c.warn(want.Name, streamDrift(s.CachedInfo().Config, want))
		}
	}
}

func (c *Conn) warn(name string, d drift) {
	for _, rule := range d.rules {
		c.log.Warn("the broker is not as setup makes it", "name", name, "difference", rule)
	}
}
