package view

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Explanation is a job with the chunks that it waits for.
type Explanation struct {
	Status
	Slowest *Place  `json:"slowest"` // the oldest that is not solved; null if there is none
	Places  []Place `json:"places"`  // by chunk
}

// Place is where a chunk is.
type Place struct {
	Chunk   int64   `json:"chunk"`
	Part    int64   `json:"part"`
	Where   string  `json:"where"`
	Lane    string  `json:"lane,omitempty"`
	Seconds float64 `json:"seconds"` // since it is there; 0 where it is missing

	Deliveries int64      `json:"deliveries"`      // of its task to workers, as far as they have written them down
	Error      string     `json:"error,omitempty"` // the latest
	Retry      *time.Time `json:"next_retry"`      // when it is tried again after an error; null where it is not put back
}

// Missing is where a chunk is that the broker does not have.
const Missing = "missing"

// maxAhead is how many chunks there can be, at most, from the oldest part that is not
// committed to the end of a window, which is far less. What has a number beyond that
// was not handed over by a producer, and memory for all before it must not be taken.
const maxAhead = 1 << 20

// Explain finds the chunks of open parts among the places.
func Explain(s *queue.Standing, places map[int64]queue.Place, now time.Time) *Explanation {
	e := &Explanation{Status: *NewStatus(s, now), Places: []Place{}}
	if s.Ended() {
		return e
	}
	last := int64(-1) // chunk that is known
	beyond := int64(maxAhead)
	if s.Ledger != nil {
		beyond += s.Ledger.Oldest() * int64(s.Job.Spec.PartChunks)
	}
	for chunk := range maps.Keys(places) {
		if chunk < beyond {
			last = max(last, chunk)
		}
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
		c := Place{Chunk: chunk, Part: part, Where: Missing}
		if p, ok := places[chunk]; ok {
			c.Where, c.Lane, c.Seconds = p.Where, string(p.Lane), max(0, now.Sub(p.Since).Seconds())
		}
		c.trouble(s.Troubles.Of(chunk), now)
		e.Places = append(e.Places, c)
	}
	if open := e.Oldest(); len(open) > 0 {
		e.Slowest = open[0]
	}
	return e
}

// trouble enters what workers have written down of the chunk, nil if nothing. A task
// is written down from its second delivery on.
func (c *Place) trouble(t *wire.Trouble, now time.Time) {
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

// Oldest returns the chunks that are not solved, the oldest first. One that is
// missing is older than any.
func (e *Explanation) Oldest() []*Place {
	var open []*Place
	for i := range e.Places {
		if p := &e.Places[i]; p.Where != queue.Solved {
			open = append(open, p)
		}
	}
	age := func(p *Place) float64 {
		if p.Where == Missing {
			return math.Inf(1)
		}
		return p.Seconds
	}
	slices.SortStableFunc(open, func(a, b *Place) int { return cmp.Compare(age(b), age(a)) })
	return open
}
