package protocol_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/wire"
)

// aggregator is one process; jobs and disk outlive it.
type aggregator struct {
	w     *world
	name  string // as holder of jobs
	store int    // which store it follows
	back  []*job // whose records it has yet to look for
	known map[string]*collected
	left  map[string]uint64 // last revision of its own of the jobs that it has left

	taking  *collected // that it is about to hold
	current *collected // whose steps are being carried out; nil: none has any
	phase   int        // of a step that takes several turns
	rows    []*wire.Result
	swept   uint64 // end of the log when it was looked at for garbage; 0: it was not
}

// collected is what it knows of a job that it holds, or is about to.
type collected struct {
	job              *job
	dir              *folder // of the job, or the one beside that a retry fills
	chunks           *protocol.Collector
	totals           *wire.Totals
	version          int    // of the corpus that sealed the job
	rev              uint64 // of the ledger, as it wrote it
	jobRev, orderRev uint64

	before  *record // what is to be taken, as it was
	claimed bool
	cleared bool // tasks and results have been purged

	pos   uint64
	ahead []*entry // read from the log and not looked at
}

// readAhead is how many results are fetched before they are looked at.
const readAhead = 3

func newAggregator(w *world) *aggregator {
	w.processes++
	return &aggregator{
		w: w, name: fmt.Sprint("aggregator ", w.processes), store: w.broker.store, back: slices.Clone(w.jobs),
		known: map[string]*collected{}, left: map[string]uint64{},
	}
}

// idle reports whether it has nothing to do.
func (a *aggregator) idle() bool {
	for _, c := range a.known {
		if c.chunks.Waits() || len(c.ahead) > 0 || a.w.broker.after(c.job.id, c.pos) != nil {
			return false
		}
	}
	return a.current == nil && a.taking == nil && len(a.back) == 0
}

// turn reports whether the process ends with it.
func (a *aggregator) turn() (ends bool) {
	switch {
	case a.w.happens(crash):
		a.w.say("%s dies", a.name)
		return true
	case a.store != a.w.broker.store && a.current == nil && a.w.rng.IntN(4) == 0:
		a.w.say("%s begins anew with the other store", a.name)
		return true
	case a.current == nil && a.taking == nil && a.w.happens(stopped):
		a.release()
		return true
	case len(a.back) > 0:
		a.bringBack()
	case a.taking != nil:
		a.take()
	case a.current != nil:
		return a.step(a.current)
	default:
		a.hear()
	}
	return false
}

// hear takes in one of the things that there are to hear.
func (a *aggregator) hear() {
	j := a.w.jobs[a.w.rng.IntN(len(a.w.jobs))]
	c, rec := a.known[j.id], a.w.broker.records[j.id]
	switch n := a.w.rng.IntN(16); {
	case n < 6 && rec != nil && rec.jobRev > 0:
		a.listen(j, rec)
	case n == 6 && c != nil:
		c.chunks.Retry()
		a.current = c
	case n == 7 && c != nil:
		c.chunks.Refresh()
		a.current = c
	case n == 8 && c != nil:
		if rec != nil && rec.ledgerRev == c.rev { // it says that it is there
			c.rev = a.w.broker.revision()
			rec.ledgerRev, rec.ledgerAt = c.rev, a.w.now
		}
	case n == 9:
		a.sweep(j)
	default:
		a.read()
	}
}

// listen takes in where a job stands.
func (a *aggregator) listen(j *job, rec *record) {
	c := a.known[j.id]
	switch {
	case c == nil:
		if !rec.ended() && rec.ledgerRev >= a.left[j.id] && a.due(rec) {
			copied := *rec
			a.taking = &collected{job: j, before: &copied}
		}
	case rec.ledgerRev > c.rev:
		a.lose(c)
	case c.jobRev < rec.jobRev || c.orderRev < rec.orderRev:
		a.update(c, rec)
	}
}

// update takes in what the producer and people say of a job.
func (a *aggregator) update(c *collected, rec *record) {
	c.jobRev, c.orderRev = rec.jobRev, rec.orderRev
	c.chunks.Driven(rec.job.Epoch)
	if rec.job.Totals != nil && c.totals == nil {
		c.totals, c.version = rec.job.Totals, rec.version
		c.chunks.Seal(rec.job.Totals)
	}
	if rec.order == wire.Cancel && !c.chunks.Ended() {
		c.job.kept = nil
		if c.dir != c.job.disk {
			c.job.again = nil
		} else {
			c.job.disk.cancelled = true
		}
		c.chunks.Cancel("")
	} else {
		c.job.keep(rec)
	}
	a.current = c
}

// sweep removes, in two turns, results that nobody waits for.
func (a *aggregator) sweep(j *job) {
	rec := a.w.broker.records[j.id]
	switch {
	case a.swept == 0:
		a.swept = a.w.broker.lastSeq
		return
	case a.known[j.id] == nil && (rec == nil || rec.jobRev == 0 || rec.ended()):
		a.w.broker.sweep(j.id, a.swept)
	}
	a.swept = 0
}

// read looks at the next result of the log, of a job that it holds.
func (a *aggregator) read() {
	for _, j := range a.w.jobs {
		c := a.known[j.id]
		if c == nil {
			continue
		}
		for len(c.ahead) < readAhead {
			e := a.w.broker.after(j.id, c.pos)
			if e == nil {
				break
			}
			c.pos = e.seq
			c.ahead = append(c.ahead, e)
		}
		if len(c.ahead) > 0 {
			a.receive(c)
			return
		}
		if c.chunks.Waits() && a.w.now >= a.w.fullUntil { // time passes, until it tries again
			c.chunks.Retry()
			a.current = c
			return
		}
	}
}

func (a *aggregator) receive(c *collected) {
	r, seq := c.ahead[0].result, c.ahead[0].seq
	c.ahead = c.ahead[1:]
	verdict := c.chunks.Receive(r.ID, seq, func() (*wire.Result, error) { return r, nil })
	a.w.say("%s, result %v at %d: %v", a.name, r.ID, seq, verdict)
	if verdict == protocol.Accepted && a.inMemory() > a.w.memory {
		c.chunks.Forget(r.ID.Chunk)
	}
	a.current = c
}

func (a *aggregator) inMemory() (n int64) {
	for _, c := range a.known {
		n += c.chunks.InMemory()
	}
	return n
}

// step carries out one step of a job, or a part of it, and reports whether the process
// ends with it.
func (a *aggregator) step(c *collected) (ends bool) {
	if a.phase > 0 {
		a.goOn(c)
		return false
	}
	step, part := c.chunks.Next()
	if step != protocol.Rest && step != protocol.Tell {
		a.w.say("%s, %s: %v %d", a.name, c.job.id, step, part)
	}
	if (step == protocol.Commit || step == protocol.Finish) && c.chunks.Waits() {
		a.w.violated("%s is to %v while it waits", c.job.id, step)
	}
	switch step {
	case protocol.Rest:
		if a.current = nil; c.chunks.Ended() {
			if state := c.chunks.Ledger().State; state != wire.Done && !c.cleared {
				a.w.violated("%s is %v, and nobody purges what is left of it", c.job.id, state)
			}
			a.leave(c)
		}
	case protocol.Commit:
		return a.commit(c, part)
	case protocol.Finish:
		if a.w.now < a.w.fullUntil {
			c.chunks.Wait(errFull)
		} else if err := c.dir.finish(c.totals, c.version); err != nil {
			c.chunks.Fail(err)
		} else {
			a.phase = finishing
		}
	case protocol.LookUp:
		if rec := a.w.broker.records[c.job.id]; rec != nil && rec.jobRev > 0 {
			c.chunks.Driven(rec.job.Epoch)
		}
	case protocol.Tell:
		a.tell(c)
	case protocol.Purge:
		a.purge(c, part)
	case protocol.PurgeJob:
		a.w.broker.purgeTasks(c.job.id)
		a.w.broker.purge(c.job.id, -1)
		c.cleared = true
	default:
		a.w.violated("an aggregator is to %v", step)
	}
	return false
}

var errFull = errors.New("no space")

// The phases of steps at whose middle a process may die.
const (
	linking = 1 + iota
	linked
	finishing
)

// commit collects the rows of a part. Where one is lost the process begins anew.
func (a *aggregator) commit(c *collected, part int64) (ends bool) {
	if a.w.wrong == purgeFirst {
		a.purge(c, part)
	}
	a.rows = nil
	first, end := c.chunks.Span(part)
	for chunk := first; chunk < end; chunk++ {
		h := c.chunks.At(chunk)
		r := h.Result
		if r == nil {
			e := a.w.broker.at(h.Seq)
			if e == nil || !h.Same(e.result) {
				a.w.say("chunk %d is lost: %s begins anew", chunk, a.name)
				return true
			}
			r = e.result
		}
		a.rows = append(a.rows, r)
	}
	if a.w.now < a.w.fullUntil {
		c.chunks.Wait(errFull)
		return false
	}
	err := stitch(a.rows)
	if err == nil {
		err = a.linkRejects(c, part)
	}
	if err != nil {
		c.chunks.Fail(err)
		return false
	}
	a.phase = linking
	return false
}

func (a *aggregator) linkRejects(c *collected, part int64) error {
	var some []*wire.Result
	for _, r := range a.rows {
		if r.Rejected > 0 {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return link(c.dir.rejects, part, some)
}

// goOn takes the next part of a step.
func (a *aggregator) goOn(c *collected) {
	step, part := c.chunks.Next()
	switch {
	case a.phase == linking:
		if err := link(c.dir.parts, part, a.rows); err != nil {
			a.phase = 0
			c.chunks.Fail(err)
			return
		}
		a.w.broker.moved = true
		a.phase = linked
	case a.phase == linked && step == protocol.Commit:
		a.phase = 0
		c.chunks.Committed(mark(part, a.rows))
	default:
		a.phase = 0
		c.job.settle()
		c.job.kept = nil
		c.chunks.Finished()
	}
}

// tell writes the ledger, unless somebody else has. It must be true and never fall.
func (a *aggregator) tell(c *collected) {
	b, id := a.w.broker, c.job.id
	l := *c.chunks.Ledger()
	l.Parts, l.Holder = slices.Clone(l.Parts), a.name
	rec := b.records[id]
	if rec == nil || rec.ledger == nil || rec.ledgerRev != c.rev && a.w.wrong != noLease {
		a.lose(c)
		return
	}
	for _, p := range l.Parts {
		if rows, ok := c.dir.parts[p.Number]; !ok || mark(p.Number, rows) != p {
			a.w.violated("the ledger of %s has part %d, which is not on the disk", id, p.Number)
		}
	}
	if l.State == wire.Done && c.job.disk.manifest == nil {
		a.w.violated("%s is told to be done without a manifest", id)
	}
	old := rec.ledger
	opens := l.State == wire.Open && old.State.Ended()
	switch {
	case opens && old.State != wire.Done && !c.cleared:
		a.w.violated("%s is open again, with what its failure left", id)
	case opens && old.State == wire.Done && l.Received != c.chunks.Received():
		a.w.violated("a retry of %s begins with %v received, which are %v", id, l.Received, c.chunks.Received())
	case a.store != b.store: // it has yet to notice that this is another store
	case old.Ended(&rec.job) && l.State != old.State:
		a.w.violated("%s was %v and is %v", id, old.State, l.State)
	case old.State == wire.Done: // and a retry begins, or is cancelled at once
	case c.job.retried && c.job.lost: // the ledger is from before the retry
	case l.State == wire.Done && (c.job.otherwise || c.job.retried): // what was received besides does not count
	case l.Received.Chunks < old.Received.Chunks, l.Received.Records < old.Received.Records:
		a.w.violated("the ledger of %s falls from %v received to %v", id, old.Received, l.Received)
	case l.Committed.Chunks < old.Committed.Chunks, l.Committed.Records < old.Committed.Records, len(l.Parts) < len(old.Parts):
		a.w.violated("the ledger of %s falls from %v committed to %v", id, old.Committed, l.Committed)
	}
	b.moved = b.moved || l.State != old.State
	if old.State != l.State || old.Received != l.Received || old.Committed != l.Committed {
		a.w.say("the ledger of %s: %v %s, received %v, committed %v in %d parts", id, l.State, l.Reason, l.Received, l.Committed, len(l.Parts))
	}
	c.rev = b.revision()
	rec.ledger, rec.ledgerRev, rec.ledgerAt = &l, c.rev, a.w.now
}

// purge removes the results of a part, which must be of no use to anybody.
func (a *aggregator) purge(c *collected, part int64) {
	if _, durable := c.job.folder(false).parts[part]; !durable && !c.chunks.Ended() {
		a.w.violated("part %d of %s is purged before it is durable", part, c.job.id)
	}
	a.w.broker.purge(c.job.id, part)
}

// litter reports results that it has looked at and nobody needs, of parts that it knows
// to be committed, when there is nothing more that it would do.
func (a *aggregator) litter() {
	for id, c := range a.known {
		for _, e := range a.w.broker.log {
			_, durable := c.chunks.Ledger().Part(e.result.ID.Part)
			if e.result.ID.Job == id && e.seq <= c.pos && durable && a.store == a.w.broker.store {
				a.w.violated("result %v stays in the log, and its part is committed", e.result.ID)
			}
		}
	}
}
