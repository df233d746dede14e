// Package daemon gives a process its manners: it stops in two steps when it is
// told to, writes its messages in one form, and tells over HTTP how it is.
//
// Terms: to drain is to take no new work and finish what is held; to abort is
// to drop what is held. The first SIGINT or SIGTERM asks to drain, the second
// to abort. The third finds no handler and kills the process.
//
//	drain, abort, stop := daemon.Context(ctx, c.StopTimeout)
//	defer stop()
//
// Fetch with drain, work with abort. Whoever gives up because of one of them
// returns its context.Cause: a [Signal], which knows the exit code.
//
// Invariants: whenever abort is done, drain is; stop returns only when nothing
// that Context started runs any more, and the signals then have their default
// effect. Contexts, stop and loggers are safe for concurrent use.
package daemon

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Signal is the cause of a context that a signal ended.
type Signal syscall.Signal

// Error names the signal.
func (s Signal) Error() string { return "stopped by signal: " + syscall.Signal(s).String() }

// ExitCode is what shells expect of a process that the signal ended: 128 and
// the signal's number, so 130 after SIGINT and 143 after SIGTERM.
func (s Signal) ExitCode() int { return 128 + int(s) }

// Context returns a context that the first signal ends and one that the second
// ends. When draining takes longer than patience, abort ends with the first
// signal as its cause; patience 0 has no limit. Both contexts end with parent.
//
// From then on, a file that grows beyond the process's limit is an error of the
// write, as a full disk is: by default it would be the end of the process.
func Context(parent context.Context, patience time.Duration) (drain, abort context.Context, stop func()) {
	signal.Ignore(syscall.SIGXFSZ)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return watch(parent, patience, signals, func() { signal.Stop(signals) })
}

// watch is Context for any source of signals; ignore ends their delivery.
func watch(parent context.Context, patience time.Duration, signals <-chan os.Signal, ignore func()) (drain, abort context.Context, stop func()) {
	abort, cancelAbort := context.WithCancelCause(parent)
	drain, cancelDrain := context.WithCancelCause(abort)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		cause := await(abort, signals, nil, nil)
		if cause != nil {
			cancelDrain(cause)
			cause = await(abort, signals, after(patience), cause)
		}
		ignore() // first, so that whoever sees abort done can rely on the next signal to kill
		cancelAbort(cause)
	}()
	return drain, abort, func() {
		cancelAbort(nil)
		<-finished
	}
}

// await returns the next signal, overdue when the time is up, or nil when ctx
// ends before.
func await(ctx context.Context, signals <-chan os.Signal, timeUp <-chan time.Time, overdue error) error {
	select {
	case s := <-signals:
		return Signal(s.(syscall.Signal)) // all that os/signal delivers
	case <-timeUp:
		return overdue
	case <-ctx.Done():
		return nil
	}
}

// after is time.After, with 0 for never.
func after(d time.Duration) <-chan time.Time {
	if d == 0 {
		return nil
	}
	return time.After(d)
}

// NewLogger returns a logger that writes messages from the level up, as text or
// as json.
func NewLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options))
	case "json":
		return slog.New(slog.NewJSONHandler(w, options))
	default:
		panic("BUG: daemon: log format " + format)
	}
}
