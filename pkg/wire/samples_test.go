package wire

import (
	"crypto/sha256"
	"math/rand/v2"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

func sha(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

func rule(name string) puzzle.Rule {
	r, err := puzzle.ParseRule(name)
	if err != nil {
		panic(err)
	}
	return r
}

// testTask has one run of one board and two rejects on lines 5, 6 and 7.
func testTask() *Task {
	return &Task{ID: ID{Job: "j", Chunk: 2, Part: 1}, Chunk: puzzle.Chunk{
		First:   9,
		Spans:   []puzzle.Span{{Source: "f", Records: 3}},
		Lines:   []int64{5, 6, 7},
		Runs:    []puzzle.Run{puzzle.NewRun(puzzle.Size{Rows: 3, Cols: 4}, 1)},
		Rejects: []puzzle.Reject{{Index: 10, Reason: puzzle.BadSize}, {Index: 11, Reason: puzzle.Truncated}},
		Labels:  []puzzle.Labels{{Text: []byte("k\u00e9y"), Ends: []uint32{1, 1, 4}}, {Ends: []uint32{0, 0, 0}}},
	}}
}

func testJob() *Job {
	return &Job{
		ID: "nightly-7",
		Spec: puzzle.Spec{
			Rule:        rule("stencil:101/010/101-torus"),
			Target:      puzzle.Either,
			SearchLimit: 1 << 20,
			Columns:     []string{"puzzle_index", "board"},
			Cells:       "text",
			Compression: "zstd",
			PartChunks:  32,
			Format:      "auto",
			Size:        puzzle.Size{Rows: 5, Cols: 6},
			Symbols:     puzzle.Symbols{On: 'b', Off: 'w'},
			MaxLine:     1 << 16,
			Fields:      puzzle.Fields{ID: "key"},
			Keep:        []string{"level"},
			Frame:       puzzle.Frame{Name: true, End: "END"},
			ColumnMajor: true,
			Generate:    puzzle.Generate{Kind: puzzle.GeneratePresses, Presses: 3, Count: 9, First: 2, Seed: 1 << 63},
		},
		Epoch: 3,
		Retry: 2,
		Totals: &Totals{
			Records:      10,
			Chunks:       2,
			CorpusSHA256: [32]byte{1, 2},
			Format:       "lines",
			Sources:      []Source{{Name: "caf\xe9.txt", Bytes: 99, SHA256: [32]byte{3}}},
			PartsSHA256:  [32]byte{4},
		},
		Origin: &Origin{
			Host: "mill-3", Directory: "/srv/caf\xe9", Paths: []string{"a.txt", "-", "caf\xe9.txt"},
			Flags: []string{"--size=5x6"}, Lane: "low", Window: 2,
		},
	}
}

func testLedger() *Ledger {
	return &Ledger{
		State:     Open,
		Parts:     []Part{{Number: 0, Digest: [16]byte{1}}, {Number: 1, Digest: [16]byte{2}}, {Number: 4, Digest: [16]byte{3}}},
		Received:  Count{Chunks: 9, Records: 900},
		Committed: Count{Chunks: 3, Records: 300},
		Output:    "5f0c",
		Holder:    "host-1",
	}
}

// randomTask returns a valid task; every list is empty now and then.
func randomTask(rng *rand.Rand) *Task {
	t := &Task{ID: ID{Job: "job", Chunk: 5 + rng.Int64N(1e9), Part: rng.Int64N(5), Epoch: rng.Uint32()}}
	c := &t.Chunk
	c.First = rng.Int64N(1e12)
	for range rng.IntN(4) {
		run := puzzle.NewRun(randomSize(rng), rng.IntN(9))
		for i := range run.Masks {
			run.Masks[i] = uint16(rng.Uint32()) & run.FullMask(i/run.Count)
		}
		if run.Count == 0 {
			run.Masks = []uint16{}
			if c.Boards() == 0 { // there is no memory yet for it to have a part of
				run.Masks = nil
			}
		}
		c.Runs = append(c.Runs, run)
	}
	left := c.Boards()
	index := c.First
	for range rng.IntN(3) {
		skip := rng.IntN(left + 1)
		left -= skip
		index += int64(skip)
		c.Rejects = append(c.Rejects, puzzle.Reject{Index: index, Reason: puzzle.RaggedRow, Detail: "row \xfe", Raw: randomBytes(rng)})
		index++
	}
	if c.Records() == 0 {
		c.Rejects = []puzzle.Reject{{Index: c.First, Reason: puzzle.LineTooLong, Raw: randomBytes(rng)}}
	}
	n := rng.IntN(c.Records() + 1)
	c.Spans = []puzzle.Span{{Source: "a\xff", Records: n}, {Records: c.Records() - n}}
	if rng.IntN(4) > 0 {
		line := int64(0)
		for k := range c.Records() {
			if k == n {
				line = 0 // the next source
			}
			line += 1 + rng.Int64N(2)
			c.Lines = append(c.Lines, line)
		}
	}
	for range rng.IntN(4) {
		labels := puzzle.Labels{}
		for range c.Records() {
			labels.Add([]byte([]string{"", "a", "long label", "\u00e9"}[rng.IntN(4)]))
		}
		c.Labels = append(c.Labels, labels)
	}
	return t
}

func randomSize(rng *rand.Rand) puzzle.Size {
	s := puzzle.Size{Rows: 1 + rng.IntN(80), Cols: 1 + rng.IntN(puzzle.MaxWidth)}
	if rng.IntN(2) == 0 {
		s.Rows, s.Cols = s.Cols, s.Rows
	}
	return s
}

func randomBytes(rng *rand.Rand) []byte {
	b := make([]byte, 1+rng.IntN(20))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}
