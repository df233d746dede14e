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

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
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
		e := newExplanation(s, places, time.Now())
		return v.print(e, e.text(), false)
	})
}

// explanation is a job with the chunks that it waits for.
type explanation struct {
	view
	Slowest *chunkPlace  `json:"slowest"` // the oldest that is not solved; null if there is none
	Places  []chunkPlace `json:"places"`  // by chunk
}

type chunkPlace struct {
	Chunk   int64   `json:"chunk"`
	Part    int64   `json:"part"`
	Where   string  `json:"where"`
	Lane    string  `json:"lane,omitempty"`
	Seconds float64 `json:"seconds"` // since it is there; 0 where it is missing

	Deliveries int64      `json:"deliveries"`      // of its task to workers, as far as they have written them down
	Error      string     `json:"error,omitempty"` // the latest
	Retry      *time.Time `json:"next_retry"`      // when it is tried again after an error; null where it is not put back
}

// missing is where a chunk is that the broker does not have.
const missing = "missing"

// newExplanation finds the chunks of open parts among the places.
func newExplanation(s *queue.Standing, places map[int64]queue.Place, now time.Time) *explanation {
	e := &explanation{view: *newView(s, now), Places: []chunkPlace{}}
	if s.Ended() {
		return e
	}
	last := int64(-1) // chunk that is known
	for chunk := range maps.Keys(places) {
		last = max(last, chunk)
	}
	if s.Job.Totals != nil {
		last = s.Job.Totals.Chunks - 1
	}
	for chunk := int64(0); chunk <= last; chunk++ {
		part := chunk / int64(s.Job.Spec.PartChunks)
		if s.Ledger != nil {
			if _, committed := s.Ledger.Part(part); committed {
				chunk = (part+1)*int64(s.Job.Spec.PartChunks) - 1
				continue
			}
		}
		c := chunkPlace{Chunk: chunk, Part: part, Where: missing}
		if p, ok := places[chunk]; ok {
			c.Where, c.Lane, c.Seconds = p.Where, string(p.Lane), max(0, now.Sub(p.Since).Seconds())
		}
		c.trouble(s.Troubles.Of(chunk), now)
		e.Places = append(e.Places, c)
	}
	e.Slowest = slowest(e.Places)
	return e
}

// trouble enters what workers have written down of the chunk, nil if nothing. A task
// is written down from its second delivery on.
func (c *chunkPlace) trouble(t *wire.Trouble, now time.Time) {
	if c.Where == queue.Taken || c.Where == queue.Solved {
		c.Deliveries = 1
	}
	if t == nil {
		return
	}
	c.Deliveries, c.Error = t.Delivered, t.Message
	if retry := time.UnixMilli(t.Retry).UTC(); c.Where == queue.Taken && retry.After(now) {
		c.Retry = &retry
	}
}

// slowest returns the oldest chunk that is not solved; one that is missing is
// older than any.
func slowest(places []chunkPlace) (oldest *chunkPlace) {
	for i := range places {
		p := &places[i]
		switch {
		case p.Where == missing:
			return p
		case p.Where != queue.Solved && (oldest == nil || p.Seconds > oldest.Seconds):
			oldest = p
		}
	}
	return oldest
}

// text is the explanation for people.
func (e *explanation) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, e.line())
	if e.Trouble != nil {
		fmt.Fprintln(&b, "latest trouble:", e.Trouble.text())
	}
	if len(e.Places) == 0 {
		return b.String()
	}
	counts := map[string]int{}
	for _, p := range e.Places {
		counts[p.Where]++
	}
	fmt.Fprintf(&b, "%s chunks of open parts:", thousands(int64(len(e.Places))))
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
		fmt.Fprintf(w, "%d\t%d\t%s\t%.0f\t%s\t%d\t%s\t%s\n", p.Chunk, p.Part, p.Where, p.Seconds, cmp.Or(p.Lane, "-"), p.Deliveries, retry, p.Error)
	}
	w.Flush() // into memory
	return b.String()
}
