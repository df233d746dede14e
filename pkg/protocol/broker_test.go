package protocol_test

import (
	"slices"

	"github.com/flipmill/flipmill/pkg/wire"
)

// Times of the model, in turns of the simulation.
const (
	ackWait         = 60  // after which a task whose worker is silent goes to another
	duplicateWindow = 240 // how long a message id is remembered
	retryDelay      = 4   // of a task that a worker gives back
)

// forever is a time that does not come.
const forever = 1 << 40

// broker is a model of what the roles rely on: a work queue of tasks, a log of
// results, and a bucket of records. It has no clock: it is told the time.
type broker struct {
	tasks   []*task
	log     []*entry // ascending by seq
	lastSeq uint64
	room    int // results that the log holds
	records map[string]*record
	lastRev uint64
	seen    map[msgID]int // when a message id was first seen
	store   int           // counts the times when the store became another one

	moved bool // something has come forward since this was last looked at
}

// msgID is a message id in one of the streams.
type msgID struct {
	result bool
	id     wire.ID
}

// task is a stored task.
type task struct {
	id        wire.ID
	version   int // of the corpus
	delivered int
	until     int // the time from which it can be delivered; forever while its worker keeps it alive
}

// entry is a stored result.
type entry struct {
	seq    uint64
	result *wire.Result
}

// record is what the bucket has under a job's id: the records that the roles
// read and write, each with its revision.
type record struct {
	job              wire.Job
	ledger           *wire.Ledger
	order            wire.Order
	version          int // of the corpus that sealed it
	jobRev, orderRev uint64
	ledgerRev        uint64
	ledgerAt         int // the time when the ledger was written
}

func newBroker(room int) *broker {
	return &broker{records: map[string]*record{}, seen: map[msgID]int{}, room: room}
}

// copied reports whether a message is taken for a copy of one that was seen.
func (b *broker) copied(m msgID, now int) bool {
	at, ok := b.seen[m]
	if ok && now-at < duplicateWindow {
		return true
	}
	b.seen[m] = now
	b.moved = true
	return false
}

func (b *broker) putTask(id wire.ID, version, now int) {
	if !b.copied(msgID{false, id}, now) {
		b.tasks = append(b.tasks, &task{id: id, version: version})
	}
}

// putResult reports whether there was room.
func (b *broker) putResult(r *wire.Result, now int) bool {
	if at, ok := b.seen[msgID{true, r.ID}]; ok && now-at < duplicateWindow {
		return true
	}
	if len(b.log) >= b.room {
		return false
	}
	b.copied(msgID{true, r.ID}, now)
	b.lastSeq++
	b.log = append(b.log, &entry{b.lastSeq, r})
	return true
}

// waiting returns the tasks that can be delivered.
func (b *broker) waiting(now int) (some []*task) {
	for _, t := range b.tasks {
		if t.until <= now {
			some = append(some, t)
		}
	}
	return some
}

// remove removes a task, as an acknowledgement does.
func (b *broker) remove(t *task) {
	before := len(b.tasks)
	b.tasks = slices.DeleteFunc(b.tasks, func(x *task) bool { return x == t })
	b.moved = b.moved || len(b.tasks) < before
}

// purge removes results of a job, of one of its parts or, for -1, of all.
func (b *broker) purge(job string, part int64) {
	before := len(b.log)
	b.log = slices.DeleteFunc(b.log, func(e *entry) bool {
		return e.result.ID.Job == job && (part < 0 || e.result.ID.Part == part)
	})
	b.moved = b.moved || len(b.log) < before
}

// sweep removes results of a job up to a place in the log.
func (b *broker) sweep(job string, last uint64) {
	before := len(b.log)
	b.log = slices.DeleteFunc(b.log, func(e *entry) bool { return e.result.ID.Job == job && e.seq <= last })
	b.moved = b.moved || len(b.log) < before
}

func (b *broker) purgeTasks(job string) {
	b.tasks = slices.DeleteFunc(b.tasks, func(t *task) bool { return t.id.Job == job && t.until < forever })
}

// at returns the result at a place in the log, nil if there is none.
func (b *broker) at(seq uint64) *entry {
	for _, e := range b.log {
		if e.seq == seq {
			return e
		}
	}
	return nil
}

// after returns the first result of a job beyond a place in the log, nil if there is
// none.
func (b *broker) after(job string, seq uint64) *entry {
	for _, e := range b.log {
		if e.seq > seq && e.result.ID.Job == job {
			return e
		}
	}
	return nil
}

func (b *broker) revision() uint64 {
	b.lastRev++
	return b.lastRev
}

// copy returns what is stored, as a backup has it. Message ids are remembered
// only of messages that are there.
func (b *broker) copy() *broker {
	c := newBroker(b.room)
	c.lastSeq, c.lastRev, c.store = b.lastSeq, b.lastRev, b.store
	for _, t := range b.tasks {
		t := *t
		c.tasks = append(c.tasks, &t)
		c.seen[msgID{false, t.id}] = b.seen[msgID{false, t.id}]
	}
	for _, e := range b.log {
		c.log = append(c.log, e)
		c.seen[msgID{true, e.result.ID}] = b.seen[msgID{true, e.result.ID}]
	}
	for id, r := range b.records {
		r := *r
		c.records[id] = &r
	}
	return c
}

// restore replaces what is stored by a copy, or by nothing.
func (b *broker) restore(c *broker, now int) {
	if c == nil {
		c = newBroker(b.room)
	}
	store := b.store + 1
	*b = *c.copy()
	b.store, b.moved = store, true
	for _, t := range b.tasks {
		t.until = min(t.until, now+ackWait) // whoever had it has it no more
	}
}
