package producer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
)

// maxMessage is the largest payload that a stock server takes, less a header.
const maxMessage = 1<<20 - 256

func testSpec(t testing.TB) puzzle.Spec {
	t.Helper()
	rule, err := puzzle.ParseRule("plus")
	if err != nil {
		t.Fatal(err)
	}
	return puzzle.Spec{
		Rule: rule, SearchLimit: 1 << 20, Columns: dataset.Columns(), Cells: dataset.CellsText,
		Compression: dataset.CompressionZstd, PartChunks: 2, Format: corpus.Lines, Symbols: puzzle.Digits(),
	}
}

func board(rng *rand.Rand, size puzzle.Size) puzzle.Run {
	run := puzzle.NewRun(size, 1)
	for l := range run.Masks {
		run.Masks[l] = uint16(rng.Uint32()) & run.FullMask(l)
	}
	return run
}

func reject(rng *rand.Rand, raw int) puzzle.Reject {
	r := puzzle.Reject{Reason: puzzle.UnknownSymbol, Detail: fmt.Sprintf("symbol %d", rng.IntN(300)), Raw: make([]byte, raw)}
	for i := range r.Raw {
		r.Raw[i] = byte(rng.Uint32())
	}
	return r
}

// shape is a kind of corpus: record k of it, the same for the same generator.
// Source and Line are left as they are unless the shape is about them.
type shape struct {
	name    string
	records int
	record  func(rng *rand.Rand, k int) corpus.Record
}

func boards(name string, records int, sizes ...puzzle.Size) shape {
	return shape{name, records, func(rng *rand.Rand, k int) corpus.Record {
		return corpus.Record{Board: board(rng, sizes[k%len(sizes)])}
	}}
}

func shapes() []shape {
	size := func(rows, cols int) puzzle.Size { return puzzle.Size{Rows: rows, Cols: cols} }
	return []shape{
		boards("1x1", 70_000, size(1, 1)),
		boards("5x5", 50_000, size(5, 5)),
		boards("15x15", 12_000, size(15, 15)),
		boards("16x16", 12_000, size(16, 16)),
		boards("19x19", 8000, size(19, 19)),
		boards("256x16", 1500, size(256, 16)),
		boards("16x256", 1500, size(16, 256)),
		boards("5x5 and 5x6 in turn", 30_000, size(5, 5), size(5, 6)),
		boards("1x1 and 256x16 in turn", 3000, size(1, 1), size(256, 16)),
		{"rejects of 256 raw bytes", 5000, func(rng *rand.Rand, _ int) corpus.Record {
			return corpus.Record{Reject: reject(rng, puzzle.MaxRaw)}
		}},
		{"rejects with every other byte invalid", 6000, func(rng *rand.Rand, _ int) corpus.Record {
			r := reject(rng, puzzle.MaxRaw/2)
			for i := range r.Raw {
				r.Raw[i] = r.Raw[i]&0x7f | byte(i%2)<<7
			}
			return corpus.Record{Reject: r}
		}},
		{"a file for every record", 9000, func(rng *rand.Rand, k int) corpus.Record {
			return corpus.Record{Source: fmt.Sprintf("%s/%06d", strings.Repeat("folder", 20), k), Line: 1, Board: board(rng, size(3, 3))}
		}},
		{"long names with a board and a reject each", 1000, func(rng *rand.Rand, k int) corpus.Record {
			rec := corpus.Record{Source: fmt.Sprintf("%s/%06d", strings.Repeat("folder", 600), k/2), Line: int64(1 + k%2), Board: board(rng, size(3, 3))}
			if k%2 == 1 {
				rec.Reject = reject(rng, 9)
			}
			return rec
		}},
		{"labels now and then", 9000, func(rng *rand.Rand, k int) corpus.Record {
			rec := corpus.Record{Board: board(rng, size(3, 3))}
			for i := range rng.IntN(2) * 3 {
				rec.Labels.Add([]byte(strings.Repeat("x", rng.IntN(40*(i+1)))))
			}
			return rec
		}},
		{"the longest labels", 300, func(rng *rand.Rand, k int) corpus.Record {
			rec := corpus.Record{Board: board(rng, size(3, 3))}
			for range 1 + puzzle.MaxKeep {
				label := make([]byte, puzzle.MaxLabel)
				for i := range label {
					label[i] = byte('!' + rng.IntN(90))
				}
				rec.Labels.Add(label)
			}
			return rec
		}},
		{"a bit of everything", 40_000, func(rng *rand.Rand, k int) corpus.Record {
			rec := corpus.Record{Source: fmt.Sprintf("part %d", k/7000), Line: int64(k%7000*5 + rng.IntN(5) + 1)}
			if rng.IntN(10) == 0 {
				rec.Reject = reject(rng, rng.IntN(puzzle.MaxRaw+1))
			} else {
				rec.Board = board(rng, size(1+rng.IntN(9)/8*rng.IntN(30), 1+rng.IntN(16)))
			}
			return rec
		}},
	}
}

// corpus returns the shape's records.
func (s shape) corpus() []corpus.Record {
	rng := rand.New(rand.NewPCG(7, 11))
	records := make([]corpus.Record, s.records)
	for k := range records {
		records[k] = s.record(rng, k)
		if records[k].Line == 0 {
			records[k].Source, records[k].Line = "corpus.txt", int64(k+1)
		}
	}
	return records
}

// split cuts records as Run does, with one Record that is used again and again.
func split(spec puzzle.Spec, records []corpus.Record) []*puzzle.Chunk {
	s := newSplitter(spec)
	var chunks []*puzzle.Chunk
	var rec corpus.Record
	for _, r := range records {
		masks, raw := append(rec.Board.Masks[:0], r.Board.Masks...), append(rec.Reject.Raw[:0], r.Reject.Raw...)
		rec = r
		rec.Board.Masks, rec.Reject.Raw = masks, raw
		if !s.add(&rec) {
			chunks = append(chunks, clone(s.take()))
			s.add(&rec)
		}
	}
	return append(chunks, clone(s.take()))
}

// clone returns a chunk that stays as it is when the splitter goes on.
func clone(c *puzzle.Chunk) *puzzle.Chunk {
	kept := *c
	kept.Lines, kept.Runs = slices.Clone(c.Lines), slices.Clone(c.Runs)
	for i := range kept.Runs {
		kept.Runs[i].Masks = slices.Clone(c.Runs[i].Masks)
	}
	return &kept
}

// describe is a record on one line.
func describe(index int64, r corpus.Record) string {
	var labels strings.Builder
	for i := range r.Labels.Len() { // none of them is the same as empty ones
		labels.WriteString(strings.TrimSuffix(fmt.Sprintf("%d:%s,", i, r.Labels.At(i)), fmt.Sprintf("%d:,", i)))
	}
	if labels.String() != "" {
		return fmt.Sprintf("%d %s:%d %s %x %s %s", index, r.Source, r.Line, r.Reject.Reason, r.Reject.Raw, r.Board.AppendText(nil, 0), labels.String())
	}
	if r.Rejected() {
		return fmt.Sprintf("%d %s:%d %s %q %x", index, r.Source, r.Line, r.Reject.Reason, r.Reject.Detail, r.Reject.Raw)
	}
	return fmt.Sprintf("%d %s:%d %s %s", index, r.Source, r.Line, r.Board.Size, r.Board.AppendText(nil, 0))
}

// records takes a chunk apart, by the definition in package puzzle.
func records(c *puzzle.Chunk) (list []string) {
	var sources []string
	for _, s := range c.Spans {
		sources = append(sources, slices.Repeat([]string{s.Source}, s.Records)...)
	}
	rejects := c.Rejects
	runs, at := c.Runs, 0
	for k := range c.Records() {
		index := c.First + int64(k)
		rec := corpus.Record{Source: sources[k], Line: c.Lines[k]}
		if len(rejects) > 0 && rejects[0].Index == index {
			rec.Reject, rejects = rejects[0], rejects[1:]
		} else {
			rec.Board = puzzle.NewRun(runs[0].Size, 1)
			for l := range rec.Board.BoardMasks() {
				rec.Board.Masks[l] = runs[0].Masks[l*runs[0].Count+at]
			}
			if at++; at == runs[0].Count {
				runs, at = runs[1:], 0
			}
		}
		for i := range c.Labels {
			rec.Labels.Add(c.Labels[i].At(k))
		}
		list = append(list, describe(index, rec))
	}
	return list
}

// The chunks, one after the other, are the records.
func TestSplitKeepsEveryRecord(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			all := s.corpus()
			next := int64(0)
			for i, c := range split(testSpec(t), all) {
				if c.First != next {
					t.Fatalf("chunk %d begins at %d, want %d", i, c.First, next)
				}
				for _, run := range c.Runs {
					if err := run.Validate(); err != nil {
						t.Fatal(err)
					}
				}
				for _, got := range records(c) {
					if want := describe(next, all[next]); got != want {
						t.Fatalf("chunk %d: got record %.200s, want %.200s", i, got, want)
					}
					next++
				}
			}
			if next != int64(len(all)) {
				t.Errorf("%d records in chunks, want %d", next, len(all))
			}
		})
	}
}

// Neighbouring boards of one size share a run, neighbouring records of one
// source a span.
func TestSplitMerges(t *testing.T) {
	for _, s := range shapes() {
		for i, c := range split(testSpec(t), s.corpus()) {
			for k := 1; k < len(c.Runs); k++ {
				if c.Runs[k].Size == c.Runs[k-1].Size {
					t.Fatalf("%s, chunk %d: runs %d and %d could be one", s.name, i, k-1, k)
				}
			}
			for k := 1; k < len(c.Spans); k++ {
				if c.Spans[k].Source == c.Spans[k-1].Source {
					t.Fatalf("%s, chunk %d: spans %d and %d could be one", s.name, i, k-1, k)
				}
			}
		}
	}
}

// Whatever the corpus, compressed or not, a task and a result fit the message of
// a stock server.
func TestMessagesFit(t *testing.T) {
	for _, s := range shapes() {
		all := s.corpus()
		for _, compression := range []string{dataset.CompressionZstd, dataset.CompressionNone} {
			spec := testSpec(t)
			spec.Compression = compression
			chunk := split(spec, all)[0]
			task, result := messageSizes(t, spec, chunk)
			if chunk.Records() > maxChunkRecords || max(task, result) > maxMessage {
				t.Errorf("%s, %s: %d records, a task of %d bytes, a result of %d", s.name, compression, chunk.Records(), task, result)
			}
		}
	}
}

// messageSizes returns the bytes of a chunk's task and of a result that is as
// large as it can get.
func messageSizes(t *testing.T, spec puzzle.Spec, chunk *puzzle.Chunk) (task, result int) {
	t.Helper()
	encoder, err := dataset.NewEncoder(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	results, rejects, err := encoder.Encode(chunk, randomAnswers(rand.New(rand.NewPCG(3, 4)), chunk))
	if err != nil {
		t.Fatal(err)
	}
	id := wire.ID{Job: "j"}
	asked, err := wire.AppendTask(nil, &wire.Task{ID: id, Chunk: *chunk})
	if err != nil {
		t.Fatal(err)
	}
	answered, err := wire.AppendResult(nil, &wire.Result{ID: id, Results: results, Rejects: rejects})
	if err != nil {
		t.Fatal(err)
	}
	return len(asked), len(answered)
}

// randomAnswers answers every board with random presses: nothing is harder to
// compress.
func randomAnswers(rng *rand.Rand, c *puzzle.Chunk) []puzzle.Answers {
	answers := make([]puzzle.Answers, len(c.Runs))
	for i, run := range c.Runs {
		a := &answers[i]
		a.Reset(run.Size, run.Count)
		for k := range run.Count {
			a.Status[k], a.Reached[k] = puzzle.Solved, puzzle.Target(rng.IntN(2))
			a.MinMoves[k], a.OptimalCount[k] = int32(rng.IntN(run.Cells()+1)), 1+rng.Int64N(1<<16)
		}
		for l := range a.Solutions.Masks {
			a.Solutions.Masks[l] = uint16(rng.Uint32()) & run.FullMask(l/run.Count)
		}
	}
	return answers
}

// So many generated boards are a chunk that its result fits into a message, and at
// least one, whatever the columns.
func TestMadeBoards(t *testing.T) {
	spec, rng := testSpec(t), rand.New(rand.NewPCG(3, 3))
	all := spec.Columns
	for _, size := range []puzzle.Size{{Rows: 1, Cols: 1}, {Rows: 5, Cols: 5}, {Rows: 256, Cols: 16}, {Rows: 16, Cols: 256}} {
		for _, columns := range [][]string{all, {}} {
			spec.Size, spec.Columns = size, columns
			n := RangeRecords(spec)
			run := puzzle.NewRun(size, n)
			for k := range run.Masks {
				run.Masks[k] = uint16(rng.Uint32()) & run.FullMask(k/run.Count)
			}
			chunk := &puzzle.Chunk{Spans: []puzzle.Span{{Records: n}}, Runs: []puzzle.Run{run}}
			if task, result := messageSizes(t, spec, chunk); n < 1 || n > maxChunkRecords || max(task, result) > 1000<<10 {
				t.Errorf("%s, columns %v: %d boards are messages of %d and %d bytes", size, columns, n, task, result)
			}
		}
	}
}

// A chunk ends where it must, not before, and where the ones before it ended
// does not matter: the rest of a corpus is cut as if it were all of one.
func TestSplitIsAFunctionOfTheRecords(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			all := s.corpus()
			chunks := split(testSpec(t), all)
			if len(chunks) < 2 {
				t.Fatalf("%d records make one chunk: the shape shows nothing", len(all))
			}
			rest := split(testSpec(t), all[chunks[1].First:])
			if len(rest) != len(chunks)-1 {
				t.Fatalf("the rest has %d chunks, want %d", len(rest), len(chunks)-1)
			}
			for i, c := range rest {
				shift(c, chunks[1].First)
				if c.Digest() != chunks[i+1].Digest() {
					t.Errorf("chunk %d of the rest differs", i)
				}
			}
			// One record more or less at the end of the corpus is the last chunk's business.
			for i, c := range split(testSpec(t), all[:len(all)-1])[:len(chunks)-1] {
				if c.Digest() != chunks[i].Digest() {
					t.Errorf("chunk %d depends on the last record", i)
				}
			}
		})
	}
}

func shift(c *puzzle.Chunk, by int64) {
	c.First += by
	for i := range c.Rejects {
		c.Rejects[i].Index += by
	}
}

// Where chunks end decides the bytes of every dataset. If this test fails,
// datasets made before cannot be resumed or compared: think of SchemaVersion.
func TestChunkEnds(t *testing.T) {
	for _, test := range []struct {
		shape       string
		compression string
		want        []int
	}{
		{"1x1", dataset.CompressionZstd, []int{65532, 4468}},
		{"5x5", dataset.CompressionZstd, []int{40957, 9043}},
		{"5x5", dataset.CompressionNone, []int{11298, 11298, 11298, 11298, 4808}},
		{"15x15", dataset.CompressionZstd, []int{9929, 2071}},
		{"16x16", dataset.CompressionSnappy, []int{3900, 3900, 3900, 300}},
		{"256x16", dataset.CompressionZstd, []int{635, 635, 230}},
		{"19x19", dataset.CompressionZstd, []int{6553, 1447}},
		{"5x5 and 5x6 in turn", dataset.CompressionZstd, []int{23404, 6596}},
		{"rejects of 256 raw bytes", dataset.CompressionZstd, []int{2187, 2187, 626}},
		{"a file for every record", dataset.CompressionZstd, []int{2323, 2323, 2323, 2031}},
		{"a bit of everything", dataset.CompressionZstd, []int{17264, 17095, 5641}},
	} {
		spec := testSpec(t)
		spec.Compression = test.compression
		i := slices.IndexFunc(shapes(), func(s shape) bool { return s.name == test.shape })
		var got []int
		for _, c := range split(spec, shapes()[i].corpus()) {
			got = append(got, c.Records())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s, %s: chunks of %v records, want %v", test.shape, test.compression, got, test.want)
		}
	}
}

// The splitter's chunks share no memory with the records.
func TestChunksStandAlone(t *testing.T) {
	rec := corpus.Record{Source: "f", Line: 1, Reject: puzzle.Reject{Reason: puzzle.BadSize, Raw: []byte("raw")}}
	s := newSplitter(testSpec(t))
	s.add(&rec)
	copy(rec.Reject.Raw, "new")
	c := s.take()
	s.add(&rec)
	if got := c.Rejects[0].Raw; !bytes.Equal(got, []byte("raw")) {
		t.Errorf("the chunk's raw text has become %q", got)
	}
}
