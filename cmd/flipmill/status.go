package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
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
		view := newView(s, time.Now())
		return v.print(view, view.text(), false)
	})
}

// text is the view for people.
func (v *view) text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("job", "%s", v.Job)
	row("state", "%s", v.State)
	if v.Reason != "" {
		row("reason", "%s", v.Reason)
	}
	row("progress", "%s", v.percent())
	if v.Records == nil {
		row("corpus", "not read to its end yet")
	} else {
		row("corpus", "%s records in %s chunks", thousands(*v.Records), thousands(*v.Chunks))
	}
	row("received", "%s records in %s chunks", thousands(v.Received.Records), thousands(v.Received.Chunks))
	row("committed", "%s records in %s chunks, %d parts", thousands(v.Committed.Records), thousands(v.Committed.Chunks), v.Parts)
	if v.Retryable > 0 {
		row("retryable", "%s rejects that flipmill retry may make results of", thousands(v.Retryable))
	}
	row("drives", "%d", v.Drives)
	if v.Output != "" {
		row("output", "%s", v.Output)
	}
	row("aggregator", "%s", v.aggregator())
	if v.Trouble != nil {
		row("trouble", "%s", v.Trouble.text())
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
		if err != nil {
			return err
		}
		views := make([]*view, len(all)) // not nil: an empty list is one too
		for i, s := range all {
			views[i] = newView(s, time.Now())
		}
		return v.print(views, table(views), false)
	})
}

// table is a number of views for people.
func table(views []*view) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOB\tSTATE\tPROGRESS\tRECORDS\tRECEIVED\tCOMMITTED\tAGGREGATOR")
	for _, v := range views {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Job, v.State, v.percent(), v.total(),
			thousands(v.Received.Records), thousands(v.Committed.Records), v.aggregator())
	}
	w.Flush() // into memory
	return b.String()
}
