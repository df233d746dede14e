package protocol

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/flipmill/flipmill/pkg/wire"
)

// Collector knows which chunks of a job an aggregator has, what is committed, and
// what the ledger is to say.
type Collector struct {
	partChunks int64
	totals     *wire.Totals // nil until the job is sealed
	open       map[int64]*openPart
	committed  map[int64]bool
	received   wire.Count // accepted results, those of committed parts included
	kept       wire.Count // of committed parts
	inMemory   int64      // bytes of the results held in memory
	epoch      uint32     // of the latest drive
	ledger     wire.Ledger
	waits      bool  // nothing can be written at present
	due        []due // what is decided and not handed out
}

// openPart is a part that is not committed yet.
type openPart struct {
	chunks map[int64]*Held
	count  wire.Count
}

// Held is an accepted result: where it is in the log, and its content unless
// that was forgotten.
type Held struct {
	Seq     uint64
	Result  *wire.Result // nil: read it again by Seq
	id      wire.ID
	records int64
	digest  [sha256.Size]byte
}

// Same reports whether a result that was read again is the one that was accepted.
// A broker that came back with an older store gives the same places in its log to
// other results.
func (h *Held) Same(r *wire.Result) bool {
	return r.ID == h.id && r.Records() == h.records && r.Digest == h.digest
}

// due is a step that is to be taken.
type due struct {
	step Step
	part int64
}

// size is what a result takes in memory, in bytes.
func (h *Held) size() int64 {
	if h.Result == nil {
		return 0
	}
	return int64(len(h.Result.Results) + len(h.Result.Rejects) + len(h.Result.Tally))
}

// Verdict is what a result means to a collector.
type Verdict int

// The verdicts.
const (
	Accepted  Verdict = iota // a chunk that was missing, or a newer drive's copy of it
	Duplicate                // the chunk is here already
	Stale                    // its part is committed, or the job has ended: its messages are garbage
	Refused                  // it fails the job
)

// String returns the verdict's name.
func (v Verdict) String() string {
	return [...]string{"accepted", "duplicate", "stale", "refused"}[v]
}

// NewCollector returns the collector of an open job of which nothing is known.
func NewCollector(partChunks int) *Collector {
	return &Collector{
		partChunks: int64(partChunks),
		open:       map[int64]*openPart{},
		committed:  map[int64]bool{},
		ledger:     wire.Ledger{State: wire.Open},
	}
}

// Recall takes in the ledger that an earlier process wrote of the job. If the job
// has not ended, or is driven again, only the progress is of use, until the log
// has been read again. What a failure was to purge and did not comes first: a new
// drive publishes nothing before it hears that the job is open.
func (c *Collector) Recall(l *wire.Ledger, job *wire.Job) {
	if l.State == wire.Failed || l.State == wire.Cancelled {
		c.plan(PurgeJob, 0)
	}
	if l.Ended(job) {
		c.ledger = *l
		return
	}
	if l.State != wire.Done { // of which a retry makes parts again
		c.ledger.Received = l.Received
	}
}

// Driven takes in the number of the latest drive. What ends the job later, ends it
// for the drives so far.
func (c *Collector) Driven(epoch uint32) {
	c.epoch = max(c.epoch, epoch)
	if c.Ended() {
		c.ledger.Epoch = c.epoch
	}
}

// Restore takes in a part that an earlier process committed.
func (c *Collector) Restore(part wire.Part, count wire.Count) {
	c.committed[part.Number] = true
	c.kept = sum(c.kept, count)
	c.received = sum(c.received, count)
	c.ledger.Add(part)
}

// Seal takes in what the job's corpus was.
func (c *Collector) Seal(totals *wire.Totals) {
	if c.Ended() || c.totals != nil {
		return
	}
	c.totals = totals
	if err := c.fits(); err != nil {
		c.Fail(err)
	}
}

// fits reports chunks or parts that a sealed job cannot have: an earlier drive of
// the corpus has left them.
func (c *Collector) fits() error {
	for part := range c.committed {
		if part >= c.parts() {
			return fmt.Errorf("part %d is committed, beyond the job's %d chunks", part, c.totals.Chunks)
		}
	}
	for _, p := range c.open {
		for chunk := range p.chunks {
			if err := c.beyond(chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// beyond reports a chunk that a sealed job cannot have.
func (c *Collector) beyond(chunk int64) error {
	if c.totals != nil && chunk >= c.totals.Chunks {
		return fmt.Errorf("chunk %d is beyond the job's %d chunks", chunk, c.totals.Chunks)
	}
	return nil
}

// Receive takes in the result that stands at seq in the log under an id. The
// content is not looked at where nobody needs it.
func (c *Collector) Receive(id wire.ID, seq uint64, content func() (*wire.Result, error)) Verdict {
	if c.Ended() {
		c.plan(Purge, id.Part)
		return Stale
	}
	r, err := content()
	if err != nil {
		c.Fail(fmt.Errorf("read the result of chunk %d: %w", id.Chunk, err))
		return Refused
	}
	c.Driven(r.ID.Epoch) // a result may overtake the job's record
	if err := c.check(r); err != nil {
		c.Fail(err)
		return Refused
	}
	id = r.ID // which has the epoch
	if c.committed[id.Part] {
		c.plan(Purge, id.Part)
		return Stale
	}
	p := c.open[id.Part]
	if p == nil {
		p = &openPart{chunks: map[int64]*Held{}}
		c.open[id.Part] = p
	}
	h := &Held{Seq: seq, Result: r, id: id, records: r.Records(), digest: r.Digest}
	old := p.chunks[id.Chunk]
	switch {
	case old == nil:
		c.count(p, 1, h.records)
	case old.id.Epoch < h.id.Epoch: // the corpus was driven again; its newest reading counts
		c.count(p, 0, h.records-old.records)
		c.inMemory -= old.size()
	default:
		return Duplicate
	}
	p.chunks[id.Chunk] = h
	c.inMemory += h.size()
	return Accepted
}

// check reports a result with which the job cannot go on.
func (c *Collector) check(r *wire.Result) error {
	id := r.ID
	if r.Failure != "" {
		return fmt.Errorf("chunk %d: %s", id.Chunk, r.Failure)
	}
	if want := id.Chunk / c.partChunks; id.Part != want {
		return fmt.Errorf("chunk %d claims part %d, want part %d", id.Chunk, id.Part, want)
	}
	return c.beyond(id.Chunk)
}

// Forget drops the content of a chunk's result from memory: it stays in the log.
func (c *Collector) Forget(chunk int64) {
	h := c.At(chunk)
	c.inMemory -= h.size()
	h.Result = nil
}

func (c *Collector) count(p *openPart, chunks, records int64) {
	delta := wire.Count{Chunks: chunks, Records: records}
	p.count = sum(p.count, delta)
	c.received = sum(c.received, delta)
}

// At returns the accepted result of a chunk, nil if it is missing.
func (c *Collector) At(chunk int64) *Held {
	if p := c.open[chunk/c.partChunks]; p != nil {
		return p.chunks[chunk]
	}
	return nil
}

// Span returns the first chunk of a part and the one after its last, as far as
// that is known.
func (c *Collector) Span(part int64) (first, end int64) {
	first, end = part*c.partChunks, (part+1)*c.partChunks
	if c.totals != nil {
		end = min(end, c.totals.Chunks)
	}
	return first, end
}

// full reports whether a part that is not committed has all its chunks. The
// last part of a job can be full only once the job is sealed. The first part of
// a job without chunks is full and empty: an empty dataset has a schema too.
func (c *Collector) full(part int64) bool {
	if c.committed[part] || c.totals != nil && part >= c.parts() {
		return false
	}
	first, end := c.Span(part)
	if p := c.open[part]; p != nil {
		return int64(len(p.chunks)) == end-first
	}
	return first == end
}

// ready returns the first part that can be committed.
func (c *Collector) ready() (first int64, ok bool) {
	if c.full(0) {
		return 0, true
	}
	for part := range c.open {
		if (!ok || part < first) && c.full(part) {
			first, ok = part, true
		}
	}
	return first, ok
}

// parts returns the number of parts of a sealed job.
func (c *Collector) parts() int64 {
	return max(1, (c.totals.Chunks+c.partChunks-1)/c.partChunks)
}

// done reports whether every part of the job is committed.
func (c *Collector) done() bool {
	return c.totals != nil && int64(len(c.committed)) == c.parts()
}

// Next returns what is to be done now, and with which part. Commit and Finish
// are returned until it is said what came of them; the others once.
func (c *Collector) Next() (Step, int64) {
	if !c.Ended() && !c.waits && len(c.due) == 0 {
		if part, ok := c.ready(); ok {
			return Commit, part
		}
		if c.done() {
			if wire.SumParts(c.ledger.Parts) == c.totals.PartsSHA256 {
				return Finish, 0
			}
			c.Fail(errors.New("parts were made from another corpus than the one that was read to its end"))
		}
	}
	if len(c.due) == 0 {
		return Rest, 0
	}
	next := c.due[0]
	c.due = c.due[1:]
	return next.step, next.part
}

func (c *Collector) plan(step Step, part int64) { c.due = append(c.due, due{step, part}) }

// Committed notes that a part is durable. The ledger is told before the purge:
// who reads it may find the part in both places, never in none.
func (c *Collector) Committed(part wire.Part) {
	if p := c.open[part.Number]; p != nil {
		c.kept = sum(c.kept, p.count)
		for _, h := range p.chunks {
			c.inMemory -= h.size()
		}
		delete(c.open, part.Number)
	}
	c.committed[part.Number] = true
	c.ledger.Add(part)
	c.plan(Tell, 0)
	c.plan(Purge, part.Number)
}

// Retryable takes in how many rejects of the dataset a retry may help.
func (c *Collector) Retryable(records int64) { c.ledger.Retryable = records }

// Finished notes that the dataset is complete.
func (c *Collector) Finished() { c.end(wire.Done, "") }

// Fail gives the job up: what is wrong with it, waiting cannot heal. What the
// broker has of it is purged; a new drive begins anew.
func (c *Collector) Fail(cause error) {
	c.plan(LookUp, 0) // so that it ends for every drive that has begun
	c.end(wire.Failed, cause.Error())
	c.plan(PurgeJob, 0)
}

// Cancel ends the job because people wanted it. What workers still send, and what
// a producer still hands over, is purged when it comes.
func (c *Collector) Cancel(reason string) {
	c.end(wire.Cancelled, reason)
	c.plan(PurgeJob, 0)
}

// end forgets the results of a job that needs no more.
func (c *Collector) end(state wire.State, reason string) {
	c.open, c.inMemory = nil, 0
	c.ledger.State, c.ledger.Reason, c.ledger.Epoch = state, reason, c.epoch
	c.plan(Tell, 0)
}

// Ended reports whether the job is done, failed or cancelled.
func (c *Collector) Ended() bool { return c.ledger.State.Ended() }

// Wait notes that nothing can be written at present, and why. Results are taken
// in as ever.
func (c *Collector) Wait(cause error) {
	c.waits, c.ledger.Reason = true, cause.Error()
	c.plan(Tell, 0)
}

// Retry ends the waiting.
func (c *Collector) Retry() {
	if c.Waits() {
		c.waits, c.ledger.Reason = false, ""
	}
}

// Waits reports whether the job waits until something can be written.
func (c *Collector) Waits() bool { return c.waits && !c.Ended() }

// Refresh has the ledger of an open job told again.
func (c *Collector) Refresh() {
	if !c.Ended() {
		c.plan(Tell, 0)
	}
}

// Ledger returns what is to be told. What has been received does not fall, though
// a restart has to find it again and what was lost comes again; only the end of
// a job makes it what it is.
func (c *Collector) Ledger() *wire.Ledger {
	told := &c.ledger.Received
	told.Chunks, told.Records = max(told.Chunks, c.received.Chunks), max(told.Records, c.received.Records)
	if c.ledger.State == wire.Done {
		*told = c.received
	}
	c.ledger.Committed = c.kept
	return &c.ledger
}

// Received returns how much has arrived.
func (c *Collector) Received() wire.Count { return c.received }

// InMemory returns the bytes of the results that are held.
func (c *Collector) InMemory() int64 { return c.inMemory }

// Open returns the number of parts of which some chunks have arrived and which
// are not committed, and the number of those chunks.
func (c *Collector) Open() (parts, chunks int) {
	for _, p := range c.open {
		chunks += len(p.chunks)
	}
	return len(c.open), chunks
}

func sum(a, b wire.Count) wire.Count {
	return wire.Count{Chunks: a.Chunks + b.Chunks, Records: a.Records + b.Records}
}
