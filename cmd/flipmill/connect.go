package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/queue"
)

// connect reaches the broker that the configuration names, for a verb.
func connect(ctx context.Context, c *config.Config, verb string, log *slog.Logger) (*queue.Conn, error) {
	conn, err := queue.Connect(ctx, queue.Options{
		URL:         c.NATSURL,
		Name:        "flipmill " + verb,
		Role:        roleOf(verb),
		Log:         log,
		Credentials: c.Credentials,
		CA:          c.TLSCA,
		Cert:        c.TLSCert,
		Key:         c.TLSKey,
		Insecure:    c.Insecure,
	})
	if errors.Is(err, queue.ErrOptions) {
		return nil, withCode(exitConfig, err)
	}
	if errors.Is(err, queue.ErrUnreachable) && c.Origin("nats-url").Source == config.Default {
		return nil, fmt.Errorf("%s: %w; is a NATS server running there? --nats-url or NATS_URL names another; flipmill run needs none", redact(c.NATSURL), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s (from %s): %w", redact(c.NATSURL), c.Origin("nats-url"), err)
	}
	return conn, nil
}

// roleOf returns what a verb's connection is for: which permissions it needs.
func roleOf(verb string) queue.Role {
	switch verb {
	case "submit":
		return queue.Producer
	case "worker":
		return queue.Worker
	case "aggregator":
		return queue.Aggregator
	case "doctor":
		return queue.Doctor
	case "setup", "pause", "resume", "retry", "cancel":
		return queue.Operator
	}
	return queue.Observer
}

// redact takes the passwords out of a list of addresses.
func redact(list string) string {
	addresses := strings.Split(list, ",")
	for i, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			addresses[i] = u.Redacted()
		}
	}
	return strings.Join(addresses, ",")
}
