package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/view"
)

func newWhy() *cobra.Command {
	return newJobVerb(&cobra.Command{
		Use:   "why JOB",
		Short: "Tell what a job on a NATS server waits for",
		Long: `Lists the chunks of the parts that are open, and where each is:

  queued   no worker has taken it yet: are there workers? is a higher lane busy?
  taken    a worker has it; or had it, and was killed or had to put it back
  solved   its result waits for the rest of its part, or for the aggregator
  missing  the server does not have it: on its way, or lost, which the same
           flipmill submit again repairs

and for how long it has been there. The oldest that is not solved is named: it
is what holds the job up. With each chunk are shown how often workers have been
given it, their latest error, and when one that was put back is tried again. The
task of a worker that died without a word comes again after the --ack-wait of
flipmill setup.`,
		Example: `  flipmill why boards`,
	}, func(ctx context.Context, v *jobVerb) error {
		places, err := v.conn.Locate(ctx, v.id)
		if err != nil {
			return err
		}
		s, err := v.conn.Standing(ctx, v.id) // after the places, see Locate
		if err != nil {
			return err
		}
		e := view.Explain(s, places, time.Now())
		return v.print(e, whyText(e), false)
	})
}

// text is the explanation for people.
func whyText(e *view.Explanation) string {
	var b strings.Builder
	fmt.Fprintln(&b, e.Line())
	if e.Trouble != nil {
		fmt.Fprintln(&b, "latest trouble:", e.Trouble)
	}
	if len(e.Places) == 0 {
		return b.String()
	}
	counts := map[string]int{}
	for _, p := range e.Places {
		counts[p.Where]++
	}
	fmt.Fprintf(&b, "%s chunks of open parts:", view.Thousands(int64(len(e.Places))))
	for i, where := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s %d %s", strings.Repeat(",", min(i, 1)), counts[where], where)
	}
	b.WriteByte('\n')
	if p := e.Slowest; p != nil {
		fmt.Fprintf(&b, "slowest: chunk %d of part %d, %s for %.0f s\n", p.Chunk, p.Part, p.Where, p.Seconds)
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHUNK\tPART\tWHERE\tSECONDS\tLANE\tDELIVERIES\tRETRY\tERROR")
	for _, p := range e.Places {
		retry := "-"
		if p.Retry != nil {
			retry = p.Retry.Format(time.TimeOnly)
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%.0f\t%s\t%d\t%s\t%s\n", p.Chunk, p.Part, p.Where, p.Seconds, cmp.Or(p.Lane, "-"), p.Deliveries, retry, view.Harmless(p.Error))
	}
	w.Flush() // into memory
	return b.String()
}
