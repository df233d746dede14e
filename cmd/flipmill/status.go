package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
)

func newStatus() *cobra.Command {
	return newJobVerb(&cobra.Command{
		Use:   "status JOB",
		Short: "Tell how far a job on a NATS server is",
		Long: `Tells where a job stands: open, paused, cancelling, done, failed or cancelled; how
many of its records have been received from workers, and how many are committed
to files; which output has the dataset, and which aggregator serves the job. It
needs the NATS server only, and says if no aggregator is heard of.

Progress is unknown until the corpus is read to its end. It never falls, and is
100% only when the dataset is complete.`,
		Example: `  flipmill status boards --nats-url nats://broker:4222`,
	}, func(ctx context.Context, v *jobVerb) error {
		s, err := v.conn.Standing(ctx, v.id)
		if err != nil {
			return err
		}
		status := view.NewStatus(s, time.Now())
		return v.print(status, statusText(status), false)
	})
}

// statusText is the status for people.
func statusText(s *view.Status) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("job", "%s", s.Job)
	row("state", "%s", s.State)
	if s.Reason != "" {
		row("reason", "%s", view.Harmless(s.Reason))
	}
	row("progress", "%s", s.Progress())
	if s.Records == nil {
		row("corpus", "not read to its end yet")
	} else {
		row("corpus", "%s", amount(view.Count{Records: *s.Records, Chunks: *s.Chunks}))
	}
	row("received", "%s", amount(s.Received))
	row("committed", "%s, %s", amount(s.Committed), view.Times(s.Parts, "part", "parts"))
	if s.Retryable > 0 {
		row("retryable", "%s rejects that flipmill retry may make results of", view.Thousands(s.Retryable))
	}
	row("drives", "%d", s.Drives)
	if s.Output != "" {
		row("output", "%s", s.Output)
	}
	row("aggregator", "%s", s.Aggregator())
	if s.Trouble != nil {
		row("trouble", "%s", s.Trouble)
	}
	return b.String()
}

func newList() *cobra.Command {
	return newJobVerb(&cobra.Command{
		Use:     "list",
		Short:   "List the jobs on a NATS server",
		Long:    `Tells of every job on a NATS server what flipmill status tells of one.`,
		Example: `  flipmill list --json`,
		Args:    wantArgs(0, 0, "no arguments"),
	}, func(ctx context.Context, v *jobVerb) error {
		all, err := v.conn.Standings(ctx)
		if err != nil && !errors.Is(err, queue.ErrNotFound) { // before the first job there are no streams
			return err
		}
		views := make([]*view.Status, len(all)) // not nil: an empty list is one too
		for i, s := range all {
			views[i] = view.NewStatus(s, time.Now())
		}
		return v.print(views, table(views), false)
	})
}

// table is a number of jobs for people.
func table(views []*view.Status) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tSTATE\tPROGRESS\tRECORDS\tRECEIVED\tCOMMITTED\tAGGREGATOR")
	for _, v := range views {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Job, v.State, v.Progress(), v.Total(),
			view.Thousands(v.Received.Records), view.Thousands(v.Committed.Records), v.Aggregator())
	}
	w.Flush() // into memory
	return b.String()
}

// amount says how many records in how many chunks.
func amount(c view.Count) string {
	return fmt.Sprintf("%s %s in %s %s", view.Thousands(c.Records), view.Plural(int(c.Records), "record", "records"),
		view.Thousands(c.Chunks), view.Plural(int(c.Chunks), "chunk", "chunks"))
}
