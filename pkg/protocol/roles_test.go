package protocol_test

import (
	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/wire"
)

// The roles of the model do what the loops of the real ones do: they carry out
// the steps of the values in package protocol, one in a turn.

// producer is one submit.
type producer struct {
	w       *world
	job     *job
	version int // of the corpus

	stage  func(p *producer) (ends bool)
	epoch  uint32
	store  int // which store it has heard of
	stored map[int64]bool
	heard  uint64     // revision of the ledger or order that it has heard of
	order  wire.Order // as it was heard last
	hears  bool       // of an aggregator
	window *protocol.Window
	sealed bool
	again  bool           // the job had failed
	missed bool           // the tasks have been looked at
	there  map[int64]bool // chunks that the broker has, while it looks for what is lost
	sent   []wire.ID      // and not known to be stored
}

// underWay is how many tasks are sent and not known to be stored.
const underWay = 4

func newProducer(w *world, j *job, version int) *producer {
	return &producer{w: w, job: j, version: version, store: w.broker.store, stage: (*producer).create, window: protocol.NewWindow(j.partChunks, j.window)}
}

// turn reports whether the submit ends with it.
func (p *producer) turn() (ends bool) {
	if p.store != p.w.broker.store && p.w.rng.IntN(4) == 0 {
		return true // it notices that what it follows is lost
	}
	if len(p.sent) > 0 && p.w.rng.IntN(2) == 0 {
		p.send()
		return false
	}
	return p.stage(p)
}

// leave is its end: what is sent may arrive or not.
func (p *producer) leave() {
	for _, id := range p.sent {
		if p.w.rng.IntN(2) == 0 {
			p.w.late = append(p.w.late, p.arrive(id))
		}
	}
}

func (p *producer) arrive(id wire.ID) func() {
	return func() {
		p.job.published[id.Chunk] = true
		p.w.broker.putTask(id, p.version, p.w.now)
	}
}

// send has a task stored.
func (p *producer) send() {
	if p.w.happens(lostMessage) {
		return
	}
	id := pick(p.w, p.sent)
	p.w.say("task %v of %s is stored", id, p.job.id)
	p.arrive(id)()
	if p.w.happens(lateCopy) {
		p.w.late = append(p.w.late, p.arrive(id))
	}
	if p.w.happens(lostAck) {
		return
	}
	for k := range p.sent {
		if p.sent[k] == id {
			p.sent = append(p.sent[:k:k], p.sent[k+1:]...)
			return
		}
	}
}

func (p *producer) create() bool {
	b := p.w.broker
	rec := b.records[p.job.id]
	if rec == nil {
		rec = &record{order: wire.Proceed}
		b.records[p.job.id] = rec
	}
	if rec.jobRev == 0 {
		rec.job, rec.jobRev = wire.Job{ID: p.job.id}, b.revision()
	}
	p.stage = (*producer).begin
	return false
}

func (p *producer) begin() bool {
	rec := p.w.broker.records[p.job.id]
	if rec == nil || rec.jobRev == 0 {
		return true
	}
	rec.job.Epoch++
	rec.jobRev = p.w.broker.revision()
	p.epoch, p.stage = rec.job.Epoch, (*producer).await
	return false
}

// await waits for an aggregator.
func (p *producer) await() bool {
	if p.hears {
		p.stage = (*producer).look
	}
	return p.listen()
}

// look finds out which chunks the broker has, first the tasks, then the results.
func (p *producer) look() bool {
	if p.again {
		p.stage = (*producer).drive
		return false
	}
	if p.stored == nil {
		p.stored = map[int64]bool{}
		p.addTasks(p.stored)
		return false
	}
	p.addResults(p.stored)
	p.window.Stored(p.stored)
	p.stage = (*producer).drive
	return false
}

// listen takes in where the job stands, if that is new.
func (p *producer) listen() (ends bool) {
	rec := p.w.broker.records[p.job.id]
	if rec == nil || max(rec.ledgerRev, rec.orderRev) <= p.heard {
		return false
	}
	p.heard, p.order = max(rec.ledgerRev, rec.orderRev), rec.order
	ledger := rec.ledger
	if !p.hears && ledger != nil && ledger.State.Ended() && !ledger.Ended(&rec.job) {
		ledger, p.again = nil, true // it ended before this drive
	}
	if why := protocol.Refusal(ledger, rec.order); why != "" {
		p.w.say("%s is not driven any more: %s", p.job.id, why)
		return true
	}
	if ledger != nil {
		copied := *ledger
		p.hears = true
		if err := p.window.Hear(&copied, rec.order); err != nil {
			p.w.say("%s: %v", p.job.id, err)
			return true
		}
	}
	return false
}

func (p *producer) drive() bool {
	if p.listen() {
		return true
	}
	step := p.window.Next()
	chunk, part := p.window.Chunk()
	if chunk == int64(len(p.job.corpora[p.version])) {
		p.stage = (*producer).flush
		return p.window.End() != nil
	}
	if p.w.wrong == noWindow && step == protocol.Rest && !p.window.Paused() && p.hears {
		step = protocol.Publish
	}
	switch step {
	case protocol.Rest:
		if len(p.sent) == 0 && p.w.rng.IntN(8) == 0 {
			p.stage = (*producer).miss
		}
		return false
	case protocol.Publish:
		if len(p.sent) == underWay {
			return false
		}
		unwanted := p.order == wire.Pause || p.order == wire.Cancel || p.stored[chunk]
		if unwanted && p.store == p.w.broker.store {
			p.w.violated("chunk %d of %s is published, which nobody wants", chunk, p.job.id)
		}
		if oldest := p.job.oldest(); part >= oldest+int64(p.job.window) {
			p.w.violated("chunk %d of part %d of %s is published, the oldest part is %d", chunk, part, p.job.id, oldest)
		}
		p.sent = append(p.sent, wire.ID{Job: p.job.id, Chunk: chunk, Part: part, Epoch: p.epoch})
	}
	p.w.say("%s: %v chunk %d", p.job.id, step, chunk)
	err := p.window.Add(p.job.digest(p.version, chunk), int(p.job.corpora[p.version][chunk]))
	if err != nil && !p.job.otherwise {
		p.w.violated("%s: %v", p.job.id, err)
	}
	return err != nil
}

// miss looks, in three turns, whether what it waits for is still there: the tasks, the
// results, and then the ledger. If not, another drive begins.
func (p *producer) miss() bool {
	switch {
	case p.there == nil:
		p.there = map[int64]bool{}
		p.addTasks(p.there)
		return false
	case !p.missed:
		p.addResults(p.there)
		p.missed = true
		return false
	}
	there := p.there
	p.there, p.missed, p.stage = nil, false, (*producer).drive
	if p.listen() {
		return true
	}
	chunk, lost := p.window.Lost(there)
	if !lost {
		return false
	}
	p.w.say("%s: chunk %d is lost", p.job.id, chunk)
	if !p.job.lost && !p.job.otherwise && !p.job.retried && !p.job.mayFail() {
		p.w.violated("chunk %d of %s is taken for lost", chunk, p.job.id)
	}
	p.w.submit(p.job, p.version)
	return true
}

func (p *producer) addTasks(to map[int64]bool) {
	for _, t := range p.w.broker.tasks {
		to[t.id.Chunk] = to[t.id.Chunk] || t.id.Job == p.job.id
	}
}

func (p *producer) addResults(to map[int64]bool) {
	for _, e := range p.w.broker.log {
		to[e.result.ID.Chunk] = to[e.result.ID.Chunk] || e.result.ID.Job == p.job.id
	}
}

func (p *producer) flush() bool {
	if len(p.sent) == 0 || p.w.wrong == sealFirst {
		p.stage = (*producer).seal
	}
	return p.listen()
}

func (p *producer) seal() bool {
	b := p.w.broker
	rec := b.records[p.job.id]
	totals := p.window.Totals()
	switch {
	case rec == nil || rec.jobRev == 0:
		return true
	case rec.job.Totals != nil && *withoutSources(rec.job.Totals) != *withoutSources(totals):
		if !p.job.otherwise {
			p.w.violated("%s: sealed with other totals", p.job.id)
		}
		return true
	}
	for chunk := range totals.Chunks {
		if _, committed := p.job.disk.parts[chunk/int64(p.job.partChunks)]; !p.job.published[chunk] && !committed {
			p.w.violated("%s is sealed before chunk %d is stored", p.job.id, chunk)
		}
	}
	p.w.say("%s is sealed with %d chunks", p.job.id, totals.Chunks)
	rec.job.Totals, rec.version, rec.jobRev = totals, p.version, b.revision()
	p.sealed = true
	return true
}

// comparable is the part of totals that the model has.
type comparable struct {
	records, chunks int64
	parts           [32]byte
}

func withoutSources(t *wire.Totals) *comparable {
	return &comparable{t.Records, t.Chunks, t.PartsSHA256}
}

// worker is a worker with one slot.
type worker struct {
	w      *world
	knows  map[string]bool // jobs
	silent bool            // it is cut off, and does not know it

	task     *task // a copy as delivered; the broker's is found by held
	held     *task
	store    int
	handling *protocol.Handling
	result   *wire.Result
}

func newWorker(w *world) *worker { return &worker{w: w, knows: map[string]bool{}} }

func (x *worker) turn() {
	switch {
	case x.handling == nil:
		x.take()
	case x.w.happens(crash):
		x.w.say("worker with %v dies", x.task.id)
		x.die()
	case x.w.happens(silent):
		x.silent = true
		x.release(ackWait)
	default:
		x.step()
	}
}

// take takes a task.
func (x *worker) take() {
	waiting := x.w.broker.waiting(x.w.now)
	if len(waiting) == 0 {
		return
	}
	t := pick(x.w, waiting)
	t.delivered++
	x.w.broker.moved = true
	t.until = forever
	delivered := *t
	x.task, x.held, x.store, x.silent = &delivered, t, x.w.broker.store, false
	x.handling, x.result = protocol.NewHandling(t.delivered, true), nil
	x.w.say("worker takes %v, delivery %d", t.id, t.delivered)
}

// release lets the task be delivered again after a while.
func (x *worker) release(after int) {
	if x.store == x.w.broker.store && x.held.until == forever {
		x.held.until = x.w.now + after
	}
}

func (x *worker) put() { x.handling, x.task, x.held = nil, nil, nil }

// die is the end of a process; the next one knows nothing.
func (x *worker) die() {
	x.release(ackWait)
	x.put()
	clear(x.knows)
	x.silent = false
}

func (x *worker) step() {
	j := x.w.job(x.task.id.Job)
	step := x.handling.Next()
	x.w.say("worker with %v: %v", x.task.id, step)
	if x.w.wrong == ackFirst && step == protocol.Store {
		x.acknowledge(j)
	}
	switch step {
	case protocol.Rest:
		x.put()
		return
	case protocol.Drop:
		x.settle()
		x.put()
		return
	case protocol.Return, protocol.Delay, protocol.Leave:
		after := ackWait // if the broker does not hear of it
		if !x.silent && !x.w.happens(lostMessage) {
			after = map[protocol.Step]int{protocol.Return: 0}[step]
			if step != protocol.Return {
				after = retryDelay
			}
		}
		x.release(after)
		if x.put(); step == protocol.Leave {
			clear(x.knows)
		}
		return
	}
	if x.w.happens(stopped) {
		x.handling.Did(protocol.Stopped)
		return
	}
	if x.w.happens(passing) {
		x.handling.Did([]protocol.Outcome{protocol.Trouble, protocol.Broken}[x.w.rng.IntN(2)])
		return
	}
	if outcome, over := x.carryOut(step, j); over && x.handling != nil {
		x.handling.Did(outcome)
	}
}

// carryOut does a step; it is not over while the broker does not answer.
func (x *worker) carryOut(step protocol.Step, j *job) (o protocol.Outcome, over bool) {
	id := x.task.id
	switch step {
	case protocol.LookUp:
		rec := x.w.broker.records[j.id]
		if known := x.knows[j.id] || rec != nil && rec.jobRev > 0; !known || rec != nil && rec.order == wire.Cancel {
			return protocol.Unwanted, true
		}
		x.knows[j.id] = true
	case protocol.Solve, protocol.Isolate, protocol.GiveUp:
		return x.solve(step, j)
	case protocol.Refuse:
		x.result = &wire.Result{ID: id, Failure: "refused"}
	case protocol.Store:
		return x.publish(j)
	case protocol.Ack:
		return x.acknowledge(j)
	default:
		x.w.violated("a worker is to %v", step)
	}
	return protocol.Done, true
}

func (x *worker) solve(step protocol.Step, j *job) (protocol.Outcome, bool) {
	id, rejected := x.task.id, int64(0)
	switch k := j.kinds[id.Chunk]; {
	case k == unreadable:
		return protocol.Unreadable, true
	case step == protocol.GiveUp:
		rejected = 1 << 40
	case k == hopeless:
		return protocol.Trouble, true
	case k == kills && step == protocol.Solve:
		x.w.say("worker with %v dies of it", id)
		x.die()
		return 0, false
	case k == kills:
		rejected = 1
	}
	x.result = j.answer(id, x.task.version, rejected)
	return protocol.Done, true
}

func (x *worker) publish(j *job) (protocol.Outcome, bool) {
	if j.kinds[x.task.id.Chunk] == tooLarge && x.result.Failure == "" {
		return protocol.TooLarge, true
	}
	if x.w.happens(lostMessage) {
		return 0, false
	}
	r := x.result
	if !x.w.broker.putResult(r, x.w.now) {
		return 0, false // no room: it waits
	}
	j.answered[r.ID.Chunk] = true
	if x.w.happens(lateCopy) {
		x.w.late = append(x.w.late, func() { x.w.broker.putResult(r, x.w.now) })
	}
	return protocol.Done, !x.w.happens(lostAck)
}

func (x *worker) acknowledge(j *job) (protocol.Outcome, bool) {
	if x.w.happens(lostMessage) {
		return protocol.Trouble, true
	}
	if !j.answered[x.task.id.Chunk] {
		x.w.violated("task %v is acknowledged before its result is stored", x.task.id)
	}
	x.settle()
	if x.w.happens(lostAck) {
		return protocol.Trouble, true
	}
	return protocol.Done, true
}

// settle removes the task from the broker. One whose worker was silent may be in
// other hands by now: it is removed all the same.
func (x *worker) settle() {
	if x.store == x.w.broker.store {
		x.w.broker.remove(x.held)
	}
}
