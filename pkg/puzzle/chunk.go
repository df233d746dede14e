package puzzle

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// Chunk is a number of consecutive records of a corpus: the unit that the
// producer sends, a worker solves, and one Parquet row group holds. Record k of
// the chunk has puzzle_index First+k. A record is a board or a reject: Rejects
// name their own index, the boards of Runs take the remaining ones in order.
type Chunk struct {
	First   int64    // puzzle_index of the first record
	Spans   []Span   // where the records come from, in order; their Records sum up to the chunk's
	Lines   []int64  // 1-based line where each record starts; empty where records have no line
	Runs    []Run    // boards, in order
	Rejects []Reject // ascending Index

	// Generated is the number of boards that are made where they are solved: those
	// from number First on of what Spec.Generate says. Then there is nothing else in
	// the chunk but a span of them.
	Generated int

	// Labels has the records' own ids, then their values of each column of
	// Spec.Keep, a text for each record. It is empty where no record has any.
	Labels []Labels
}

// Span is a stretch of consecutive records from one source.
type Span struct {
	Source  string // file name as given; empty where records have no source
	Records int
}

// Reason is the code of a rejected record, as the dataset spells it.
type Reason string

// The reasons for which a record is rejected.
const (
	UnknownSymbol Reason = "unknown_symbol" // a character that the symbols do not map to a cell
	RaggedRow     Reason = "ragged_row"     // rows of different lengths, or not as many cells or rows as the size says
	BadSize       Reason = "bad_size"       // a size that is missing, unreadable or not the one asked for
	TooLarge      Reason = "too_large"      // a board beyond the solver's limits
	Truncated     Reason = "truncated"      // the source ends within the record
	LineTooLong   Reason = "line_too_long"  // a line, or a record of several, above the reader's limit
	BadSyntax     Reason = "bad_syntax"     // text that is not what its format wants there
	BadField      Reason = "bad_field"      // a field that is missing, too long, or of a type that it cannot have
	OverExpanded  Reason = "over_expanded"  // a compressed file that becomes too large; its rest is not read
	WorkerFailed  Reason = "worker_failed"  // no worker could process the record's chunk
)

// Reasons returns all of them.
func Reasons() []Reason {
	return []Reason{UnknownSymbol, RaggedRow, BadSize, TooLarge, Truncated, LineTooLong, BadSyntax, BadField, OverExpanded, WorkerFailed}
}

// Retryable reports whether the record may be solved after all if it is tried
// again: nothing is wrong with the record itself.
func (r Reason) Retryable() bool { return r == WorkerFailed }

// MaxRaw is the most bytes of a rejected record's text that are kept.
const MaxRaw = 256

// Reject is a record that cannot be solved, and why.
type Reject struct {
	Index  int64 // puzzle_index
	Reason Reason
	Detail string // what was found and what was expected, for people
	Raw    []byte // the record's text as read, cut at MaxRaw bytes; not always UTF-8
}

// Boards returns the number of boards in the chunk.
func (c *Chunk) Boards() int {
	n := c.Generated
	for _, r := range c.Runs {
		n += r.Count
	}
	return n
}

// Records returns the number of records in the chunk.
func (c *Chunk) Records() int { return c.Boards() + len(c.Rejects) }

// Digest is the SHA-256 of the chunk's content: equal digests mean equal
// records from equal places. It is kept in the dataset, so its input is fixed:
// First; the spans (name, records); the steps of the lines, then their counts
// (LineSteps); the runs (rows, cols, count, masks as of AppendMasks with MaskBytes); the
// rejects (index, reason, detail, raw); the labels, if there are any (all ends, then the
// text, of each list). Generated boards are content by their numbers, which First and
// the span are, since their corpus is part of the spec. Each list but the masks is
// preceded by its length, each string by its byte count, and every number but the masks
// is a big-endian uint64.
func (c *Chunk) Digest() [sha256.Size]byte {
	d := digester{h: sha256.New()}
	d.number(c.First)
	d.number(int64(len(c.Spans)))
	for _, s := range c.Spans {
		d.text(s.Source)
		d.number(int64(s.Records))
	}
	steps, counts := LineSteps(c.Lines)
	d.numbers(steps)
	d.numbers(counts)
	d.number(int64(len(c.Runs)))
	for _, r := range c.Runs {
		d.number(int64(r.Rows))
		d.number(int64(r.Cols))
		d.number(int64(r.Count))
		d.masks(r)
	}
	d.number(int64(len(c.Rejects)))
	for _, r := range c.Rejects {
		d.number(r.Index)
		d.text(string(r.Reason))
		d.text(r.Detail)
		d.text(string(r.Raw))
	}
	d.labels(c.Labels)
	d.flush()
	return [sha256.Size]byte(d.h.Sum(nil))
}

// digester feeds a hash in large pieces.
type digester struct {
	h   hash.Hash
	buf []byte
}

const digestPiece = 16 << 10 // bytes; large enough that the hash's own loop dominates

func (d *digester) flush() {
	d.h.Write(d.buf)
	d.buf = d.buf[:0]
}

func (d *digester) number(n int64) {
	if len(d.buf) >= digestPiece {
		d.flush()
	}
	d.buf = binary.BigEndian.AppendUint64(d.buf, uint64(n))
}

func (d *digester) text(s string) {
	d.number(int64(len(s)))
	d.buf = append(d.buf, s...)
}

func (d *digester) labels(labels []Labels) {
	if len(labels) == 0 {
		return
	}
	d.number(int64(len(labels)))
	for i := range labels {
		d.number(int64(len(labels[i].Ends)))
		for _, end := range labels[i].Ends {
			d.number(int64(end))
		}
		d.text(string(labels[i].Text))
	}
}

func (d *digester) numbers(numbers []int64) {
	d.number(int64(len(numbers)))
	for _, n := range numbers {
		d.number(n)
	}
}

func (d *digester) masks(r Run) {
	for piece := range slices.Chunk(r.Masks, digestPiece/r.MaskBytes()) {
		d.flush()
		d.buf = AppendMasks(d.buf, piece, r.MaskBytes())
	}
}
