package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/pages"
	"github.com/flipmill/flipmill/pkg/queue"
)

// service is a role that runs until it is told to stop. Its run serves until
// drain ends, then puts down what it holds, and drops that when abort ends.
type service struct {
	verb string
	c    *config.Config
	log  *slog.Logger
	seen *monitor
	run  func(drain, abort context.Context, conn *queue.Conn) error
	site func(conn *queue.Conn) *pages.Site // nil for a role without pages
}

// serve runs a service. It ends well when it was told to stop and could put down
// what it held.
func (s *service) serve(cmd *cobra.Command) error {
	drain, abort, stop := daemon.Context(cmd.Context(), s.c.StopTimeout)
	defer stop()
	conn, err := connect(drain, s.c, s.verb, s.log)
	if err != nil {
		return err
	}
	defer conn.Close()
	unwatch, err := s.seen.serve(s.c.HTTP, conn, s.site, s.log)
	if err != nil {
		return err
	}
	defer unwatch()
	for {
		ended := make(chan error, 1)
		go func() { ended <- s.run(drain, abort, conn) }()
		select {
		case err = <-ended:
		case <-abort.Done():
		}
		switch {
		case abort.Err() != nil:
			return stopped(abort)
		case drain.Err() != nil && errors.Is(err, context.Canceled):
			return nil
		case drain.Err() != nil, !errors.Is(err, queue.ErrNotFound):
			return err
		}
		// The streams are not there yet, or the broker has lost them. A new job
		// will bring them.
		s.log.Warn("waiting for the streams", "error", err)
		s.seen.waits()
		pause(drain, streamsPause)
	}
}

// streamsPause is how long a service waits before it looks for the streams again.
const streamsPause = time.Second

// pause waits for a while, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// stopped is the error of a process whose context a signal has ended.
func stopped(ctx context.Context) error {
	err := context.Cause(ctx)
	if signal, ok := errors.AsType[daemon.Signal](err); ok {
		return withCode(code(signal.ExitCode()), err)
	}
	return err
}
