package worker

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/wire"
)

// testSpec is without compression: the race detector makes zstd's tables dear.
func testSpec(t testing.TB, rule string, target puzzle.Target) puzzle.Spec {
	t.Helper()
	r, err := puzzle.ParseRule(rule)
	ok(t, err)
	return puzzle.Spec{
		Rule: r, Target: target, SearchLimit: 1 << 20, Columns: dataset.Columns(), Cells: dataset.CellsText,
		Compression: dataset.CompressionNone, PartChunks: 4, Format: "lines", Symbols: puzzle.Digits(),
	}
}

func newJob(id string, spec puzzle.Spec) *job {
	return jobOf(&wire.Job{ID: id, Spec: spec})
}

func quietSlot() *slot { return &slot{log: slog.New(slog.DiscardHandler)} }

// testChunk has boards of several sizes in a random order, the same size several
// times, and rejects among them: none if rejects is 0, nothing else if it is 10.
func testChunk(rng *rand.Rand, first int64, records, rejects int) *puzzle.Chunk {
	sizes := []puzzle.Size{{Rows: 3, Cols: 3}, {Rows: 2, Cols: 5}, {Rows: 1, Cols: 1}, {Rows: 1, Cols: 2}, {Rows: 4, Cols: 3}}
	c := &puzzle.Chunk{First: first, Spans: []puzzle.Span{{Source: "a.txt", Records: records / 3}, {Source: "b.txt", Records: records - records/3}}}
	var boards []puzzle.Run
	var ids puzzle.Labels
	for k := range records {
		c.Lines = append(c.Lines, int64(1+2*k))
		ids.Add(fmt.Append(nil, "id", k))
		if rng.IntN(10) < rejects {
			c.Rejects = append(c.Rejects, puzzle.Reject{Index: first + int64(k), Reason: puzzle.RaggedRow, Detail: fmt.Sprint("row ", k), Raw: []byte("01 1")})
			continue
		}
		if rng.IntN(5) == 0 {
			rng.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
		}
		board := puzzle.NewRun(sizes[0], 1)
		for l := range board.Masks {
			board.Masks[l] = uint16(rng.Uint32()) & (1<<board.Width() - 1)
		}
		boards = append(boards, board)
	}
	c.Labels = []puzzle.Labels{ids}
	for len(boards) > 0 {
		n := 1
		for n < len(boards) && boards[n].Size == boards[0].Size {
			n++
		}
		run := puzzle.NewRun(boards[0].Size, n)
		for i, board := range boards[:n] {
			for l, m := range board.Masks {
				run.Masks[l*n+i] = m
			}
		}
		c.Runs, boards = append(c.Runs, run), boards[n:]
	}
	return c
}

// bruteForce answers every board of a run by trying all sets of presses, in
// ascending order of their texts, so that the first best one is the least.
// Boards and presses are numbers here, with cell 0 as the highest bit.
func bruteForce(rule puzzle.Rule, target puzzle.Target, run puzzle.Run) puzzle.Answers {
	var a puzzle.Answers
	a.Reset(run.Size, run.Count)
	cells := run.Cells()
	goals := []uint64{0, 1<<cells - 1} // by target
	patterns := []uint64{0}            // what a set of presses toggles
	for cell := cells - 1; cell >= 0; cell-- {
		press := puzzle.NewRun(run.Size, 1)
		press.SetCell(0, cell/run.Cols, cell%run.Cols)
		toggled := puzzle.NewRun(run.Size, 1)
		rule.Press(toggled, press)
		for _, p := range patterns {
			patterns = append(patterns, p^number(toggled, 0))
		}
	}
	quietPatterns := 0
	for _, p := range patterns {
		if p == 0 {
			quietPatterns++
		}
	}
	a.Nullity = bits.Len(uint(quietPatterns)) - 1
	clear(a.Solutions.Masks)
	for i := range run.Count {
		a.Status[i], a.MinMoves[i], a.OptimalCount[i], a.Reached[i] = puzzle.Impossible, 0, 0, puzzle.Zero
		board, best := number(run, i), 0
		for presses, pattern := range patterns {
			moves := int32(bits.OnesCount(uint(presses)))
			for goal := puzzle.Zero; goal <= puzzle.One; goal++ {
				switch {
				case board^pattern != goals[goal] || target != puzzle.Either && target != goal:
				case a.Status[i] == puzzle.Impossible || moves < a.MinMoves[i] || moves == a.MinMoves[i] && goal < a.Reached[i]:
					a.Status[i], a.MinMoves[i], a.OptimalCount[i], a.Reached[i], best = puzzle.Solved, moves, 1, goal, presses
				case moves == a.MinMoves[i] && goal == a.Reached[i]:
					a.OptimalCount[i]++
				}
			}
		}
		for cell := range cells {
			if best>>(cells-1-cell)&1 == 1 {
				a.Solutions.SetCell(i, cell/run.Cols, cell%run.Cols)
			}
		}
	}
	return a
}

// number is a board's text, read as a binary number.
func number(run puzzle.Run, i int) uint64 {
	n, err := strconv.ParseUint(string(run.AppendText(nil, i)), 2, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// want is the result of a task: the rows of chunk, which is the task's own or
// has more rejects, with answers that the worker has no part in.
func want(t testing.TB, spec puzzle.Spec, task *wire.Task, chunk *puzzle.Chunk) *wire.Result {
	t.Helper()
	var answers []puzzle.Answers
	for _, run := range chunk.Runs {
		answers = append(answers, bruteForce(spec.Rule, spec.Target, run))
	}
	encoder, err := dataset.NewEncoder(spec, nil)
	ok(t, err)
	results, rejects, err := encoder.Encode(chunk, answers)
	ok(t, err)
	var counts tally.Tally
	counts.AddChunk(chunk, answers)
	return &wire.Result{
		ID: task.ID, First: chunk.First, Boards: int64(chunk.Boards()), Rejected: int64(len(chunk.Rejects)),
		Digest: task.Chunk.Digest(), Results: results, Rejects: rejects, Tally: counts.Append(nil),
	}
}

// compare reports how two results differ.
func compare(t testing.TB, got, want *wire.Result) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("task %s: got a result from %d, %d boards, %d rejected, %d and %d bytes, failure %q; want from %d, %d, %d, %d and %d bytes",
			want.ID, got.First, got.Boards, got.Rejected, len(got.Results), len(got.Rejects), got.Failure,
			want.First, want.Boards, want.Rejected, len(want.Results), len(want.Rejects))
	}
}

// The rows are those of a brute force, byte for byte, whatever the slot has
// solved before.
func TestAnswer(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := quietSlot()
	for _, rule := range []string{"plus", "fridge", "king-torus", "stencil:010/110/000"} {
		for target := puzzle.Zero; target <= puzzle.Either; target++ {
			j := newJob("j", testSpec(t, rule, target))
			for _, rejects := range []int{0, 2, 10} {
				task := &wire.Task{ID: wire.ID{Job: "j", Chunk: 6, Part: 1, Epoch: 3}, Chunk: *testChunk(rng, 1000, 40, rejects)}
				compare(t, s.answer(j, task), want(t, j.spec, task, &task.Chunk))
			}
		}
	}
}

// A slot keeps the memory of few runs, however many a chunk had.
func TestManyRuns(t *testing.T) {
	s := quietSlot()
	j := newJob("j", testSpec(t, "plus", puzzle.Zero))
	task := &wire.Task{ID: wire.ID{Job: "j"}, Chunk: *testChunk(rand.New(rand.NewPCG(2, 2)), 0, 300, 0)}
	if n := len(task.Chunk.Runs); n <= keptAnswers {
		t.Fatalf("only %d runs", n)
	}
	first := s.answer(j, task)
	first.Results = bytes.Clone(first.Results)
	compare(t, s.answer(j, task), first)
	one := &wire.Task{ID: wire.ID{Job: "j"}, Chunk: puzzle.Chunk{Spans: []puzzle.Span{{Records: 1}}, Runs: task.Chunk.Runs[:1]}}
	one.Chunk.Runs[0] = puzzle.NewRun(puzzle.Size{Rows: 1, Cols: 1}, 1)
	s.answer(j, one)
	if len(s.answers) > keptAnswers {
		t.Errorf("the answers to %d runs are kept", len(s.answers))
	}
}

// Where every board panics, all become rejects with their text, the chunk's
// rejects stay as they were, and the log has the stack.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	s := &slot{log: slog.New(slog.NewTextHandler(&log, nil))}
	j := newJob("j", testSpec(t, "plus", puzzle.Zero))
	task := &wire.Task{ID: wire.ID{Job: "j", Chunk: 1}, Chunk: *testChunk(rand.New(rand.NewPCG(4, 4)), 50, 30, 2)}
	broken := *j
	broken.solvers = nil
	got := s.answer(&broken, task)
	compare(t, got, want(t, j.spec, task, allRejected(task.Chunk, "the worker panicked: runtime error: invalid memory address or nil pointer dereference")))
	if !strings.Contains(log.String(), "goroutine") || !strings.Contains(log.String(), "chunk=1 part=0") {
		t.Errorf("the log says %s", log.String())
	}
	compare(t, s.answer(j, task), want(t, j.spec, task, &task.Chunk))
}

// allRejected is a chunk whose boards are rejects, record by record.
func allRejected(c puzzle.Chunk, detail string) *puzzle.Chunk {
	var texts [][]byte
	for _, run := range c.Runs {
		for i := range run.Count {
			texts = append(texts, run.AppendText(nil, i))
		}
	}
	all := &puzzle.Chunk{First: c.First, Spans: c.Spans, Lines: c.Lines, Labels: c.Labels}
	known := map[int64]puzzle.Reject{}
	for _, r := range c.Rejects {
		known[r.Index] = r
	}
	for k := range c.Records() {
		r, ok := known[c.First+int64(k)]
		if !ok {
			r = puzzle.Reject{Index: c.First + int64(k), Reason: puzzle.WorkerFailed, Detail: detail, Raw: texts[0]}
			texts = texts[1:]
		}
		all.Rejects = append(all.Rejects, r)
	}
	return all
}

// What the job asks for and nobody can do stops it.
func TestImpossibleJob(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	spec.Columns = []string{"no such column"}
	task := &wire.Task{ID: wire.ID{Job: "j", Chunk: 9, Part: 2}, Chunk: *testChunk(rand.New(rand.NewPCG(5, 5)), 0, 3, 0)}
	got := quietSlot().answer(newJob("j", spec), task)
	if got.ID != task.ID || !strings.Contains(got.Failure, "no such column") || got.Results != nil {
		t.Errorf("got %+v", got)
	}
}

// A solution that does not solve its board stops the job: the chunk has no rows,
// whatever is right in it.
func TestWrongSolutions(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	for name, lie := range map[string]struct {
		about puzzle.Status
		tell  func(a *puzzle.Answers, i int)
	}{
		"another press":                  {puzzle.Solved, func(a *puzzle.Answers, i int) { a.Solutions.Masks[i] ^= 1 }},
		"fewer presses than it has":      {puzzle.Solved, func(a *puzzle.Answers, i int) { a.MinMoves[i]-- }},
		"another target":                 {puzzle.Solved, func(a *puzzle.Answers, i int) { a.Reached[i] = puzzle.One }},
		"a solution where there is none": {puzzle.Impossible, func(a *puzzle.Answers, i int) { a.Status[i] = puzzle.Solved }},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			task := &wire.Task{ID: wire.ID{Job: "j", Chunk: 9, Part: 2}, Chunk: *testChunk(rng, 0, 300, 1)}
			told := false
			s := quietSlot()
			s.spoil = func(a *puzzle.Answers) {
				if i := slices.Index(a.Status, lie.about); i >= 0 && !told {
					lie.tell(a, i)
					told = true
				}
			}
			got := s.answer(newJob("j", spec), task)
			if !told || got.ID != task.ID || !strings.Contains(got.Failure, "check the solutions: check answers: board") || got.Results != nil || got.Rejects != nil {
				t.Errorf("told %v, got %+v", told, got)
			}
			if _, err := wire.AppendResult(nil, got); err != nil {
				t.Error(err)
			}
		})
	}
}
