package aggregator

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

// Pauses before an output that takes no files is tried again.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 15 * time.Second
)

// passes reports an error of the output that people or time can remove, with
// nothing lost: a part begins in a new file each time. Anything else is wrong
// with the job itself.
func passes(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, // no room
		syscall.EIO, syscall.EROFS, // a disk in trouble, or out of reach
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	}, func(target error) bool { return errors.Is(err, target) })
}

// waitOrFail deals with an error of the output: the job waits if that can help,
// and is given up if not. Meanwhile its results stay in the log, its producer
// comes to the end of the window, and other jobs go on.
func (a *aggregator) waitOrFail(ctx context.Context, j *job, cause error) error {
	if ctx.Err() != nil || !passes(cause) {
		return a.fail(ctx, j, cause)
	}
	j.waits = true
	a.opts.Metrics.waits.Inc()
	j.ledger.Reason = cause.Error()
	if a.retry == nil {
		a.pause = min(max(2*a.pause, firstPause), lastPause)
		a.retry = time.After(a.pause)
	}
	a.log.Warn("job waits for its output, nothing is lost", "job", j.id, "error", cause, "next_try", a.pause)
	return a.publish(ctx, j)
}

// tryAgain takes up the jobs that wait.
func (a *aggregator) tryAgain(ctx context.Context) error {
	a.retry = nil
	for _, j := range a.jobs {
		if !j.waits || j.dropped {
			continue
		}
		j.waits, j.ledger.Reason = false, ""
		for _, part := range j.chunks.uncommitted() {
			if err := a.advance(ctx, j, part); err != nil {
				return err
			}
		}
		if !j.waits {
			a.log.Info("job goes on", "job", j.id)
		}
	}
	if a.retry == nil {
		a.pause = 0
	}
	return nil
}
