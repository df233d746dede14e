package protocol_test

import (
	"errors"

	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/wire"
)

// aggregator is one process; jobs and disk outlive it.
type aggregator struct {
	w     *world
	store int // which store it follows
	pos   uint64
	ahead []*entry // read from the log and not looked at
	known map[string]*collected

	current *collected // whose steps are being carried out; nil: none has any
	phase   int        // of a step that takes several turns
	rows    []*wire.Result
}

// collected is what it knows of a job.
type collected struct {
	job              *job
	chunks           *protocol.Collector
	jobRev, orderRev uint64
}

// readAhead is how many results are fetched before they are looked at.
const readAhead = 3

func newAggregator(w *world) *aggregator {
	a := &aggregator{w: w, store: w.broker.store, known: map[string]*collected{}}
	if w.wrong == offset {
		a.pos = w.broker.lastSeq
	}
	return a
}

// idle reports whether it has nothing to do.
func (a *aggregator) idle() bool {
	for _, c := range a.known {
		if c.chunks.Waits() {
			return false
		}
	}
	return a.current == nil && len(a.ahead) == 0 && a.w.broker.after(a.pos) == nil
}

func (a *aggregator) turn() {
	switch {
	case a.w.happens(crash), a.store != a.w.broker.store && a.current == nil && a.w.rng.IntN(4) == 0:
		a.w.say("aggregator begins anew")
		a.w.aggregator = newAggregator(a.w)
	case a.current != nil:
		a.step(a.current)
	default:
		a.hear()
	}
}

// hear takes in one of the things that there are to hear.
func (a *aggregator) hear() {
	j := a.w.jobs[a.w.rng.IntN(len(a.w.jobs))]
	c, rec := a.known[j.id], a.w.broker.records[j.id]
	switch n := a.w.rng.IntN(16); {
	case n < 3 && rec != nil && rec.jobRev > 0 && (c == nil || c.jobRev < rec.jobRev):
		a.takeUp(j, rec)
	case n < 6 && c != nil && rec != nil && rec.orderRev > c.orderRev:
		c.orderRev = rec.orderRev
		if rec.order == wire.Cancel && !c.chunks.Ended() {
			a.cancel(c)
		}
	case n == 6 && c != nil:
		c.chunks.Retry()
		a.current = c
	case n == 7 && c != nil:
		c.chunks.Refresh()
		a.current = c
	default:
		a.read()
	}
}

// takeUp begins to serve a job, or notes that it was sealed.
func (a *aggregator) takeUp(j *job, rec *record) {
	c := a.known[j.id]
	if c == nil || c.chunks.Ended() && !c.chunks.Ledger().Ended(&rec.job) { // new, or driven again
		c = a.open(j, rec)
		a.known[j.id] = c
	}
	c.jobRev = rec.jobRev
	c.chunks.Driven(rec.job.Epoch)
	if rec.job.Totals != nil {
		c.chunks.Seal(rec.job.Totals)
	}
	a.current = c
}

// open finds out how far a job has come.
func (a *aggregator) open(j *job, rec *record) *collected {
	c := &collected{job: j, chunks: protocol.NewCollector(j.partChunks)}
	c.chunks.Driven(rec.job.Epoch)
	if rec.ledger != nil {
		if c.chunks.Recall(rec.ledger, &rec.job); c.chunks.Ended() {
			return c
		}
	}
	for part := range int64(20) {
		if rows, ok := j.disk.parts[part]; ok {
			c.chunks.Restore(mark(part, rows), count(rows))
		}
	}
	if c.orderRev = rec.orderRev; rec.order == wire.Cancel {
		a.cancel(c)
		return c
	}
	c.chunks.Refresh()
	return c
}

func (a *aggregator) cancel(c *collected) {
	c.job.disk.cancelled = true
	c.chunks.Cancel("")
	a.current = c
}

// read looks at the next result of the log.
func (a *aggregator) read() {
	for len(a.ahead) < readAhead {
		e := a.w.broker.after(a.pos)
		if e == nil {
			break
		}
		a.pos = e.seq
		a.ahead = append(a.ahead, e)
	}
	if len(a.ahead) == 0 {
		for _, j := range a.w.jobs { // time passes, until it tries again
			if c := a.known[j.id]; c != nil && c.chunks.Waits() && a.w.now >= a.w.fullUntil {
				c.chunks.Retry()
				a.current = c
				return
			}
		}
		return
	}
	r, seq := a.ahead[0].result, a.ahead[0].seq
	j := a.w.job(r.ID.Job)
	c := a.known[j.id]
	if rec := a.w.broker.records[j.id]; c == nil && rec != nil && rec.jobRev > 0 {
		a.takeUp(j, rec) // the result has overtaken the record; it is the next
		return
	}
	a.ahead = a.ahead[1:]
	if c == nil { // nobody knows the job
		a.purge(j, nil, r.ID.Part)
		return
	}
	verdict := c.chunks.Receive(r.ID, seq, func() (*wire.Result, error) { return r, nil })
	a.w.say("result %v at %d: %v", r.ID, seq, verdict)
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

// step carries out one step of a job, or a part of it.
func (a *aggregator) step(c *collected) {
	if a.phase > 0 {
		a.goOn(c)
		return
	}
	step, part := c.chunks.Next()
	if step != protocol.Rest && step != protocol.Tell {
		a.w.say("aggregator, %s: %v %d", c.job.id, step, part)
	}
	switch step {
	case protocol.Rest:
		a.current = nil
	case protocol.Commit:
		a.commit(c, part)
	case protocol.Finish:
		rec := a.w.broker.records[c.job.id]
		switch {
		case a.w.now < a.w.fullUntil:
			c.chunks.Wait(errFull)
		case rec == nil || rec.job.Totals == nil: // the store is another one, which it has not noticed
			a.current = nil
			a.w.aggregator = newAggregator(a.w)
		default:
			if err := c.job.disk.finish(rec.job.Totals, rec.version); err != nil {
				c.chunks.Fail(err)
				return
			}
			a.phase = finishing
		}
	case protocol.LookUp:
		if rec := a.w.broker.records[c.job.id]; rec != nil {
			c.chunks.Driven(rec.job.Epoch)
		}
	case protocol.Tell:
		a.tell(c)
	case protocol.Purge:
		a.purge(c.job, c, part)
	case protocol.PurgeJob:
		a.w.broker.purgeTasks(c.job.id)
		a.w.broker.purge(c.job.id, -1)
	default:
		a.w.violated("an aggregator is to %v", step)
	}
}

var errFull = errors.New("no space")

// The phases of steps at whose middle a process may die.
const (
	linking = 1 + iota
	linked
	finishing
)

// commit collects the rows of a part.
func (a *aggregator) commit(c *collected, part int64) {
	if a.w.wrong == purgeFirst {
		a.purge(c.job, nil, part)
	}
	a.rows = nil
	first, end := c.chunks.Span(part)
	for chunk := first; chunk < end; chunk++ {
		h := c.chunks.At(chunk)
		r := h.Result
		if r == nil {
			e := a.w.broker.at(h.Seq)
			if e == nil || !h.Same(e.result) {
				a.w.say("chunk %d is lost: aggregator begins anew", chunk)
				a.w.aggregator = newAggregator(a.w)
				return
			}
			r = e.result
		}
		a.rows = append(a.rows, r)
	}
	if a.w.now < a.w.fullUntil {
		c.chunks.Wait(errFull)
		return
	}
	err := stitch(a.rows)
	if err == nil {
		err = a.linkRejects(c, part)
	}
	if err != nil {
		c.chunks.Fail(err)
		return
	}
	a.phase = linking
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
	return link(c.job.disk.rejects, part, some)
}

// goOn takes the next part of a step.
func (a *aggregator) goOn(c *collected) {
	step, part := c.chunks.Next()
	switch {
	case a.phase == linking:
		if err := link(c.job.disk.parts, part, a.rows); err != nil {
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
		c.chunks.Finished()
	}
}

// tell writes the ledger, which must be true and never fall.
func (a *aggregator) tell(c *collected) {
	b, id := a.w.broker, c.job.id
	l := *c.chunks.Ledger()
	l.Parts = append([]wire.Part(nil), l.Parts...)
	rec := b.records[id]
	if rec == nil {
		rec = &record{order: wire.Proceed}
		b.records[id] = rec
	}
	for _, p := range l.Parts {
		if rows, ok := c.job.disk.parts[p.Number]; !ok || mark(p.Number, rows) != p {
			a.w.violated("the ledger of %s has part %d, which is not on the disk", id, p.Number)
		}
	}
	if l.State == wire.Done && c.job.disk.manifest == nil {
		a.w.violated("%s is told to be done without a manifest", id)
	}
	if old := rec.ledger; old != nil {
		switch {
		case a.store != b.store: // it has yet to notice that this is another store
		case l.State == wire.Done && c.job.otherwise: // what was received of the other corpus does not count
		case l.Received.Chunks < old.Received.Chunks, l.Received.Records < old.Received.Records:
			a.w.violated("the ledger of %s falls from %v received to %v", id, old.Received, l.Received)
		case l.Committed.Chunks < old.Committed.Chunks, l.Committed.Records < old.Committed.Records, len(l.Parts) < len(old.Parts):
			a.w.violated("the ledger of %s falls from %v committed to %v", id, old.Committed, l.Committed)
		case old.Ended(&rec.job) && l.State != old.State:
			a.w.violated("%s was %v and is %v", id, old.State, l.State)
		}
		if l.State != old.State {
			b.moved = true
		}
	}
	if rec.ledger == nil || rec.ledger.State != l.State || rec.ledger.Received != l.Received || rec.ledger.Committed != l.Committed {
		a.w.say("the ledger of %s: %v %s, received %v, committed %v in %d parts", id, l.State, l.Reason, l.Received, l.Committed, len(l.Parts))
	}
	rec.ledger, rec.ledgerRev = &l, b.revision()
}

// purge removes the results of a part, which must be of no use to anybody.
func (a *aggregator) purge(j *job, c *collected, part int64) {
	_, durable := j.disk.parts[part]
	ended := c != nil && c.chunks.Ended()
	if !durable && !ended && !(c == nil && j.lost && a.w.wrong != purgeFirst) {
		a.w.violated("part %d of %s is purged before it is durable", part, j.id)
	}
	a.w.broker.purge(j.id, part)
}
