package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/flipmill/flipmill/pkg/wire"
)

// TestCollector runs the scripts in testdata; -rewrite accepts new outcomes.
// A script knows these commands:
//
//	new part-chunks=K                               a job with K chunks in a part
//	deliver chunk=C [records=R] [epoch=E] [part=P]  a result arrives
//	seal chunks=N                                   the corpus ends
//	commit part=P                                   the part has become durable
//	crash                                           a new process finds the committed parts
//	dump                                            what the collector knows
func TestCollector(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := script{durable: map[int64]wire.Count{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	c          *Collector
	partChunks int
	seq        uint64
	durable    map[int64]wire.Count // what is on disk
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		d.ScanArgs(t, "part-chunks", &s.partChunks)
		s.c = NewCollector(s.partChunks)
		return ""
	case "deliver":
		return s.deliver(t, d)
	case "seal":
		var chunks int64
		d.ScanArgs(t, "chunks", &chunks)
		s.c.Seal(&wire.Totals{Chunks: chunks})
		if s.c.Ended() {
			return s.c.Ledger().Reason + "\n"
		}
		return s.full()
	case "commit":
		var part int64
		d.ScanArgs(t, "part", &part)
		if !s.c.full(part) {
			return "not full\n"
		}
		var count wire.Count
		if p := s.c.open[part]; p != nil {
			count = p.count
		}
		s.durable[part] = count
		s.c.Committed(wire.Part{Number: part})
		return s.state()
	case "crash":
		s.c = NewCollector(s.partChunks)
		for part, count := range s.durable {
			s.c.Restore(wire.Part{Number: part}, count)
		}
		return s.state()
	case "dump":
		return s.dump()
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (s *script) deliver(t *testing.T, d *datadriven.TestData) string {
	id := wire.ID{Job: "j", Epoch: 1}
	records := int64(10)
	d.ScanArgs(t, "chunk", &id.Chunk)
	d.MaybeScanArgs(t, "records", &records)
	d.MaybeScanArgs(t, "epoch", &id.Epoch)
	id.Part = id.Chunk / int64(s.partChunks)
	d.MaybeScanArgs(t, "part", &id.Part)
	s.seq++
	v := s.c.Receive(id, s.seq, func() (*wire.Result, error) { return &wire.Result{ID: id, Boards: records}, nil })
	if v == Refused {
		return s.c.Ledger().Reason + "\n"
	}
	return v.String() + "\n" + s.full()
}

// full lists the parts that can be committed.
func (s *script) full() string {
	var b strings.Builder
	for part := range int64(8) {
		if s.c.full(part) {
			fmt.Fprintf(&b, "part %d is full\n", part)
		}
	}
	return b.String()
}

func (s *script) state() string {
	return fmt.Sprintf("received %v committed %v done %v\n", s.c.received, s.c.kept, s.c.done())
}

func (s *script) dump() string {
	var b strings.Builder
	for _, part := range slices.Sorted(maps.Keys(s.c.open)) {
		for _, chunk := range slices.Sorted(maps.Keys(s.c.open[part].chunks)) {
			h := s.c.At(chunk)
			fmt.Fprintf(&b, "part %d chunk %d: seq %d epoch %d, %d records\n", part, chunk, h.Seq, h.id.Epoch, h.records)
		}
	}
	fmt.Fprintf(&b, "committed parts %v\n", slices.Sorted(maps.Keys(s.c.committed)))
	return b.String() + s.state()
}
