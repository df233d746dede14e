package protocol_test

import (
	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/wire"
)

// due reports whether a job may be taken: nothing depends on the holder's silence.
func (a *aggregator) due(rec *record) bool {
	l := rec.ledger
	lease := 500
	if a.w.happens(impatient) {
		lease = 0
	}
	return l == nil || l.Holder == "" || l.State.Ended() || l.Holder == a.name || a.w.now-rec.ledgerAt > lease
}

// take makes it the holder of a job, if nobody is quicker, and then finds out how far
// the job has come: the files say what has been purged by then.
func (a *aggregator) take() {
	c := a.taking
	before := c.before
	if !c.claimed {
		l := wire.Ledger{State: wire.Open}
		if before.ledger != nil {
			l = *before.ledger
		}
		rec := a.w.broker.records[c.job.id]
		if rec == nil || rec.ledgerRev != before.ledgerRev {
			a.taking = nil
			return
		}
		l.Holder = a.name
		a.w.say("%s takes %s from %q", a.name, c.job.id, ledgerHolder(before.ledger))
		rec.ledger, rec.ledgerRev, rec.ledgerAt = &l, a.w.broker.revision(), a.w.now
		c.rev, c.claimed = rec.ledgerRev, true
		return
	}
	a.open(c)
	a.taking = nil
	a.known[c.job.id] = c
	c.chunks.Refresh()
	a.update(c, before)
	if a.w.wrong == offset {
		c.pos = a.w.broker.lastSeq
	}
}

func ledgerHolder(l *wire.Ledger) string {
	if l == nil {
		return ""
	}
	return l.Holder
}

// open finds out how far a job has come.
func (a *aggregator) open(c *collected) {
	before := c.before
	c.chunks = protocol.NewCollector(c.job.partChunks)
	if before.ledger != nil {
		c.chunks.Recall(before.ledger, &before.job)
	}
	c.dir = c.job.folder(before.ledger != nil && before.ledger.State == wire.Done)
	for part := range int64(20) {
		if rows, ok := c.dir.parts[part]; ok {
			c.chunks.Restore(mark(part, rows), count(rows))
		}
	}
}

// bringBack puts back what the broker has lost of a job: whose it is and what is
// committed, then the record.
func (a *aggregator) bringBack() {
	j, b := a.back[0], a.w.broker
	rec := b.records[j.id]
	switch {
	case j.kept == nil, rec != nil && rec.jobRev > 0:
		a.back = a.back[1:]
	case rec == nil:
		l := wire.Ledger{State: wire.Open}
		for part := range int64(20) {
			if rows, ok := j.folder(false).parts[part]; ok {
				l.Add(mark(part, rows))
			}
		}
		b.records[j.id] = &record{order: wire.Proceed, ledger: &l, ledgerRev: b.revision()}
	default:
		a.w.say("%s puts %s back", a.name, j.id)
		rec.job, rec.version, rec.jobRev = j.kept.job, j.kept.version, b.revision()
		a.back = a.back[1:]
	}
}

// lose leaves a job to the one who has taken it.
func (a *aggregator) lose(c *collected) {
	a.w.say("%s has lost %s", a.name, c.job.id)
	a.leave(c)
}

func (a *aggregator) leave(c *collected) {
	delete(a.known, c.job.id)
	a.left[c.job.id] = c.rev
	a.current, a.phase = nil, 0
}

// release hands its jobs over, as a process that is told to stop.
func (a *aggregator) release() {
	for _, j := range a.w.jobs {
		c, rec := a.known[j.id], a.w.broker.records[j.id]
		if c == nil || rec == nil || rec.ledgerRev != c.rev || rec.ledger.State.Ended() {
			continue
		}
		l := *rec.ledger
		l.Holder = ""
		rec.ledger, rec.ledgerRev, rec.ledgerAt = &l, a.w.broker.revision(), a.w.now
	}
	a.w.say("%s is stopped", a.name)
}
