package dataset_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// variants are all ways to store cells.
func variants(spec puzzle.Spec) []puzzle.Spec {
	var all []puzzle.Spec
	for _, cells := range []string{"text", "bits"} {
		for _, compression := range []string{"zstd", "snappy", "none"} {
			spec.Cells, spec.Compression = cells, compression
			all = append(all, spec)
		}
	}
	return all
}

func newEncoder(t testing.TB, spec puzzle.Spec) *dataset.Encoder {
	t.Helper()
	e, err := dataset.NewEncoder(spec, solver.NewSet(spec.Rule, solver.Options{SearchLimit: spec.SearchLimit}))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// readRows reads a Parquet file with parquet-go's row reader, as text.
func readRows(t testing.TB, file []byte) []string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 100)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				var b strings.Builder
				for _, v := range row {
					if v.Kind() == parquet.ByteArray {
						fmt.Fprintf(&b, "%q ", v.ByteArray())
					} else {
						fmt.Fprintf(&b, "%v ", v)
					}
				}
				lines = append(lines, strings.TrimSpace(b.String()))
			}
			if err != nil {
				break
			}
		}
		rows.Close()
	}
	return lines
}

// wantRows returns a chunk's result rows, told from the chunk cell by cell.
func wantRows(spec puzzle.Spec, a answered) []string {
	rejected := make(map[int64]bool)
	for _, r := range a.chunk.Rejects {
		rejected[r.Index] = true
	}
	cells := func(run puzzle.Run, i int) string {
		var text []byte
		for k := range run.Cells() {
			c := byte('0')
			if run.Cell(i, k/run.Cols, k%run.Cols) {
				c = '1'
			}
			text = append(text, c)
		}
		if spec.Cells == "text" {
			return fmt.Sprintf("%q", text)
		}
		packed := make([]byte, (len(text)+7)/8)
		for k, c := range text {
			packed[k/8] |= (c - '0') << (7 - k%8)
		}
		return fmt.Sprintf("%q", packed)
	}
	var rows []string
	k := int64(0)
	for r, run := range a.chunk.Runs {
		ans := &a.answers[r]
		for i := range run.Count {
			for rejected[a.chunk.First+k] {
				k++
			}
			source := "a.txt"
			if k >= int64(a.chunk.Spans[0].Records) {
				source = "b.txt"
			}
			moves, solution, reached, count := "<null>", "<null>", "<null>", "<null>"
			if ans.Status[i] != puzzle.Impossible {
				solution, reached = cells(ans.Solutions, i), fmt.Sprintf("%q", ans.Reached[i].String())
			}
			if ans.Status[i] == puzzle.Solved {
				moves, count = fmt.Sprint(ans.MinMoves[i]), fmt.Sprint(ans.OptimalCount[i])
			}
			label := func(i int) string {
				if len(a.chunk.Labels) == 0 || len(a.chunk.Labels[i].At(int(k))) == 0 {
					return "<null>"
				}
				return fmt.Sprintf("%q", a.chunk.Labels[i].At(int(k)))
			}
			var kept strings.Builder
			for i := range spec.Keep {
				kept.WriteString(" " + label(1+i))
			}
			rows = append(rows, fmt.Sprintf("%d %q %d %s %q %q %d %d %s %q %s %s %s %d %s%s",
				a.chunk.First+k, source, a.chunk.Lines[k], label(0), spec.Rule, spec.Target, run.Rows, run.Cols, cells(run, i),
				ans.Status[i], moves, solution, reached, ans.Nullity, count, kept.String()))
			k++
		}
	}
	return rows
}

func TestEncodeResults(t *testing.T) {
	labelled := testSpec(t, "plus", puzzle.Either)
	labelled.Keep = []string{"level", "author name"}
	for _, spec := range append(variants(testSpec(t, "plus", puzzle.Either)), labelled) {
		e := newEncoder(t, spec)
		for seed, counts := range []map[puzzle.Size]int{
			{{Rows: 5, Cols: 5}: 1},
			{{Rows: 1, Cols: 1}: 9},
			{{Rows: 5, Cols: 5}: 300, {Rows: 6, Cols: 5}: 200, {Rows: 15, Cols: 15}: 40},
			{{Rows: 16, Cols: 16}: 20, {Rows: 3, Cols: 200}: 20, {Rows: 256, Cols: 2}: 20, {Rows: 20, Cols: 40}: 20, {Rows: 64, Cols: 70}: 5},
		} {
			a := makeChunk(random(uint64(seed)), spec, 1<<40, counts, seed)
			results, _, err := e.Encode(&a.chunk, a.answers)
			if err != nil {
				t.Fatal(err)
			}
			got, want := readRows(t, results), wantRows(spec, a)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Errorf("%s, %s, chunk %d: %d rows, row %d is not\n%s", spec.Cells, spec.Compression, seed, len(got), i, want[i])
					break
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d rows, want %d", len(got), len(want))
			}
		}
	}
}

// A chunk of generated boards has no sources and no lines; one of rejects only
// has no results; and their texts are cut and made valid.
func TestEncodeRejects(t *testing.T) {
	e := newEncoder(t, testSpec(t, "plus", puzzle.Zero))
	long := strings.Repeat("\xff0", puzzle.MaxRaw/2) // four bytes in UTF-8 where it has two
	results, rejects, err := e.Encode(&puzzle.Chunk{
		First: 7, Spans: []puzzle.Span{{Records: 1}, {Source: "\xffx", Records: 2}},
		Rejects: []puzzle.Reject{
			{Index: 7, Reason: puzzle.TooLarge, Detail: "big", Raw: []byte(long)},
			{Index: 8, Reason: puzzle.BadSize, Detail: "", Raw: nil},
			{Index: 9, Reason: puzzle.TooLarge, Detail: "\xff", Raw: []byte("01é0")},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 0 {
		t.Errorf("results of %d bytes", len(results))
	}
	want := []string{
		`7 <null> <null> "too_large" "big" "` + strings.Repeat("�0", puzzle.MaxRaw/4) + `"`,
		`8 "�x" <null> "bad_size" "" ""`,
		`9 "�x" <null> "too_large" "�" "01é0"`,
	}
	if got := readRows(t, rejects); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Equal chunks have equal bytes, whatever the encoder did before.
func TestEncodeDeterministic(t *testing.T) {
	for _, spec := range variants(testSpec(t, "plus", puzzle.Either)) {
		a := makeChunk(random(1), spec, 10, map[puzzle.Size]int{{Rows: 5, Cols: 5}: 3000, {Rows: 7, Cols: 3}: 100}, 5)
		b := makeChunk(random(2), spec, 99, map[puzzle.Size]int{{Rows: 16, Cols: 16}: 500, {Rows: 4, Cols: 4}: 9}, 50)
		used := newEncoder(t, spec)
		first := a.encode(t, used)
		b.encode(t, used)
		again, fresh := a.encode(t, used), a.encode(t, newEncoder(t, spec))
		if !reflect.DeepEqual(first, again) || !reflect.DeepEqual(first, fresh) {
			t.Errorf("%s, %s: equal chunks, other bytes", spec.Cells, spec.Compression)
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	e := newEncoder(t, spec)
	for want, spoil := range map[string]func(a *answered){
		"answers to 0 runs of 1":             func(a *answered) { a.answers = nil },
		"do not fit its 5 boards of 3x3":     func(a *answered) { a.answers[0].Reached = nil },
		"9 lines of 7 records":               func(a *answered) { a.chunk.Lines = append(a.chunk.Lines, 1, 2) },
		"spans of 8 records, not 7":          func(a *answered) { a.chunk.Spans[0].Records++ },
		"reject 0 is out of order or out of": func(a *answered) { a.chunk.Rejects[1].Index = 0 },
		"no such answer":                     func(a *answered) { a.answers[0].MinMoves[0] = 10 },
		"no such answer: Status(9)":          func(a *answered) { a.answers[0].Status[0] = 9 },
	} {
		a := makeChunk(random(1), spec, 5, map[puzzle.Size]int{{Rows: 3, Cols: 3}: 5}, 2)
		spoil(&a)
		if _, _, err := e.Encode(&a.chunk, a.answers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A chunk that closes at its estimate is clearly below a message's 1 MiB, for
// random boards of every kind, all of them solved.
func TestEstimateRow(t *testing.T) {
	const message, limit = 1 << 20, 900 << 10
	specs := variants(testSpec(t, "plus", puzzle.Either))
	usual := len(specs)
	extra := variants(withExtras(testSpec(t, "plus", puzzle.Either)))
	for i, spec := range append(specs, extra[0], extra[2]) { // zstd and none
		e := newEncoder(t, spec)
		for _, size := range []puzzle.Size{{Rows: 1, Cols: 1}, {Rows: 5, Cols: 5}, {Rows: 16, Cols: 16}, {Rows: 256, Cols: 16}, {Rows: 3, Cols: 211}, {Rows: 19, Cols: 19}, {Rows: 64, Cols: 256}} {
			if i >= usual && size.Cells() > 1<<10 {
				continue // their longest solutions take long
			}
			n := min(65536, chunkEstimate/dataset.EstimateRow(spec, size.Cells()))
			run := puzzle.NewRun(size, n)
			fill(random(1), run)
			a := answered{puzzle.Chunk{Runs: []puzzle.Run{run}, Spans: []puzzle.Span{{Records: n}}}, make([]puzzle.Answers, 1)}
			for k := range n {
				a.chunk.Lines = append(a.chunk.Lines, int64(k*size.Rows+k/7))
			}
			a.answers[0].Reset(size, n)
			solveAll(&a)
			c := a.encode(t, e)
			total := len(c.Results) + len(c.Tally.Append(nil))
			if total > limit {
				t.Errorf("%s, %s, %s: %d rows estimated at %d bytes take %d of a message's %d", spec.Cells, spec.Compression, size, n, chunkEstimate, total, message)
			}
		}
	}
}

// Every extra column counts, and the estimate costs nothing: producers ask for it
// at each board that has another size than the one before.
func TestEstimateRowOfExtras(t *testing.T) {
	usual := testSpec(t, "plus", puzzle.Zero)
	for _, name := range dataset.Extras() {
		spec := usual
		spec.Columns = append(slices.Clone(usual.Columns), name)
		if with, without := dataset.EstimateRow(spec, 25), dataset.EstimateRow(usual, 25); with <= without {
			t.Errorf("a row with %s is estimated at %d bytes, without at %d", name, with, without)
		}
		if n := testing.AllocsPerRun(10, func() { dataset.EstimateRow(spec, 25) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// solveAll makes all answers as large as answers get.
func solveAll(a *answered) {
	rng := random(5)
	for r := range a.answers {
		ans := &a.answers[r]
		for i := range ans.Status {
			ans.Status[i], ans.OptimalCount[i], ans.MinMoves[i] = puzzle.Solved, 1+rng.Int64N(1<<20), rng.Int32N(int32(ans.Solutions.Cells())+1)
			ans.Reached[i] = puzzle.Target(rng.IntN(2))
		}
		fill(rng, ans.Solutions)
	}
}

// fill makes all cells of a run random.
func fill(rng *rand.Rand, run puzzle.Run) {
	for i := range run.Masks {
		run.Masks[i] = uint16(rng.Uint32()) & run.FullMask(i/max(1, run.Count))
	}
}

// Chunks in which every board has another size than the one before.
func TestEstimateRowMixed(t *testing.T) {
	rng := random(7)
	spec := testSpec(t, "plus", puzzle.Either)
	var all answered
	for range 65536 / 2 {
		size := puzzle.Size{Rows: 1 + rng.IntN(16), Cols: 1 + rng.IntN(4)}
		run, ans := pressed(rng, spec, size, 1)
		all.chunk.Runs, all.answers = append(all.chunk.Runs, run), append(all.answers, ans)
	}
	solveAll(&all)
	for _, spec := range variants(spec) {
		bytes, n := 0, 0
		for ; bytes < chunkEstimate && n < len(all.answers); n++ {
			bytes += dataset.EstimateRow(spec, all.chunk.Runs[n].Cells())
		}
		a := answered{puzzle.Chunk{Runs: all.chunk.Runs[:n], Spans: []puzzle.Span{{Records: n}}}, all.answers[:n]}
		c := a.encode(t, newEncoder(t, spec))
		if total := len(c.Results) + len(c.Tally.Append(nil)); total > bytes+bytes/4+(64<<10) {
			t.Errorf("%s, %s: %d rows estimated at %d bytes take %d", spec.Cells, spec.Compression, n, bytes, total)
		}
	}
}

func TestCheckSpec(t *testing.T) {
	for want, change := range map[string]func(s *puzzle.Spec){
		`column "boards": want some of [puzzle_index`:   func(s *puzzle.Spec) { s.Columns = []string{"puzzle_index", "boards"} },
		`column "rows": it is doubled or out of order`:  func(s *puzzle.Spec) { s.Columns = []string{"puzzle_index", "cols", "rows"} },
		`column "board": it is doubled or out of order`: func(s *puzzle.Spec) { s.Columns = []string{"puzzle_index", "board", "board"} },
		`puzzle_index is the row key`:                   func(s *puzzle.Spec) { s.Columns = []string{"board"} },
		`cells "": want text or bits`:                   func(s *puzzle.Spec) { s.Cells = "" },
		`compression "gzip": want zstd, snappy or none`: func(s *puzzle.Spec) { s.Compression = "gzip" },
		`part-chunks 0: want 1 to 1024`:                 func(s *puzzle.Spec) { s.PartChunks = 0 },
	} {
		spec := testSpec(t, "plus", puzzle.Zero)
		change(&spec)
		if err := dataset.CheckSpec(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := dataset.CheckSpec(testSpec(t, "plus", puzzle.Zero)); err != nil {
		t.Error(err)
	}
}
