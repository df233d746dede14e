package aggregator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

const (
	defaultLease = 15 * time.Second

	// Ledgers are written so often at least, that people see how far a job is, and
	// five times in a lease.
	maxRefresh = 3 * time.Second

	// A job that is nobody's is taken at once by an aggregator without jobs, and
	// later by one with more: so jobs are spread.
	stepAside    = 50 * time.Millisecond
	maxStepAside = 10 * stepAside

	// Patience doubles with each time that a job was taken from us while we were
	// alive: where the holders are slower than a lease, one of them must come to
	// something in the end.
	maxPatience = 5 * time.Minute

	// releaseTime is how long an aggregator that ends tries to say so.
	releaseTime = 2 * time.Second
)

// newHolder returns a name that no other aggregator has.
func newHolder(name string) string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	if name == "" {
		name = "aggregator"
	}
	return name + "-" + hex.EncodeToString(random)
}

// held is a job's ledger in the hands of its holder, by which others know that he
// is there. It is safe for concurrent use.
type held struct {
	conn *queue.Conn
	id   string

	mu       sync.Mutex
	ledger   wire.Ledger // as it was written last
	revision uint64
	written  time.Time
	over     bool // the job has ended, and that is written
}

// write writes the ledger. It is queue.ErrConflict when the job is somebody
// else's by now.
func (h *held) write(ctx context.Context, l *wire.Ledger) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := *l
	next.Parts = slices.Clone(l.Parts) // the caller will add to his
	next.Output, next.Holder = h.ledger.Output, h.ledger.Holder
	if err := h.put(ctx, next); err != nil {
		return err
	}
	h.over = l.State.Ended()
	return nil
}

// claim writes the ledger that was there, with the holder's name. What it says of
// the end of an earlier drive stays until that has been dealt with.
func (h *held) claim(ctx context.Context, before wire.Ledger) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before.Output, before.Holder = h.ledger.Output, h.ledger.Holder
	return h.put(ctx, before)
}

// renew writes the ledger once more if it is older than age.
func (h *held) renew(ctx context.Context, age time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.written.IsZero() || h.over || time.Since(h.written) < age {
		return nil
	}
	return h.put(ctx, h.ledger)
}

// release says that the job is nobody's, if it is this process's.
func (h *held) release(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.written.IsZero() {
		if err := h.free(ctx); !errors.Is(err, queue.ErrConflict) {
			return err
		}
	}
	// What was being written when this process was told to end may have got there.
	s, err := h.conn.Standing(ctx, h.id)
	if err != nil {
		return err
	}
	if s.Ledger == nil || s.Ledger.Holder != h.ledger.Holder || s.Ended() {
		return nil
	}
	h.ledger, h.revision = *s.Ledger, s.Revision
	return h.free(ctx)
}

func (h *held) free(ctx context.Context) error {
	if h.over {
		return nil
	}
	free := h.ledger
	free.Holder = ""
	return h.put(ctx, free)
}

func (h *held) put(ctx context.Context, l wire.Ledger) error {
	revision, err := h.conn.PutLedger(ctx, h.id, &l, h.revision)
	if err != nil {
		return err
	}
	h.ledger, h.revision, h.written = l, revision, time.Now()
	return nil
}

// latest returns the revision that was written last.
func (h *held) latest() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revision
}

// keep renews what this process holds, whatever the loop is busy with: a part may
// take longer than a lease.
func (a *aggregator) keep(ctx context.Context) error {
	tick := time.NewTicker(a.refreshTime())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, h := range a.holdings() {
			// Of a conflict the loop hears, when it writes or by the watch.
			if err := h.renew(ctx, a.refreshTime()); err != nil && !errors.Is(err, queue.ErrConflict) {
				return err
			}
		}
	}
}

// refreshTime is how often a ledger is written at least.
func (a *aggregator) refreshTime() time.Duration {
	return min(max(a.opts.Lease/5, time.Millisecond), maxRefresh)
}

// holdings returns what this process holds.
func (a *aggregator) holdings() []*held {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.hold)
}

func (a *aggregator) addHolding(h *held) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold = append(a.hold, h)
}

func (a *aggregator) removeHolding(h *held) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold = slices.DeleteFunc(a.hold, func(other *held) bool { return other == h })
}

// releaseAll hands over what this process still holds, so that others need not
// wait. When the broker is away they must.
func (a *aggregator) releaseAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	for _, h := range a.holdings() {
		if err := h.release(ctx); err != nil {
			a.log.Info("job not handed over, it will be free after the lease", "job", h.id, "error", err)
		}
	}
}

// other is an open job of our output that this process does not hold.
type other struct {
	standing *queue.Standing
	since    time.Time // when its ledger was first seen like that, by our own clock
}

// hear takes in where a job stands.
func (a *aggregator) hear(ctx context.Context, s *queue.Standing) error {
	id := s.Job.ID
	if j := a.jobs[id]; j != nil {
		if s.Revision <= j.held.latest() {
			return a.update(ctx, j, s)
		}
		a.lose(j)
	}
	if s.Revision < a.left[id] {
		return nil // our own words, from before
	}
	delete(a.left, id)
	if s.Ended() || s.Ledger != nil && s.Ledger.Output != "" && s.Ledger.Output != a.opts.Identity {
		delete(a.others, id)
		delete(a.losses, id)
		return nil
	}
	o := a.others[id]
	if o == nil || o.standing.Revision != s.Revision {
		o = &other{since: time.Now()}
		a.others[id] = o
	}
	o.standing = s
	return a.takeFree(ctx)
}

// update takes in what a job's producer and people say of it.
func (a *aggregator) update(ctx context.Context, j *job, s *queue.Standing) error {
	j.record = s.Job
	j.chunks.Driven(s.Job.Epoch)
	if s.Job.Totals != nil && j.totals == nil {
		j.totals = s.Job.Totals
		j.chunks.Seal(s.Job.Totals)
	}
	if s.Order == wire.Cancel && !j.chunks.Ended() {
		a.cancel(j)
	} else {
		a.keepRecord(j)
	}
	return a.proceed(ctx, j)
}

// takeFree takes the jobs whose time has come, and notes when the next one's
// will.
func (a *aggregator) takeFree(ctx context.Context) error {
	a.free = nil
	var next time.Time
	for id, o := range a.others {
		if due := a.due(id, o); time.Until(due) > 0 {
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		}
		delete(a.others, id) // if somebody else is quicker, we shall hear of it
		if err := a.take(ctx, o.standing); err != nil {
			return err
		}
	}
	if !next.IsZero() {
		a.free = time.After(time.Until(next))
	}
	return nil
}

// due is when this process may take a job.
func (a *aggregator) due(id string, o *other) time.Time {
	l := o.standing.Ledger
	switch {
	case l == nil || l.Holder == "" || l.State.Ended(): // ended, and driven again
		return o.since.Add(min(time.Duration(len(a.jobs))*stepAside, maxStepAside))
	case l.Holder == a.holder: // it is ours, and the answer that said so was lost
		return o.since
	}
	patience := a.opts.Lease
	for range a.losses[id] {
		if patience < maxPatience {
			patience = min(2*patience, maxPatience)
		}
	}
	return o.since.Add(patience)
}

// take makes this process the holder of a job, if nobody else is quicker, and
// begins to serve it.
func (a *aggregator) take(ctx context.Context, s *queue.Standing) error {
	h := &held{conn: a.conn, id: s.Job.ID, revision: s.Revision}
	h.ledger.Output, h.ledger.Holder = a.opts.Identity, a.holder
	silent := "" // holder that the job is taken from
	before := wire.Ledger{State: wire.Open}
	if s.Ledger != nil {
		before = *s.Ledger
	}
	if !before.State.Ended() && before.Holder != "" && before.Holder != a.holder {
		silent = before.Holder
	}
	a.addHolding(h)
	if err := h.claim(ctx, before); errors.Is(err, queue.ErrConflict) {
		a.removeHolding(h)
		return nil
	} else if err != nil {
		return err
	}
	if silent != "" {
		a.log.Warn("job taken from an aggregator that was silent", "job", h.id, "holder", silent)
		a.opts.Metrics.takeovers.Inc()
	}
	// Only now: what the last holder has purged, he had made durable before he
	// wrote the ledger that we have replaced.
	j, err := a.open(s, h)
	if err != nil {
		return err
	}
	a.jobs[h.id] = j
	if err := a.update(ctx, j, s); err != nil || a.jobs[h.id] != j {
		return err
	}
	j.stop = a.follow(ctx, h.id) // what an earlier drive has left is purged by now
	return nil
}

// follow begins to follow the results of a job, from the oldest that is in the
// log.
func (a *aggregator) follow(ctx context.Context, id string) (stop func()) {
	followed, stop := context.WithCancel(ctx)
	a.group.Go(func() error {
		err := pump(followed, a.conn.Results(followed, id), a.results)
		if followed.Err() != nil && ctx.Err() == nil {
			return nil // stopped, and nothing is wrong
		}
		return err
	})
	return stop
}

// lose leaves a job to the one who has taken it. What is half done goes; nothing
// is purged and nothing is said.
func (a *aggregator) lose(j *job) {
	a.log.Warn("another aggregator has taken the job", "job", j.id)
	a.losses[j.id]++
	a.leave(j)
}

// leave ends the service of a job.
func (a *aggregator) leave(j *job) {
	j.stop()
	delete(a.jobs, j.id)
	a.removeHolding(j.held)
	a.left[j.id] = j.held.latest()
}

// sweep removes results that nobody waits for: of jobs that have ended in our
// output, or of which there is no record.
func (a *aggregator) sweep(ctx context.Context) error {
	return a.conn.SweepResults(ctx, func(id string, s *queue.Standing) bool {
		return a.jobs[id] == nil && (s == nil || s.Ended() && s.Ledger.Output == a.opts.Identity)
	})
}
