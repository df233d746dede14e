package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
)

func newWatch() *cobra.Command {
	return newJobVerb(&cobra.Command{
		Use:   "watch JOB",
		Short: "Follow a job on a NATS server to its end",
		Long: `Prints a line whenever a job has come further, and when no aggregator is heard
of. It ends when the job does: with 0 if it is done, with 6 if it failed or was
cancelled. With --json each line is an object as flipmill status prints it.`,
		Example: `  flipmill watch boards`,
	}, func(ctx context.Context, v *jobVerb) error {
		printed := ""
		last, err := v.follow(ctx, func(now *view.Status) error {
			line := now.Line()
			if line == printed {
				return nil
			}
			printed = line
			return v.print(now, line+"\n", true)
		})
		if err != nil {
			return err
		}
		return outcome(last)
	})
}

func newWait() *cobra.Command {
	return newJobVerb(&cobra.Command{
		Use:   "wait JOB",
		Short: "Wait for the end of a job on a NATS server",
		Long: `Ends when the job does, and prints where it stands: with 0 if it is done, with 6
if it failed or was cancelled, with 7 if that takes longer than --timeout, with 8
if there is no such job.`,
		Example: `  flipmill wait boards --timeout 2h && flipmill verify out/job=boards`,
	}, func(ctx context.Context, v *jobVerb) error {
		if v.c.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, v.c.Timeout, errTimeUp)
			defer cancel()
		}
		last, err := v.follow(ctx, func(*view.Status) error { return nil })
		timeUp := err != nil && errors.Is(context.Cause(ctx), errTimeUp) && !errors.Is(err, queue.ErrNotFound)
		switch {
		case err != nil && !timeUp:
			return err
		case last == nil:
			return withCode(exitTimeout, fmt.Errorf("the server has said nothing of job %s after %s", v.id, v.c.Timeout))
		}
		if err := v.print(last, last.Line()+"\n", false); err != nil {
			return err
		}
		if timeUp {
			return withCode(exitTimeout, fmt.Errorf("job %s is %s after %s", v.id, last.State, v.c.Timeout))
		}
		return outcome(last)
	})
}

var errTimeUp = errors.New("time is up")

// follow tells how the job goes on, at least every few seconds, until it has
// ended. It returns the last view, also together with an error.
func (v *jobVerb) follow(ctx context.Context, tell func(*view.Status) error) (*view.Status, error) {
	s, err := v.conn.Standing(ctx, v.id) // which knows when there is no such job
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	changes := make(chan *queue.Standing)
	ended := make(chan error, 1)
	go func() { ended <- v.watch(ctx, changes) }()
	defer func() {
		cancel()
		<-ended
	}()
	tick := time.NewTicker(view.Silence / 3)
	defer tick.Stop()
	for {
		now := view.NewStatus(s, time.Now())
		if err := tell(now); err != nil || s.Ended() {
			return now, err
		}
		select {
		case s = <-changes:
		case <-tick.C:
		case err := <-ended:
			ended <- nil // for the deferred wait
			return now, err
		}
	}
}

// watch sends each change of the job's standing.
func (v *jobVerb) watch(ctx context.Context, changes chan<- *queue.Standing) error {
	for s, err := range v.conn.WatchStanding(ctx, v.id) {
		if err != nil {
			return err
		}
		select {
		case changes <- s:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
