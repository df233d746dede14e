package aggregator

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flipmill/flipmill/pkg/wire"
)

// collector knows which chunks of one job are here and decides when a part can
// be committed. It does no I/O: the loop feeds it and carries out what it says.
type collector struct {
	partChunks int64
	chunks     int64 // of the whole job; -1 until the job is sealed
	open       map[int64]*openPart
	committed  map[int64]bool
	received   wire.Count // accepted results, those of committed parts included
	kept       wire.Count // of committed parts
	inMemory   int64      // bytes of the results held in memory
}

// openPart is a part that is not committed yet.
type openPart struct {
	chunks map[int64]*held
	count  wire.Count
}

// held is an accepted result: where it is in the log, and its content unless
// the memory budget was used up.
type held struct {
	seq     uint64
	epoch   uint32
	records int64
	result  *wire.Result // nil: read it again by seq
}

// size is what a result takes in memory, in bytes.
func (h *held) size() int64 {
	if h.result == nil {
		return 0
	}
	return int64(len(h.result.Results) + len(h.result.Rejects) + len(h.result.Tally))
}

// verdict is what a result means to the collector.
type verdict int

const (
	accepted  verdict = iota // a chunk that was missing, or a newer drive's copy of it
	duplicate                // the chunk is here already
	stale                    // its part is committed: its messages are garbage
)

func newCollector(partChunks int) *collector {
	return &collector{
		partChunks: int64(partChunks),
		chunks:     -1,
		open:       map[int64]*openPart{},
		committed:  map[int64]bool{},
	}
}

// restore takes in a part that an earlier process committed.
func (c *collector) restore(part int64, count wire.Count) {
	c.committed[part] = true
	c.kept = sum(c.kept, count)
	c.received = sum(c.received, count)
}

// seal sets the number of chunks in the job. An error says that an earlier drive
// of the corpus has left more than that.
func (c *collector) seal(chunks int64) error {
	c.chunks = chunks
	for part := range c.committed {
		if part > c.last() {
			return fmt.Errorf("part %d is committed, beyond the job's %d chunks", part, chunks)
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
func (c *collector) beyond(chunk int64) error {
	if c.chunks >= 0 && chunk >= c.chunks {
		return fmt.Errorf("chunk %d is beyond the job's %d chunks", chunk, c.chunks)
	}
	return nil
}

// receive takes in a result that stands at seq in the log. An error says that
// the result cannot belong to the job.
func (c *collector) receive(r *wire.Result, seq uint64) (verdict, error) {
	id := r.ID
	if id.Part != id.Chunk/c.partChunks {
		return 0, fmt.Errorf("chunk %d claims part %d, want part %d", id.Chunk, id.Part, id.Chunk/c.partChunks)
	}
	if err := c.beyond(id.Chunk); err != nil {
		return 0, err
	}
	if c.committed[id.Part] {
		return stale, nil
	}
	p := c.open[id.Part]
	if p == nil {
		p = &openPart{chunks: map[int64]*held{}}
		c.open[id.Part] = p
	}
	h := &held{seq: seq, epoch: id.Epoch, records: r.Records(), result: r}
	old := p.chunks[id.Chunk]
	switch {
	case old == nil:
		c.count(p, 1, h.records)
	case old.epoch < h.epoch: // the corpus was driven again; its newest reading counts
		c.count(p, 0, h.records-old.records)
		c.inMemory -= old.size()
	default:
		return duplicate, nil
	}
	p.chunks[id.Chunk] = h
	c.inMemory += h.size()
	return accepted, nil
}

// forget drops the content of a chunk's result from memory: it stays in the log.
func (c *collector) forget(chunk int64) {
	h := c.at(chunk)
	c.inMemory -= h.size()
	h.result = nil
}

// lose notes that the result of a chunk is not in the log any more: the chunk is
// missing again.
func (c *collector) lose(chunk int64) {
	p, h := c.open[chunk/c.partChunks], c.at(chunk)
	c.inMemory -= h.size()
	c.count(p, -1, -h.records)
	delete(p.chunks, chunk)
}

func (c *collector) count(p *openPart, chunks, records int64) {
	delta := wire.Count{Chunks: chunks, Records: records}
	p.count = sum(p.count, delta)
	c.received = sum(c.received, delta)
}

// at returns the accepted result of a chunk, nil if it is missing.
func (c *collector) at(chunk int64) *held {
	if p := c.open[chunk/c.partChunks]; p != nil {
		return p.chunks[chunk]
	}
	return nil
}

// span returns the first chunk of a part and the one after its last, as far as
// that is known.
func (c *collector) span(part int64) (first, end int64) {
	first, end = part*c.partChunks, (part+1)*c.partChunks
	if c.chunks >= 0 {
		end = min(end, c.chunks)
	}
	return first, end
}

// full reports whether a part that is not committed has all its chunks. The
// last part of a job can be full only once the job is sealed. The first part of
// a job without chunks is full and empty: an empty dataset has a schema too.
func (c *collector) full(part int64) bool {
	if c.committed[part] || c.chunks >= 0 && part >= c.parts() {
		return false
	}
	first, end := c.span(part)
	if p := c.open[part]; p != nil {
		return int64(len(p.chunks)) == end-first
	}
	return first == end
}

// uncommitted returns the parts that can be full, or the first one where there
// is none: that is where a job that has all its parts is found to be done.
func (c *collector) uncommitted() []int64 {
	if parts := slices.Sorted(maps.Keys(c.open)); len(parts) > 0 {
		return parts
	}
	return []int64{0}
}

// parts returns the number of parts of a sealed job.
func (c *collector) parts() int64 {
	return max(1, (c.chunks+c.partChunks-1)/c.partChunks)
}

// last returns the number of a sealed job's last part.
func (c *collector) last() int64 { return c.parts() - 1 }

// commit notes that a full part is durable.
func (c *collector) commit(part int64) {
	if p := c.open[part]; p != nil {
		c.kept = sum(c.kept, p.count)
		for _, h := range p.chunks {
			c.inMemory -= h.size()
		}
		delete(c.open, part)
	}
	c.committed[part] = true
}

// done reports whether every part of the job is committed.
func (c *collector) done() bool {
	return c.chunks >= 0 && int64(len(c.committed)) == c.parts()
}

func sum(a, b wire.Count) wire.Count {
	return wire.Count{Chunks: a.Chunks + b.Chunks, Records: a.Records + b.Records}
}
