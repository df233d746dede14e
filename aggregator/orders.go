package aggregator

import (
	"context"
	"fmt"
)

// refresh writes the ledgers of the jobs that are under way.
func (a *aggregator) refresh(ctx context.Context) error {
	for _, j := range a.jobs {
		a.keepRecord(j)
		j.chunks.Refresh()
		if err := a.proceed(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// turnToRetry makes the dataset beside the finished one the job's, where a retry
// begins or was begun.
func (j *job) turnToRetry(begins bool) error {
	turn := j.dir.Retrying
	if begins {
		turn = j.dir.Retry
	}
	again, err := turn()
	if again != nil {
		j.dir, j.old = again, j.dir
	}
	return err
}

// cancel marks the dataset of a job that people do not want any more. One that was
// finished before stays as it is.
func (a *aggregator) cancel(j *job) {
	a.dropRecord(j)
	reason := ""
	end := j.dir.Cancel
	if j.old != nil {
		end = j.old.Abandon
	}
	if err := end(); err != nil {
		// The ledger says it too, and a full disk is no reason to go on.
		a.log.Warn("mark of the cancelled dataset not written", "job", j.id, "error", err)
		reason = fmt.Sprintf("its dataset is not marked: %v", err)
	}
	j.chunks.Cancel(reason)
}
