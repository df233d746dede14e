package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/wire"
)

func newPause() *cobra.Command {
	return newOrder(wire.Pause, &cobra.Command{
		Use:   "pause JOB",
		Short: "Hand over no more of a job for now",
		Long: `Makes the job's submit hand over nothing more until flipmill resume. Workers
finish what is queued, which is at most --window parts. Other jobs go on.`,
		Example: `  flipmill pause boards`,
	})
}

func newCancel() *cobra.Command {
	return newOrder(wire.Cancel, &cobra.Command{
		Use:   "cancel JOB",
		Short: "End a job for good",
		Long: `Removes what is queued of the job and ends whatever works on it within seconds:
its submit, with exit code 6, and workers in the middle of a chunk. The aggregator
then drops its results and marks the dataset with a file _CANCELLED; parts that are
committed stay. Until it has done so the job is cancelling. A cancelled job cannot
be resumed, and its name cannot be used again on this server.`,
		Example: `  flipmill cancel boards`,
	})
}

// newOrder completes a verb that gives an order and tells what came of it.
func newOrder(order wire.Order, cmd *cobra.Command) *cobra.Command {
	return newJobVerb(cmd, func(ctx context.Context, v *jobVerb) error {
		if err := v.conn.PutOrder(ctx, v.id, order); err != nil {
			return err
		}
		return v.tell(ctx)
	})
}
