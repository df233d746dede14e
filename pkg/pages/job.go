package pages

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
)

// How much of a kind a page shows.
const (
	mostPlaces   = 10
	mostTroubles = 10
	mostSizes    = 24
)

// jobData is what the page of a job shows.
type jobData struct {
	*jobView
	Backlog  queue.Backlog
	Stats    *view.Statistics // nil where the dataset is out of reach
	Sizes    []*view.SizeStats
	More     int // further sizes
	Moves    []view.Moves
	Rates    []rate
	Places   []*view.Place // the oldest that are not solved
	Where    []place
	Unplaced error // why these are not known
	Troubles []view.Trouble
}

// place is how many chunks of open parts are somewhere.
type place struct {
	Where  string
	Chunks int
}

// placesCache is where the chunks of a job were not long ago.
type placesCache struct {
	at     time.Time
	places map[int64]queue.Place
	err    error
}

// jobPage shows a job.
func (s *Site) jobPage(ctx context.Context, r *http.Request) (*content, error) {
	standing, err := s.standing(ctx, r)
	if err != nil {
		return nil, err
	}
	known, err := s.jobs(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	v, set := s.view(standing, now)
	d := &jobData{jobView: v, Backlog: known.backlog}
	s.mu.Lock()
	d.Rates = s.speeds[v.Job].rates()
	s.mu.Unlock()
	if set != nil {
		d.count(set)
	}
	if v.Open {
		d.place(standing, s.places(ctx, v.Job), now)
	}
	for _, t := range slices.Backward(standing.Troubles.Latest) {
		d.Troubles = append(d.Troubles, view.NewTrouble(t))
	}
	d.Troubles = d.Troubles[:min(len(d.Troubles), mostTroubles)]
	c := &content{Title: v.Job, Trail: []crumb{{"Jobs", "/"}}, Say: v.say(), Events: "/jobs/" + v.Job + "/events"}
	for _, id := range []string{"progress", "moves", "throughput", "solvable", "places", "rejects", "troubles"} {
		part, err := s.section(id, d)
		if err != nil {
			return nil, err
		}
		c.Sections = append(c.Sections, part)
	}
	return c, nil
}

// standing returns the job that a page is about.
func (s *Site) standing(ctx context.Context, r *http.Request) (*queue.Standing, error) {
	id := r.PathValue("job")
	if err := puzzle.CheckJob(id); err != nil {
		return nil, failure{http.StatusNotFound, err}
	}
	standing, err := s.opts.Conn.Standing(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, failure{http.StatusNotFound, fmt.Errorf("there is no job %s", id)}
	}
	return standing, err
}

// count enters the statistics of what is committed.
func (d *jobData) count(set *set) {
	d.Stats = set.stats
	d.Sizes = set.stats.Sizes[:min(len(set.stats.Sizes), mostSizes)]
	d.More = len(set.stats.Sizes) - len(d.Sizes)
	for moves, boards := range set.counts.Histogram() {
		if boards > 0 {
			d.Moves = append(d.Moves, view.Moves{MinMoves: moves, Boards: boards})
		}
	}
}

// place enters what the job waits for.
func (d *jobData) place(standing *queue.Standing, known placesCache, now time.Time) {
	if d.Unplaced = known.err; known.err != nil {
		return
	}
	e := view.Explain(standing, known.places, now)
	counts := map[string]int{}
	for _, p := range e.Places {
		counts[p.Where]++
	}
	for _, where := range []string{queue.Queued, queue.Taken, queue.Solved, view.Missing} {
		d.Where = append(d.Where, place{where, counts[where]})
	}
	d.Places = e.Oldest()
	d.Places = d.Places[:min(len(d.Places), mostPlaces)]
}

// places returns where the chunks of a job are.
func (s *Site) places(ctx context.Context, id string) placesCache {
	s.mu.Lock()
	known := s.placed[id]
	s.mu.Unlock()
	if time.Since(known.at) < samePlaces {
		return known
	}
	var now placesCache
	now.places, now.err = s.opts.Conn.Locate(ctx, id)
	now.at = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.placed = map[string]placesCache{id: now} // of others few will ask at the same time
	return now
}
