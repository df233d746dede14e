package solver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

var targets = []puzzle.Target{puzzle.Zero, puzzle.One, puzzle.Either}

// named are the rules with names of their own.
var named = []string{"plus", "fridge", "king", "x", "plus-torus", "king-torus", "x-torus"}

// seeded returns the random numbers of a test, the same in every run.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(0)
	for _, c := range t.Name() {
		seed = seed*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, 1))
}

// randomStencil returns a rule with a random pattern, every other one row-chasing.
func randomStencil(rng *rand.Rand) string {
	top := rng.IntN(8)
	if rng.IntN(2) == 0 {
		top = 0b010
	}
	name := fmt.Sprintf("stencil:%03b/%03b/%03b", top, rng.IntN(8), rng.IntN(8))
	if name == "stencil:000/000/000" {
		return "stencil:000/010/000"
	}
	if rng.IntN(3) == 0 {
		name += "-torus"
	}
	return name
}

// randomRun returns random boards; every other one can reach zero.
func randomRun(t testing.TB, rng *rand.Rand, rule string, size puzzle.Size, count int) puzzle.Run {
	boards, presses := puzzle.NewRun(size, count), puzzle.NewRun(size, count)
	for k := range boards.Masks {
		full := size.FullMask(k / count)
		if k%count%2 == 0 {
			boards.Masks[k] = uint16(rng.Uint32()) & full
		} else {
			presses.Masks[k] = uint16(rng.Uint32()) & full
		}
	}
	mustRule(t, rule).Press(boards, presses)
	return boards
}

// solve answers a run and checks the answers by the definition of the rule.
func solve(t testing.TB, s *Solver, boards puzzle.Run, target puzzle.Target) *puzzle.Answers {
	t.Helper()
	var a puzzle.Answers
	var scratch puzzle.Run
	before := slices.Clone(boards.Masks)
	s.Solve(&a, boards, target)
	if !slices.Equal(before, boards.Masks) {
		t.Fatal("Solve modified the boards")
	}
	if err := s.Check(&scratch, boards, &a); err != nil {
		t.Fatalf("%s: %v", s.rule, err)
	}
	return &a
}

// TestBruteForce solves all boards of small sizes, and compares with trying all
// sets of presses.
func TestBruteForce(t *testing.T) {
	rng := seeded(t)
	for rows := 1; rows <= 12; rows++ {
		for cols := 1; rows*cols <= 12; cols++ {
			rules := append(slices.Clone(named), randomStencil(rng), randomStencil(rng), randomStencil(rng), randomStencil(rng))
			for _, rule := range rules {
				compareAll(t, rule, puzzle.Size{Rows: rows, Cols: cols})
			}
		}
	}
	for _, rule := range []string{"plus", "fridge", randomStencil(rng)} {
		compareAll(t, rule, puzzle.Size{Rows: 1, Cols: 17}) // stored by columns
	}
}

func compareAll(t *testing.T, rule string, size puzzle.Size) {
	t.Run(fmt.Sprintf("%s %s", rule, size), func(t *testing.T) {
		boards := allBoards(size)
		optima := bruteForce(rule, size)
		s := mustSolver(t, rule, size)
		for _, target := range targets {
			a := solve(t, s, boards, target)
			for i := range optima {
				expect(t, a, i, target, optima[i], optima[len(optima)-1-i]) // reaching one is reaching zero from the inverse
			}
			if t.Failed() {
				return
			}
		}
	})
}

// allBoards returns all boards of a size in the order of their texts.
func allBoards(size puzzle.Size) puzzle.Run {
	boards := puzzle.NewRun(size, 1<<size.Cells())
	for i := range boards.Count {
		for k := range size.Cells() {
			if i>>(size.Cells()-1-k)&1 == 1 {
				boards.SetCell(i, k/size.Cols, k%size.Cols)
			}
		}
	}
	return boards
}

// TestReference compares random boards with the textbook elimination.
func TestReference(t *testing.T) {
	rng := seeded(t)
	for _, c := range []struct {
		rule       string
		rows, cols int
	}{
		// Ties need quiet patterns.
		{"plus", 4, 4}, {"plus", 5, 5}, {"plus", 9, 9}, {"plus", 11, 11}, {"plus", 7, 11}, {"plus", 11, 15}, {"plus", 14, 14},
		{"plus", 9, 8}, {"plus", 14, 11}, {"plus", 15, 14}, {"plus", 73, 14}, {"plus", 85, 12}, {"stencil:010/101/010", 14, 10},
		// Wide boards are stored by columns; their least solution is by rows all the same.
		{"plus", 2, 20}, {"plus", 5, 33}, {"plus", 9, 19}, {"plus", 16, 17}, {"plus", 16, 25}, {"plus", 1, 256}, {"plus", 256, 1},
		{"king", 2, 20}, {"king", 1, 33}, {"x", 6, 18}, {"x", 9, 17}, {"plus-torus", 5, 20}, {"stencil:010/101/010", 3, 17},
		{"stencil:010/110/011", 5, 17}, {"stencil:010/110/011", 17, 5}, {"stencil:001/111/000", 4, 18}, {"stencil:001/111/100", 4, 18},
		{"plus-torus", 5, 5}, {"plus-torus", 9, 9}, {"king", 5, 5}, {"x", 9, 9}, {"x", 14, 14}, {"stencil:010/101/010", 8, 8},
		// Checks that no longer fit the board's last word.
		{"x", 8, 8}, {"king", 8, 5}, {"plus-torus", 12, 5}, {"stencil:010/101/010", 16, 4},
		{"fridge", 5, 5}, {"fridge", 7, 7}, {"fridge", 3, 11}, {"fridge", 11, 3}, {"fridge", 4, 13}, {"fridge", 13, 4}, {"fridge", 8, 11},
		{"fridge", 12, 12}, {"fridge", 16, 16}, {"fridge", 11, 16}, {"fridge", 16, 11}, {"fridge", 1, 13}, {"fridge", 13, 1},
		// Lines of several masks.
		{"plus", 17, 17}, {"plus", 24, 24}, {"plus", 20, 34}, {"plus", 34, 20}, {"plus", 17, 64}, {"plus", 23, 23}, {"plus-torus", 17, 19}, {"king", 17, 18},
		{"king-torus", 19, 20}, {"x", 17, 20}, {"stencil:010/110/011", 17, 40}, {"stencil:001/111/000", 33, 18}, {"stencil:000/010/101-torus", 18, 35},
		{"fridge", 2, 33}, {"fridge", 33, 2}, {"fridge", 12, 17}, {"fridge", 4, 101}, {"fridge", 101, 4}, {"fridge", 10, 30},
	} {
		compareRandom(t, rng, c.rule, puzzle.Size{Rows: c.rows, Cols: c.cols}, 6)
	}
	for range 25 { // boards wider than a mask, and stored by columns if that takes fewer
		compareRandom(t, rng, randomStencil(rng), puzzle.Size{Rows: 17 + rng.IntN(20), Cols: 17 + rng.IntN(20)}, 4)
	}
	for range 150 {
		rule := randomStencil(rng)
		if rng.IntN(4) == 0 {
			rule = named[rng.IntN(len(named))]
		}
		size := puzzle.Size{Rows: 1 + rng.IntN(8), Cols: 1 + rng.IntN(8)}
		if rng.IntN(3) == 0 {
			size.Cols += 10
		}
		compareRandom(t, rng, rule, size, 10)
	}
}

// maxReferenceNullity keeps the reference's enumeration short.
const maxReferenceNullity = 12

func compareRandom(t *testing.T, rng *rand.Rand, rule string, size puzzle.Size, count int) {
	t.Run(fmt.Sprintf("%s %s", rule, size), func(t *testing.T) {
		s := mustSolver(t, rule, size)
		boards := randomRun(t, rng, rule, size, count)
		ref := newReference(rule, size)
		if s.Nullity() != len(ref.quiet) {
			t.Fatalf("nullity %d, want %d", s.Nullity(), len(ref.quiet))
		}
		if len(ref.quiet) > maxReferenceNullity {
			for _, target := range targets {
				solve(t, s, boards, target)
			}
			return
		}
		var zero, one []optimum
		for i := range boards.Count {
			board := boards.AppendText(nil, i)
			for k := range board {
				board[k] -= '0'
			}
			zero, one = append(zero, ref.solve(board, 0)), append(one, ref.solve(board, 1))
		}
		for _, target := range targets {
			a := solve(t, s, boards, target)
			for i := range zero {
				expect(t, a, i, target, zero[i], one[i])
			}
		}
	})
}

// TestPlainRows compares plus at sizes with ties, and at the largest without,
// with the plain enumeration of 2^width first rows.
func TestPlainRows(t *testing.T) {
	rng := seeded(t)
	for _, size := range []puzzle.Size{{Rows: 4, Cols: 4}, {Rows: 5, Cols: 5}, {Rows: 9, Cols: 9}, {Rows: 11, Cols: 11}, {Rows: 14, Cols: 14},
		{Rows: 7, Cols: 11}, {Rows: 11, Cols: 15}, {Rows: 16, Cols: 11}, {Rows: 15, Cols: 15}, {Rows: 16, Cols: 16}, {Rows: 100, Cols: 9}} {
		boards := randomRun(t, rng, "plus", size, 11)
		a := solve(t, mustSolver(t, "plus", size), boards, puzzle.Zero)
		board, solution := make([]uint16, size.Rows), make([]uint16, size.Rows)
		for i := range boards.Count {
			for l := range board {
				board[l] = boards.Masks[l*boards.Count+i]
			}
			moves, optima := plainRows(solution, board, size.Cols)
			if moves < 0 {
				if a.Status[i] != puzzle.Impossible {
					t.Errorf("%s, board %d: %s, want impossible", size, i, a.Status[i])
				}
				continue
			}
			if a.Status[i] != puzzle.Solved || int(a.MinMoves[i]) != moves || a.OptimalCount[i] != optima || !equalLines(a.Solutions, i, solution) {
				t.Errorf("%s, board %d: %s, %d presses, %d optima; want %d, %d, lines %b", size, i, a.Status[i], a.MinMoves[i], a.OptimalCount[i], moves, optima, solution)
			}
		}
	}
}

func equalLines(r puzzle.Run, i int, lines []uint16) bool {
	for l, m := range lines {
		if r.Masks[l*r.Count+i] != m {
			return false
		}
	}
	return true
}

// TestPlainFridge compares odd×odd fridges, on random boards that can be solved.
func TestPlainFridge(t *testing.T) {
	rng := seeded(t)
	for _, size := range []puzzle.Size{{Rows: 9, Cols: 9}, {Rows: 5, Cols: 11}, {Rows: 11, Cols: 5}, {Rows: 3, Cols: 13}, {Rows: 1, Cols: 15}, {Rows: 13, Cols: 13},
		{Rows: 15, Cols: 15}, {Rows: 33, Cols: 9}, {Rows: 255, Cols: 7}} {
		boards := randomRun(t, rng, "fridge", size, 6)
		a := solve(t, mustSolver(t, "fridge", size), boards, puzzle.Zero)
		board := make([]uint16, size.Rows)
		for i := 1; i < boards.Count; i += 2 {
			beta := 0
			for l := range board {
				board[l] = boards.Masks[l*boards.Count+i]
				beta ^= int(board[l])
			}
			want := plainFridge(board, size.Cols, beta&1)
			if a.Status[i] != puzzle.Solved || int(a.MinMoves[i]) != want.moves || a.OptimalCount[i] != want.count || !equalLines(a.Solutions, i, want.least) {
				t.Errorf("%s, board %d: %s, %d presses, %d optima; want %+v", size, i, a.Status[i], a.MinMoves[i], a.OptimalCount[i], want)
			}
		}
	}
}

// TestSymmetry: mirroring and transposing a board changes neither the minimum
// nor the number of optima where the rule has the same symmetry. It covers wide
// boards, which are stored transposed, at sizes that no reference reaches.
func TestSymmetry(t *testing.T) {
	rng := seeded(t)
	for _, rule := range named {
		for _, size := range []puzzle.Size{{Rows: 4, Cols: 4}, {Rows: 5, Cols: 5}, {Rows: 5, Cols: 9}, {Rows: 9, Cols: 9}, {Rows: 11, Cols: 11},
			{Rows: 15, Cols: 13}, {Rows: 16, Cols: 16}, {Rows: 23, Cols: 7}, {Rows: 101, Cols: 9}, {Rows: 255, Cols: 11}} {
			if rule != "plus" && rule != "fridge" && size.Rows > 23 {
				continue // seconds of set-up that show nothing new
			}
			boards := randomRun(t, rng, rule, size, 6)
			images := map[string]puzzle.Run{
				"upside down": image(boards, size, func(r, c int) (int, int) { return size.Rows - 1 - r, c }),
				"mirrored":    image(boards, size, func(r, c int) (int, int) { return r, size.Cols - 1 - c }),
				"transposed":  image(boards, puzzle.Size{Rows: size.Cols, Cols: size.Rows}, func(r, c int) (int, int) { return c, r }),
			}
			for _, target := range targets {
				want := solve(t, mustSolver(t, rule, size), boards, target)
				for name, run := range images {
					a := solve(t, mustSolver(t, rule, run.Size), run, target)
					if !slices.Equal(a.Status, want.Status) {
						t.Errorf("%s %s %s to %s: %v, want %v", rule, size, name, target, a.Status, want.Status)
					}
					if slices.Contains(a.Status, puzzle.Unproven) {
						continue // not the minimum, so anything goes
					}
					if !slices.Equal(a.Reached, want.Reached) || !slices.Equal(a.MinMoves, want.MinMoves) || !slices.Equal(a.OptimalCount, want.OptimalCount) {
						t.Errorf("%s %s %s to %s: %v %v %v, want %v %v %v", rule, size, name, target, a.Reached, a.MinMoves, a.OptimalCount, want.Reached, want.MinMoves, want.OptimalCount)
					}
				}
			}
		}
	}
}

// image moves each cell (r,c) of the boards to another place.
func image(boards puzzle.Run, size puzzle.Size, to func(r, c int) (int, int)) puzzle.Run {
	out := puzzle.NewRun(size, boards.Count)
	for i := range boards.Count {
		for r := range boards.Rows {
			for c := range boards.Cols {
				if boards.Cell(i, r, c) {
					row, col := to(r, c)
					out.SetCell(i, row, col)
				}
			}
		}
	}
	return out
}

// TestKernelsAgree: where several kernels can solve a rule, they give the same answers.
func TestKernelsAgree(t *testing.T) {
	rng := seeded(t)
	for _, c := range []struct {
		rule string
		size puzzle.Size
	}{
		{"plus", puzzle.Size{Rows: 4, Cols: 4}}, {"plus", puzzle.Size{Rows: 9, Cols: 9}}, {"plus", puzzle.Size{Rows: 16, Cols: 16}}, {"plus", puzzle.Size{Rows: 9, Cols: 30}},
		{"stencil:010/001/111", puzzle.Size{Rows: 13, Cols: 16}}, {"stencil:010/101/010", puzzle.Size{Rows: 16, Cols: 16}}, {"stencil:011/110/001", puzzle.Size{Rows: 16, Cols: 33}},
		{"fridge", puzzle.Size{Rows: 4, Cols: 4}}, {"fridge", puzzle.Size{Rows: 9, Cols: 9}}, {"fridge", puzzle.Size{Rows: 13, Cols: 8}}, {"fridge", puzzle.Size{Rows: 3, Cols: 17}},
	} {
		rule := mustRule(t, c.rule)
		boards := randomRun(t, rng, c.rule, c.size, 70)
		general := &Solver{rule: rule, size: c.size, linear: newLinear(rule, c.size, DefaultSearchLimit)}
		special := &Solver{rule: rule, size: c.size}
		switch {
		case rule.Fridge():
			special.fridge = newFridge(c.size)
		case chasable(rule, c.size):
			special.chase = newChase(rule, c.size, DefaultSearchLimit)
		default:
			t.Fatalf("%s %s has one kernel only", c.rule, c.size)
		}
		chosen := mustSolver(t, c.rule, c.size)
		for _, target := range targets {
			want := solve(t, general, boards, target)
			for _, s := range []*Solver{special, chosen} {
				if got := solve(t, s, boards, target); !equalAnswers(got, want) {
					t.Errorf("%s %s to %s: the kernels disagree:\n%v\n%v", c.rule, c.size, target, got, want)
				}
			}
		}
	}
}

func equalAnswers(a, b *puzzle.Answers) bool {
	return slices.Equal(a.Status, b.Status) && slices.Equal(a.MinMoves, b.MinMoves) && slices.Equal(a.OptimalCount, b.OptimalCount) &&
		slices.Equal(a.Reached, b.Reached) && a.Solutions.Size == b.Solutions.Size && slices.Equal(a.Solutions.Masks, b.Solutions.Masks)
}

// A search that would take days ends soon after nobody wants it any more, in the
// middle of a board, and so does a run of boards that are solved quickly.
func TestSolveUntil(t *testing.T) {
	rule, err := puzzle.ParseRule("king-torus")
	if err != nil {
		t.Fatal(err)
	}
	endless, err := New(rule, puzzle.Size{Rows: 12, Cols: 12}, Options{SearchLimit: 1 << 50}) // 2^44 candidates
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	timer := time.AfterFunc(20*time.Millisecond, func() { close(stop) })
	defer timer.Stop()
	var answers puzzle.Answers
	if endless.SolveUntil(stop, &answers, puzzle.NewRun(endless.Size(), 1), puzzle.Zero) {
		t.Error("2^44 candidates were searched")
	}
	quick, err := New(rule, puzzle.Size{Rows: 3, Cols: 3}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := puzzle.NewRun(quick.Size(), 1000)
	if quick.SolveUntil(stop, &answers, run, puzzle.Zero) {
		t.Error("told to stop before the first board, it says that all are solved")
	}
	if !quick.SolveUntil(make(chan struct{}), &answers, run, puzzle.Zero) {
		t.Error("it says that it was stopped")
	}
}
