package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

func newRetry() *cobra.Command {
	return newJobVerb(&cobra.Command{
		Use:   "retry JOB",
		Short: "Solve again what workers failed at in a job that is done",
		Long: `Makes those parts of a finished dataset again that have rejects for which that may
help: worker_failed. Records that could not be read stay rejects. flipmill status
says how many rejects a retry may help.

The job is open until its new dataset is complete. Until then the old one stays as
it is, and then the new one takes its place, in one step on Linux. The corpus is
read again as by flipmill resume, which also goes on with a retry that was
interrupted. In a bucket no dataset can take the place of another, so that there a
retry finds nothing to do: submit the corpus once more, as another job.`,
		Example: `  flipmill retry boards --wait`,
	}, func(ctx context.Context, v *jobVerb) error {
		if err := v.conn.Ensure(ctx, queue.Limits{}); err != nil {
			return err
		}
		s, err := v.conn.Standing(ctx, v.id)
		switch {
		case err != nil:
			return err
		case s.State() == wire.Cancelled.String(), s.Order == wire.Cancel: // which came too late, and is final all the same
			return fmt.Errorf("%w: it is cancelled", queue.ErrEnded)
		case s.State() != wire.Done.String():
			return fmt.Errorf("job %s is %s: only one that is done can be retried; flipmill resume drives it to its end", v.id, s.State())
		case s.Ledger.Retryable == 0:
			fmt.Fprintf(v.err, "job %s has no rejects for which a retry may help: worker_failed, in a folder\n", v.id)
			return v.tell(ctx)
		}
		job, err := v.conn.RetryJob(ctx, v.id)
		if err != nil {
			return err
		}
		if err := v.redrive(ctx, "retry", job); err != nil {
			return err
		}
		return v.tell(ctx)
	})
}
