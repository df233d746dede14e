package producer

import (
	"slices"
	"unicode/utf8"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Limits of a chunk. Where a chunk ends decides the bytes of the dataset, so
// they are part of the format: a changed value needs a new schema version.
const (
	maxChunkRecords = 1 << 16
	// maxChunkBytes leaves a third of a stock server's 1 MiB max_payload for
	// headers, Parquet footers and estimates that are too low.
	maxChunkBytes = 640 << 10
)

// Estimated bytes in a task, besides the masks and the texts.
const (
	runBytes    = 16 // a run's size and count, with protobuf's framing
	spanBytes   = 16 // a span's count and framing, and its first line number; in a result an entry of a dictionary
	recordBytes = 2  // a record's line number
	labelBytes  = 3  // a label's length, in the task as in the result
	rejectBytes = 32 // a reject's index, reason and framing
)

// splitter cuts records into chunks: a pure function of the records and the
// spec. A chunk closes at maxChunkRecords, or before the record with which its
// estimated result or its own bytes would pass maxChunkBytes.
type splitter struct {
	spec puzzle.Spec

	chunk  puzzle.Chunk
	masks  []uint16 // of the chunk's other runs
	boards []uint16 // masks of the boards of the last run, one board after the other

	records     int
	rowBytes    int // estimate of a row with a board of the last run's size
	taskBytes   int
	resultBytes int
}

func newSplitter(spec puzzle.Spec) *splitter { return &splitter{spec: spec} }

// RangeRecords returns how many boards of a generated corpus are a chunk. Their task
// is small, but the worker that makes them needs memory as for others.
func RangeRecords(spec puzzle.Spec) int {
	most := min(maxChunkRecords, maxChunkBytes/(2*spec.Size.BoardMasks()))
	if row := dataset.EstimateRow(spec, spec.Size.Cells()); row > 0 { // without columns it is 0
		most = min(most, maxChunkBytes/row)
	}
	return most
}

// cost estimates the bytes that a record adds to its task and to its result.
func (s *splitter) cost(rec *corpus.Record) (task, result int) {
	task = recordBytes
	if n := len(s.chunk.Spans); n == 0 || s.chunk.Spans[n-1].Source != rec.Source {
		task += spanBytes + len(rec.Source)
		result += spanBytes + 2*len(rec.Source) // results and rejects may both have it
	}
	labels := len(rec.Labels.Text) + labelBytes*rec.Labels.Len()
	task, result = task+labels, result+labels
	if rec.Rejected() {
		text := rejectBytes + len(rec.Reject.Detail)
		return task + text + len(rec.Reject.Raw), result + text + storedRaw(rec.Reject.Raw)
	}
	task += 2 * len(rec.Board.Masks)
	if s.lastSize() != rec.Board.Size {
		task += runBytes
		s.rowBytes = dataset.EstimateRow(s.spec, rec.Board.Cells())
	}
	return task, result + s.rowBytes
}

// storedRaw is the most bytes that a dataset keeps of a raw text: there, an
// invalid byte takes the three of U+FFFD.
func storedRaw(raw []byte) int {
	if utf8.Valid(raw) {
		return len(raw)
	}
	return min(3*len(raw), puzzle.MaxRaw)
}

// add appends the record to the open chunk, or returns false if the chunk must
// be taken first. The first record of a chunk always fits.
func (s *splitter) add(rec *corpus.Record) bool {
	task, result := s.cost(rec)
	task, result = s.taskBytes+task, s.resultBytes+result
	if s.records > 0 && (s.records == maxChunkRecords || max(task, result) > maxChunkBytes) {
		return false
	}
	s.taskBytes, s.resultBytes = task, result
	s.append(rec)
	return true
}

// more appends the boards that follow rec, which was added last, as far as they
// are like it and fit the open chunk.
func (s *splitter) more(c *corpus.Corpus, rec *corpus.Record) {
	if rec.Rejected() || len(s.chunk.Labels) > 0 {
		return
	}
	task, result := recordBytes+2*len(rec.Board.Masks), s.rowBytes
	room := min(maxChunkRecords-s.records, (maxChunkBytes-s.taskBytes)/task)
	if result > 0 {
		room = min(room, (maxChunkBytes-s.resultBytes)/result)
	}
	var n int
	if s.boards, n = c.NextLike(rec, s.boards, max(room, 0)); n == 0 {
		return
	}
	s.chunk.Spans[len(s.chunk.Spans)-1].Records += n
	s.chunk.Runs[len(s.chunk.Runs)-1].Count += n
	s.chunk.Lines = slices.Grow(s.chunk.Lines, n)
	for i := range n {
		s.chunk.Lines = append(s.chunk.Lines, rec.Line+int64(i)+1)
	}
	s.records += n
	s.taskBytes += n * task
	s.resultBytes += n * result
}

func (s *splitter) append(rec *corpus.Record) {
	c := &s.chunk
	if n := len(c.Spans); n == 0 || c.Spans[n-1].Source != rec.Source {
		c.Spans = append(c.Spans, puzzle.Span{Source: rec.Source})
	}
	c.Spans[len(c.Spans)-1].Records++
	c.Lines = append(c.Lines, rec.Line)
	if rec.Rejected() {
		reject := rec.Reject
		reject.Index = c.First + int64(s.records)
		reject.Raw = append([]byte(nil), reject.Raw...)
		c.Rejects = append(c.Rejects, reject)
	} else {
		if s.lastSize() != rec.Board.Size {
			s.closeRun()
			c.Runs = append(c.Runs, puzzle.Run{Size: rec.Board.Size})
		}
		c.Runs[len(c.Runs)-1].Count++
		s.boards = append(s.boards, rec.Board.Masks...)
	}
	if rec.Labels.Len() > 0 || len(c.Labels) > 0 {
		s.label(rec)
	}
	s.records++
}

// label appends the record's labels. Records without any get empty ones where
// others of their chunk have some.
func (s *splitter) label(rec *corpus.Record) {
	c := &s.chunk
	for len(c.Labels) < rec.Labels.Len() {
		c.Labels = append(c.Labels, puzzle.Labels{Ends: make([]uint32, s.records)})
	}
	for i := range c.Labels {
		var text []byte
		if i < rec.Labels.Len() {
			text = rec.Labels.At(i)
		}
		c.Labels[i].Add(text)
	}
}

// lastSize returns the size of the open chunk's last run, zero without one.
func (s *splitter) lastSize() puzzle.Size {
	if n := len(s.chunk.Runs); n > 0 {
		return s.chunk.Runs[n-1].Size
	}
	return puzzle.Size{}
}

// closeRun stores the collected boards of the last run mask by mask.
func (s *splitter) closeRun() {
	if len(s.boards) == 0 {
		return
	}
	run := &s.chunk.Runs[len(s.chunk.Runs)-1]
	n := len(s.masks)
	s.masks = slices.Grow(s.masks, len(s.boards))[:n+len(s.boards)]
	run.Masks = s.masks[n:]
	masks := run.BoardMasks()
	for k := range masks {
		dst := run.Masks[k*run.Count : (k+1)*run.Count]
		for i := range dst {
			dst[i] = s.boards[i*masks+k]
		}
	}
	s.boards = s.boards[:0]
}

// take returns the open chunk, which has at least one record, and opens the next
// one, which uses its memory again: it is valid until the next call of add.
func (s *splitter) take() *puzzle.Chunk {
	s.closeRun()
	chunk := s.chunk
	if !slices.ContainsFunc(chunk.Labels, func(l puzzle.Labels) bool { return len(l.Text) > 0 }) {
		chunk.Labels = nil
	}
	s.chunk = puzzle.Chunk{First: chunk.First + int64(s.records), Lines: chunk.Lines[:0]}
	s.masks = s.masks[:0]
	s.records, s.taskBytes, s.resultBytes = 0, 0, 0
	return &chunk
}
