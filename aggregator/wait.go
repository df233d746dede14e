package aggregator

import (
	"context"
	"time"

	"github.com/flipmill/flipmill/pkg/dataset"
)

// Pauses before an output that takes no files is tried again.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 15 * time.Second
)

// waitOrFail deals with an error of the output: the job waits if that can help,
// and is given up if not. Meanwhile its results stay in the log, its producer
// comes to the end of the window, and other jobs go on.
func (a *aggregator) waitOrFail(ctx context.Context, j *job, cause error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !dataset.Passes(cause):
		j.chunks.Fail(cause)
		return nil
	}
	j.chunks.Wait(cause)
	a.opts.Metrics.waits.Inc()
	if a.retry == nil {
		a.pause = min(max(2*a.pause, firstPause), lastPause)
		a.retry = time.After(a.pause)
	}
	a.log.Warn("job waits for its output, nothing is lost", "job", j.id, "error", cause, "next_try", a.pause)
	return nil
}

// tryAgain takes up the jobs that wait.
func (a *aggregator) tryAgain(ctx context.Context) error {
	a.retry = nil
	for _, j := range a.jobs {
		if !j.chunks.Waits() {
			continue
		}
		j.chunks.Retry()
		if err := a.proceed(ctx, j); err != nil {
			return err
		}
		if !j.chunks.Waits() {
			a.log.Info("job goes on", "job", j.id)
		}
	}
	if a.retry == nil {
		a.pause = 0
	}
	return nil
}
