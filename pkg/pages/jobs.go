package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/view"
)

// mostJobs is the most jobs on a page. Those that are under way come first.
const mostJobs = 200

// Run follows the jobs until ctx ends: it notes how fast they are, and tells those
// who listen to pages. When it returns they are told the last.
func (s *Site) Run(ctx context.Context) {
	defer close(s.ended)
	for ctx.Err() == nil {
		for standing, err := range s.opts.Conn.WatchStandings(ctx) {
			if err != nil {
				s.opts.Log.Debug("pages", "error", err) // such as that the streams are not there yet
				break
			}
			s.hear(standing, time.Now())
		}
		select {
		case <-time.After(sameList):
		case <-ctx.Done():
		}
		s.announce()
	}
}

// hear takes in how a job is now.
func (s *Site) hear(standing *queue.Standing, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := standing.Job.ID
	if s.speeds[id] == nil {
		s.speeds[id] = new(speed)
	}
	if standing.Ledger != nil && (!standing.Ended() || len(s.speeds[id].points) > 0) {
		s.speeds[id].add(now, standing.Ledger.Received.Records)
	}
	s.tell()
}

func (s *Site) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell()
}

// tell wakes those who wait for a change. It is called with the lock.
func (s *Site) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// waiting returns a channel that is closed at the next change.
func (s *Site) waiting() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// jobsCache is the jobs as they were not long ago, so that the broker is asked once
// for many readers.
type jobsCache struct {
	at      time.Time
	jobs    []*queue.Standing
	backlog queue.Backlog
}

// jobs returns all jobs and what waits.
func (s *Site) jobs(ctx context.Context) (jobsCache, error) {
	s.mu.Lock()
	known := s.list
	s.mu.Unlock()
	if time.Since(known.at) < sameList && !s.over() { // the last that is told is how it is at the end
		return known, nil
	}
	var now jobsCache
	var err error
	if now.jobs, err = s.opts.Conn.Standings(ctx); err == nil {
		now.backlog, err = s.opts.Conn.Backlog(ctx)
	}
	if errors.Is(err, queue.ErrNotFound) { // before the first job there are no streams
		now, err = jobsCache{}, nil
	}
	if err != nil {
		return now, err
	}
	now.at = time.Now()
	s.mu.Lock()
	s.list = now
	s.mu.Unlock()
	return now, nil
}

// set is the dataset of a job, as far as it is committed.
type set struct {
	spec   puzzle.Spec
	reader *dataset.Reader
	counts *tally.Tally // that stats are of
	stats  *view.Statistics
	ledger uint64 // revision of the ledger after which the files were looked at
}

// errElsewhere says that the files are out of reach.
var errElsewhere = errors.New("its dataset is in another output, whose aggregator shows it")

// set returns the dataset of a job. Its files are looked at when the ledger, which tells
// of each part, has become another one: there may be many jobs with many parts.
func (s *Site) set(standing *queue.Standing) (*set, error) {
	if l := standing.Ledger; l != nil && l.Output != s.opts.Identity {
		return nil, errElsewhere
	}
	id, spec := standing.Job.ID, standing.Job.Spec
	s.reading.Lock()
	defer s.reading.Unlock()
	d := s.sets[id]
	if d == nil || !reflect.DeepEqual(d.spec, spec) {
		reader, err := dataset.NewReader(s.opts.Output, id, spec)
		if err != nil {
			return nil, err
		}
		d = &set{spec: spec, reader: reader}
		s.sets[id] = d
	}
	if d.counts == nil || standing.Revision == 0 || d.ledger != standing.Revision {
		_, counts, err := d.reader.Committed()
		if err == nil && counts != d.counts {
			d.stats, err = view.NewStatistics(id, spec, counts)
			d.counts = counts
		}
		if err != nil {
			delete(s.sets, id) // it may have been compacted: who asks next finds it as it is
			return nil, err
		}
		d.ledger = standing.Revision
	}
	copied := *d
	return &copied, nil
}

// forget lets a dataset be found anew.
func (s *Site) forget(job string) {
	s.reading.Lock()
	defer s.reading.Unlock()
	delete(s.sets, job)
}

// jobView is what pages say of a job.
type jobView struct {
	*view.Status
	Rule, Target string
	Open         bool          // whether it goes on
	Value        float64       // percent, for a bar
	About        bool          // whether Value is an estimate
	Known        bool          // whether Value says anything
	Rate         float64       // records a second
	Left         time.Duration // -1 where that is not known
	Reasons      []reason      // of rejects in committed parts
	Rejected     int64
	Files        error // why the dataset is out of reach
}

// reason is why so many records were rejected.
type reason struct {
	Reason  puzzle.Reason
	Records int64
}

// view says how a job is.
func (s *Site) view(standing *queue.Standing, now time.Time) (*jobView, *set) {
	v := &jobView{
		Status: view.NewStatus(standing, now), Rule: standing.Job.Spec.Rule.String(), Target: standing.Job.Spec.Target.String(),
		Open: !standing.Ended(), Left: -1,
	}
	total := int64(0)
	if v.Records != nil {
		total = *v.Records
	} else if total = s.opts.Estimate(v.Job); total > 0 {
		v.About = true
	}
	switch {
	case v.Percent != nil:
		v.Value, v.Known, v.About = *v.Percent, true, false
	case total > 0:
		v.Value, v.Known = min(99, 100*view.Share(v.Received.Records, total)), true
	}
	if v.Open {
		s.mu.Lock()
		v.Rate = s.speeds[v.Job].rate(now)
		s.mu.Unlock()
		if v.Rate > 0 && total >= v.Received.Records {
			v.Left = time.Duration(float64(total-v.Received.Records) / v.Rate * float64(time.Second))
		}
	}
	set, err := s.set(standing)
	if err != nil {
		v.Files = err
		return v, nil
	}
	v.Rejected = set.stats.Rejected
	for _, r := range slices.Sorted(maps.Keys(set.stats.Reasons)) {
		v.Reasons = append(v.Reasons, reason{r, set.stats.Reasons[r]})
	}
	return v, set
}

// say is the job in one line, that changes with each tenth.
func (v *jobView) say() string {
	if !v.Known || !v.Open {
		return fmt.Sprintf("%s is %s", v.Job, v.State)
	}
	return fmt.Sprintf("%s is %s, %d percent", v.Job, v.State, int(v.Value)/10*10)
}

// jobsPage lists the jobs.
func (s *Site) jobsPage(ctx context.Context, _ *http.Request) (*content, error) {
	known, err := s.jobs(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(known.jobs)
	slices.SortStableFunc(all, func(a, b *queue.Standing) int { return cmp.Compare(rank(a), rank(b)) })
	page := struct {
		Jobs    []*jobView
		More    int
		Backlog queue.Backlog
	}{More: max(0, len(all)-mostJobs), Backlog: known.backlog}
	open := 0
	for _, standing := range all[:min(len(all), mostJobs)] {
		v, _ := s.view(standing, time.Now())
		if v.Open {
			open++
		}
		page.Jobs = append(page.Jobs, v)
	}
	c := &content{Title: "Jobs", Events: "/events", Say: view.Times(open, "job", "jobs") + " under way"}
	for _, id := range []string{"jobs", "backlog"} {
		part, err := s.section(id, page)
		if err != nil {
			return nil, err
		}
		c.Sections = append(c.Sections, part)
	}
	return c, nil
}

// rank puts what goes on before what has ended.
func rank(s *queue.Standing) int {
	if s.Ended() {
		return 1
	}
	return 0
}
