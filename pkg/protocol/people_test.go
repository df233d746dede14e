package protocol_test

import (
	"slices"

	"github.com/flipmill/flipmill/pkg/wire"
)

// turn lets one of those who can do something do it.
func (w *world) turn() {
	const others = 2                 // the network and misfortune
	served := 2 * len(w.aggregators) // they have much to do
	n := w.rng.IntN(len(w.producers) + len(w.workers) + served + others)
	switch {
	case n < len(w.producers):
		if p := w.producers[n]; p.turn() || w.happens(crash) {
			w.say("submit of %s ends", p.job.id)
			p.job.broken = !p.sealed
			p.leave()
			w.producers = append(w.producers[:n:n], w.producers[n+1:]...)
		}
	case n < len(w.producers)+len(w.workers):
		w.workers[n-len(w.producers)].turn()
	case n < len(w.producers)+len(w.workers)+served:
		k := (n - len(w.producers) - len(w.workers)) / 2
		if w.aggregators[k].turn() {
			w.aggregators[k] = newAggregator(w)
		}
	case n%2 == 0 && len(w.late) > 0:
		k := w.rng.IntN(len(w.late))
		arrive := w.late[k]
		w.late = append(w.late[:k:k], w.late[k+1:]...)
		arrive()
	default:
		w.misfortune()
	}
	if w.broker.moved {
		w.broker.moved, w.moved = false, w.now
	}
}

// misfortune is what befalls the broker and the disk, and what people do.
func (w *world) misfortune() {
	if w.calm {
		return
	}
	if w.backup == nil || w.rng.IntN(20) == 0 {
		w.backup = w.broker.copy()
	}
	b := w.broker
	j := w.jobs[w.rng.IntN(len(w.jobs))]
	switch {
	case len(b.tasks) > 0 && w.happens(taskLost):
		t := b.tasks[w.rng.IntN(len(b.tasks))]
		w.job(t.id.Job).lost = true
		w.say("task %v is lost", t.id)
		b.remove(t)
	case len(b.log) > 0 && w.happens(resultLost):
		k := w.rng.IntN(len(b.log))
		w.job(b.log[k].result.ID.Job).lost = true
		w.say("result %v is lost", b.log[k].result.ID)
		b.log = append(b.log[:k:k], b.log[k+1:]...)
	case w.rng.IntN(5) == 0 && w.happens(restored):
		w.lose(w.backup)
	case w.rng.IntN(5) == 0 && w.happens(wiped):
		w.lose(nil)
	case w.happens(full):
		w.fullUntil = w.now + w.rng.IntN(200)
	case w.happens(ordered):
		w.order(j, []wire.Order{wire.Pause, wire.Proceed, wire.Pause, wire.Proceed, wire.Cancel}[w.rng.IntN(5)])
	case w.retryable(j) && w.happens(retried):
		w.retry(j)
	case len(w.producers) < 4 && w.happens(submitted):
		w.submit(j, 0)
	case len(w.producers) < 4 && w.happens(changed):
		w.submit(j, 1)
	}
}

// lose lets the broker come back with another store.
func (w *world) lose(store *broker) {
	for _, j := range w.jobs {
		j.lost = true
	}
	w.broker.restore(store, w.now)
}

// retryable reports whether people may retry a job: it is done, with rejects.
func (w *world) retryable(j *job) bool {
	rec := w.broker.records[j.id]
	if rec == nil || !rec.ended() || rec.ledger.State != wire.Done || rec.order == wire.Cancel {
		return false
	}
	for _, rows := range j.disk.parts {
		if slices.ContainsFunc(rows, func(r *wire.Result) bool { return r.Rejected > 0 }) {
			return true
		}
	}
	return false
}

// retryOnce begins a retry of a job for which there was none, if there is any.
func (w *world) retryOnce() bool {
	for _, j := range w.jobs {
		if w.plan.kinds[retried] && w.problem == nil && !j.retried && w.retryable(j) {
			w.retry(j)
			w.moved = w.now
			return true
		}
	}
	return false
}

// retry opens a job again that is done, and drives it.
func (w *world) retry(j *job) {
	rec := w.broker.records[j.id]
	w.say("retry %s", j.id)
	rec.job.Epoch++
	rec.job.Retry, rec.jobRev = rec.job.Epoch, w.broker.revision()
	j.retried, j.broken = true, true // until somebody drives it to its end
	w.submit(j, j.disk.version)
}

// order is what the control verbs do.
func (w *world) order(j *job, o wire.Order) {
	rec := w.broker.records[j.id]
	if rec == nil || rec.jobRev == 0 || rec.ended() || rec.order == wire.Cancel {
		return
	}
	w.say("people want %s to %v", j.id, o)
	rec.order, rec.orderRev = o, w.broker.revision()
	if o == wire.Cancel {
		j.cancelled = true
		w.broker.purgeTasks(j.id)
	}
}

// run takes turns until all jobs have ended.
func (w *world) run() error {
	const (
		patience = 1500 // turns without anything coming forward, until people look after a job
		most     = 60_000
	)
	for ; w.problem == nil; w.now++ {
		switch {
		case w.now == w.plan.chaos:
			w.rest()
		case w.now > most:
			w.violated("nothing comes to an end: %d submits, %d late messages, %d tasks, %d results", len(w.producers), len(w.late), len(w.broker.tasks), len(w.broker.log))
		case w.calm && w.now%16 == 0 && w.settled():
			w.verify()
			if !w.retryOnce() {
				return w.problem
			}
		case w.calm && w.now%16 == 1:
			for _, a := range w.aggregators {
				if a.idle() {
					a.litter()
				}
			}
		case w.calm && w.now-w.moved > patience:
			w.lookAfter()
			w.moved = w.now
		}
		w.turn()
	}
	return w.problem
}

// rest ends the faults.
func (w *world) rest() {
	w.say("from now on all is calm")
	w.calm, w.fullUntil, w.moved = true, 0, w.now
	for _, j := range w.jobs {
		if rec := w.broker.records[j.id]; rec != nil && rec.order == wire.Pause {
			w.order(j, wire.Proceed)
		}
	}
	for _, x := range w.workers {
		x.silent = false
	}
}

// lookAfter submits the jobs again that have not ended. There must be a reason
// for that: a submit that did not come to its end, or a loss.
func (w *world) lookAfter() {
	const enough = 3
	for _, j := range w.jobs {
		rec := w.broker.records[j.id]
		if rec != nil && rec.ended() {
			continue
		}
		if j.kept != nil && (rec == nil || rec.jobRev == 0) {
			w.violated("%s is lost with the store, though its record is kept", j.id)
		}
		if rec != nil && rec.order == wire.Pause { // it could not be resumed while it had failed
			w.order(j, wire.Proceed)
			continue
		}
		version, sealed := 0, rec != nil && rec.job.Totals != nil
		if sealed {
			version = rec.version
		}
		switch {
		case (sealed && !j.broken || w.driven(j)) && !j.lost && !j.otherwise && !j.mayFail():
			w.violated("%s does not end, though it is driven to its end and nothing was lost", j.id)
		case j.drives == enough && !j.otherwise:
			w.violated("%s does not end, however often it is submitted", j.id)
		}
		j.drives++
		w.producers = slices.DeleteFunc(w.producers, func(p *producer) bool { return p.job == j }) // they wait for ever
		w.submit(j, version)
	}
	if len(w.producers) == 0 {
		w.violated("something is left over: %d tasks, %d results", len(w.broker.tasks), len(w.broker.log))
	}
}

// ended reports whether a job is known to have ended.
func (r *record) ended() bool { return r.jobRev > 0 && r.ledger != nil && r.ledger.Ended(&r.job) }

// settled reports whether all jobs have ended and nothing is left of them.
func (w *world) settled() bool {
	if len(w.producers)+len(w.late)+len(w.broker.tasks) > 0 {
		return false
	}
	for _, a := range w.aggregators {
		if a.store != w.broker.store || !a.idle() {
			return false
		}
	}
	for _, j := range w.jobs {
		rec := w.broker.records[j.id]
		if rec == nil || !rec.ended() {
			return j.otherwise && j.drives > 3 // two corpora, and people insist
		}
		if w.broker.after(j.id, 0) != nil {
			return false // what is left is swept
		}
	}
	for _, x := range w.workers {
		if x.handling != nil {
			return false
		}
	}
	return true
}

// verify checks the datasets and what is left on the broker.
func (w *world) verify() {
	for _, j := range w.jobs {
		rec := w.broker.records[j.id]
		if rec == nil || rec.ledger == nil {
			continue
		}
		switch rec.ledger.State {
		case wire.Done:
			w.verifyDone(j, rec)
		case wire.Cancelled:
			if !j.cancelled || !j.disk.cancelled && (!j.retried || j.disk.manifest == nil) {
				w.violated("%s is cancelled, which nobody wanted, or its dataset is not", j.id)
			}
		case wire.Failed:
			if !j.otherwise && !j.mayFail() {
				w.violated("%s failed: %s", j.id, rec.ledger.Reason)
			}
		case wire.Open:
			continue // its parts are of two corpora
		}
		for _, e := range w.broker.log {
			if e.result.ID.Job == j.id {
				w.violated("result %v is left of a job that is %v", e.result.ID, rec.ledger.State)
			}
		}
	}
}

// mayFail reports a job with a chunk that fails it.
func (j *job) mayFail() bool {
	for _, k := range j.kinds {
		if k == unreadable || k == tooLarge {
			return true
		}
	}
	return false
}

// verifyDone compares a finished dataset with the corpus.
func (w *world) verifyDone(j *job, rec *record) {
	d := j.disk
	version, corpus := d.version, j.corpora[d.version]
	if d.manifest == nil {
		w.violated("%s is done without a manifest", j.id)
		return
	}
	chunk, parts := int64(0), int64(0)
	var all wire.Count
	var boards, rejected int64
	for part := int64(0); part < max(1, (int64(len(corpus))+int64(j.partChunks)-1)/int64(j.partChunks)); part++ {
		rows, ok := d.parts[part]
		if !ok {
			w.violated("%s is done without part %d", j.id, part)
		}
		parts++
		for _, r := range rows {
			switch {
			case r.ID.Chunk != chunk || chunk/int64(j.partChunks) != part:
				w.violated("%s: part %d has chunk %d, want %d", j.id, part, r.ID.Chunk, chunk)
			case r.First != all.Records || r.Records() != corpus[chunk] || r.Digest != j.digest(version, chunk):
				w.violated("%s: chunk %d has other records than the corpus", j.id, chunk)
			case j.kinds[chunk] == sound && r.Rejected > 0 && !w.tired():
				w.violated("%s: %d records of the sound chunk %d are rejected", j.id, r.Rejected, chunk)
			case j.kinds[chunk] == kills && r.Rejected != 1 && !w.tired():
				w.violated("%s: %d records of chunk %d are rejected, one of them kills workers", j.id, r.Rejected, chunk)
			}
			chunk++
			all.Records += r.Records()
			boards, rejected = boards+r.Boards, rejected+r.Rejected
		}
	}
	all.Chunks = chunk
	l := rec.ledger
	switch {
	case int64(len(d.parts)) != parts || int64(len(l.Parts)) != parts:
		w.violated("%s has %d parts, the ledger %d, want %d", j.id, len(d.parts), len(l.Parts), parts)
	case all.Chunks != int64(len(corpus)):
		w.violated("%s has %d chunks, want %d", j.id, all.Chunks, len(corpus))
	case l.Committed != all || l.Received != all:
		w.violated("%s is done with %v received and %v committed, want %v", j.id, l.Received, l.Committed, all)
	case d.boards != boards || d.rejected != rejected:
		w.violated("%s: statistics of %d boards and %d rejects, the rows are %d and %d", j.id, d.boards, d.rejected, boards, rejected)
	}
}

// tired reports whether tasks may have been delivered so often that
// they were given up, because of workers that ended for reasons of their own.
func (w *world) tired() bool { return w.happened >= 20 }
