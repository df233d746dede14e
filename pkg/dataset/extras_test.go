package dataset_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// withExtras returns a spec with all columns that there are.
func withExtras(spec puzzle.Spec) puzzle.Spec {
	spec.Columns = append(dataset.Columns(), dataset.Extras()...)
	return spec
}

// solved returns a chunk of random boards that are solved, every board of the
// smaller sizes.
func solved(t testing.TB, rng *rand.Rand, spec puzzle.Spec, sizes ...puzzle.Size) answered {
	t.Helper()
	var a answered
	for _, size := range sizes {
		run := puzzle.NewRun(size, min(80, 1<<min(size.Cells(), 7)))
		for i := range run.Count {
			for k := range size.Cells() {
				on := rng.IntN(2) == 1
				if size.Cells() <= 6 {
					on = i>>k&1 == 1
				}
				if on {
					run.SetCell(i, k/size.Cols, k%size.Cols)
				}
			}
		}
		s, err := solver.New(spec.Rule, size, solver.Options{SearchLimit: spec.SearchLimit})
		if err != nil {
			t.Fatal(err)
		}
		var answers puzzle.Answers
		s.Solve(&answers, run, spec.Target)
		a.chunk.Runs, a.answers = append(a.chunk.Runs, run), append(a.answers, answers)
	}
	a.chunk.Spans = []puzzle.Span{{Records: a.chunk.Boards()}}
	return a
}

// space is all that can be said of a rule and size with plus, found by trying all
// sets of presses and all sets of cells.
type space struct {
	size      puzzle.Size
	effects   []int // by cell; the first cell is the highest bit
	solutions map[int][]int
	proofs    []int
}

func newSpace(size puzzle.Size) *space {
	s := &space{size: size, solutions: map[int][]int{}}
	n := size.Cells()
	for k := range n {
		effect := 0
		for _, at := range [][2]int{{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}} {
			if r, c := k/size.Cols+at[0], k%size.Cols+at[1]; r >= 0 && r < size.Rows && c >= 0 && c < size.Cols {
				effect |= 1 << (n - 1 - r*size.Cols - c)
			}
		}
		s.effects = append(s.effects, effect)
	}
	for cells := range 1 << n {
		board, even := 0, cells > 0
		for k, effect := range s.effects {
			if cells>>(n-1-k)&1 == 1 {
				board ^= effect
			}
			even = even && ones(effect&cells)%2 == 0
		}
		s.solutions[board] = append(s.solutions[board], cells)
		if even {
			s.proofs = append(s.proofs, cells)
		}
	}
	return s
}

func ones(n int) int { return strings.Count(fmt.Sprintf("%b", n), "1") }

func (s *space) text(n int) string { return fmt.Sprintf("%0*b", s.size.Cells(), n) }

// fewest returns the fewest presses to each target that is allowed; 99 for none.
func (s *space) fewest(board int, target puzzle.Target) (moves, done int) {
	moves = 99
	for i, end := range [2]int{0, 1<<s.size.Cells() - 1} {
		if target == puzzle.Either || int(target) == i {
			for _, x := range s.solutions[board^end] {
				if ones(x) < moves {
					moves, done = ones(x), end
				}
			}
		}
	}
	return moves, done
}

// row returns the extra columns of a board as the query of TestExtras has them.
func (s *space) row(board int, target puzzle.Target, easier []float64) string {
	moves, done := s.fewest(board, target)
	images := map[string]bool{}
	text, rows, cols := s.text(board), s.size.Rows, s.size.Cols
	for way := range 16 {
		var image strings.Builder
		for k := range text {
			r, c := k/cols, k%cols
			if way&1 != 0 {
				r = rows - 1 - r
			}
			if way&2 != 0 {
				c = cols - 1 - c
			}
			if way&4 != 0 && rows == cols {
				r, c = c, r
			}
			image.WriteByte(text[r*cols+c] ^ byte(way>>3))
		}
		if way < 8 || target == puzzle.Either {
			images[image.String()] = true
		}
	}
	var sorted []string
	for image := range images {
		sorted = append(sorted, image)
	}
	canonical := slices.Min(sorted)
	sum := float64(sha256.Sum256([]byte(canonical))[0])*256 + float64(sha256.Sum256([]byte(canonical))[1])
	split := "train"
	if sum >= 0xe666 {
		split = "test"
	} else if sum >= 0xcccc {
		split = "validation"
	}
	var grid []string
	for r := range rows {
		grid = append(grid, "["+strings.Join(strings.Split(text[r*cols:(r+1)*cols], ""), ", ")+"]")
	}
	unique, longest, percent, list, witness := "NULL", "NULL", "NULL", "NULL", "NULL"
	if moves < 99 {
		var optima []string
		most := 0
		for _, x := range s.solutions[board^done] {
			if most = max(most, ones(x)); ones(x) == moves {
				optima = append(optima, s.text(x))
			}
		}
		var at []string
		for k, press := range slices.Min(optima) {
			if press == '1' {
				at = append(at, fmt.Sprintf("{'row': %d, 'col': %d}", k/cols, k%cols))
			}
		}
		unique, longest, list = fmt.Sprint(len(optima) == 1), fmt.Sprint(most), "["+strings.Join(at, ", ")+"]"
		percent = fmt.Sprintf("%.9f", easier[moves])
	} else {
		for _, cells := range s.proofs {
			odd, oddToOne := ones(cells&board)%2, ones(cells&^board)%2
			if target == puzzle.Zero && odd == 1 || target == puzzle.One && oddToOne == 1 || odd == 1 && oddToOne == 1 {
				witness = s.text(cells)
				break
			}
		}
	}
	return fmt.Sprint(ones(board), " ", canonical, " ", len(images), " ", split, " ", unique, " ", longest, " ", percent, " ", witness, " ", list, " [", strings.Join(grid, ", "), "]")
}

// easier returns for each number of presses what percentage of the boards that can
// be solved need fewer.
func (s *space) easier(target puzzle.Target) []float64 {
	counts, total := make([]int, s.size.Cells()+1), 0
	for board := range 1 << s.size.Cells() {
		if moves, _ := s.fewest(board, target); moves < 99 {
			counts[moves]++
			total++
		}
	}
	var shares []float64
	before := 0
	for _, n := range counts {
		shares = append(shares, 100*float64(before)/float64(total))
		before += n
	}
	return shares
}

// TestVerifyExtras: a value that is not what the other columns say is found, in every
// column; and what lacks its columns is said to be skipped.
func TestVerifyExtras(t *testing.T) {
	spec := withExtras(testSpec(t, "plus", puzzle.Zero))
	c := corpus{spec, []answered{solved(t, random(3), spec, puzzle.Size{Rows: 3, Cols: 5}, puzzle.Size{Rows: 4, Cols: 5})}}
	for _, column := range dataset.Extras() {
		for _, few := range []bool{false, true} {
			c.spec = spec
			if few {
				c.spec.Columns = []string{"puzzle_index", column}
			}
			e := newEncoder(t, c.spec)
			e.SpoilExtra(column)
			found, skipped := verifyOne(t, c, e)
			if few {
				if len(found) > 0 || !strings.Contains(skipped, column+": worked out again, it is the same: no column rows") {
					t.Errorf("%s alone: found %q, skipped %q", column, found, skipped)
				}
			} else if len(found) == 0 || !strings.Contains(found[0], " have another "+column) || !strings.HasPrefix(found[0], "results/part-00000.parquet: rows ") {
				t.Errorf("%s spoilt: found %q", column, found)
			}
		}
	}
}

// verifyOne makes a dataset of one chunk with the encoder and verifies it.
func verifyOne(t *testing.T, c corpus, e *dataset.Encoder) (found []string, skipped string) {
	t.Helper()
	d, err := dataset.Open(t.TempDir(), "demo", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.NewPart(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Add(c.chunks[0].encode(t, e)); err != nil {
		t.Fatal(err)
	}
	if _, err := part.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Finish(c.input()); err != nil {
		t.Fatal(err)
	}
	report, err := dataset.Verify(d.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		found = append(found, p.String())
	}
	return found, strings.Join(report.Skipped, "; ")
}

// TestWitnessOfPossible: a board that is said to be impossible and is not is no row.
func TestWitnessOfPossible(t *testing.T) {
	spec := withExtras(testSpec(t, "plus", puzzle.Zero))
	a := solved(t, random(4), spec, puzzle.Size{Rows: 3, Cols: 3})
	a.answers[0].Status[7] = puzzle.Impossible
	if _, _, err := newEncoder(t, spec).Encode(&a.chunk, a.answers); err == nil || !strings.Contains(err.Error(), "is said to be impossible, but nothing proves it") {
		t.Errorf("got %v", err)
	}
}
