package solver

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// samples are a rule and size for each kernel and each of its ways.
var samples = []struct {
	rule string
	size puzzle.Size
}{
	{"plus", puzzle.Size{Rows: 5, Cols: 5}}, {"plus", puzzle.Size{Rows: 15, Cols: 15}}, {"plus", puzzle.Size{Rows: 9, Cols: 9}}, {"plus", puzzle.Size{Rows: 14, Cols: 14}},
	{"plus", puzzle.Size{Rows: 256, Cols: 16}}, {"plus", puzzle.Size{Rows: 5, Cols: 33}},
	{"king", puzzle.Size{Rows: 5, Cols: 5}}, {"king", puzzle.Size{Rows: 9, Cols: 9}}, {"x-torus", puzzle.Size{Rows: 7, Cols: 9}},
	{"fridge", puzzle.Size{Rows: 4, Cols: 4}}, {"fridge", puzzle.Size{Rows: 12, Cols: 16}}, {"fridge", puzzle.Size{Rows: 7, Cols: 7}},
	{"fridge", puzzle.Size{Rows: 4, Cols: 7}}, {"fridge", puzzle.Size{Rows: 7, Cols: 4}}, {"fridge", puzzle.Size{Rows: 5, Cols: 19}},
	{"plus", puzzle.Size{Rows: 17, Cols: 20}}, {"plus", puzzle.Size{Rows: 24, Cols: 24}}, {"king", puzzle.Size{Rows: 20, Cols: 64}}, {"x-torus", puzzle.Size{Rows: 18, Cols: 22}},
}

func TestSolveAllocatesNothing(t *testing.T) {
	rng := seeded(t)
	for _, c := range samples {
		s := mustSolver(t, c.rule, c.size)
		boards := randomRun(t, rng, c.rule, c.size, 70)
		for _, target := range targets {
			a := solve(t, s, boards, target)
			if n := testing.AllocsPerRun(5, func() { s.Solve(a, boards, target) }); n != 0 {
				t.Errorf("%s %s to %s: Solve allocates %v times", c.rule, c.size, target, n)
			}
			scratch := puzzle.NewRun(c.size, boards.Count)
			check := func() {
				if err := s.Check(&scratch, boards, a); err != nil {
					t.Error(err)
				}
			}
			if n := testing.AllocsPerRun(5, check); n != 0 {
				t.Errorf("%s %s to %s: Check allocates %v times", c.rule, c.size, target, n)
			}
		}
	}
}

// TestAnswersDoNotDependOnTheRun: a board gets the same answer alone, at any
// place in a run, and into Answers that held others.
func TestAnswersDoNotDependOnTheRun(t *testing.T) {
	rng := seeded(t)
	var dirty puzzle.Answers
	for _, c := range samples {
		s := mustSolver(t, c.rule, c.size)
		boards := randomRun(t, rng, c.rule, c.size, 135)
		for _, target := range targets {
			want := solve(t, s, boards, target)
			s.Solve(&dirty, boards, target)
			if !equalAnswers(&dirty, want) || dirty.Nullity != s.Nullity() {
				t.Errorf("%s %s to %s: used Answers give other answers", c.rule, c.size, target)
			}
			for i := 0; i < boards.Count; i += 7 {
				alone, err := puzzle.ParseText(c.size, string(boards.AppendText(nil, i)))
				if err != nil {
					t.Fatal(err)
				}
				a := solve(t, s, alone, target)
				if a.Status[0] != want.Status[i] || a.MinMoves[0] != want.MinMoves[i] || a.OptimalCount[0] != want.OptimalCount[i] ||
					a.Reached[0] != want.Reached[i] || !bytes.Equal(a.Solutions.AppendText(nil, 0), want.Solutions.AppendText(nil, i)) {
					t.Errorf("%s %s to %s: board %d has another answer alone", c.rule, c.size, target, i)
				}
			}
		}
	}
}

func TestEmptyRun(t *testing.T) {
	for _, c := range samples {
		a := solve(t, mustSolver(t, c.rule, c.size), puzzle.NewRun(c.size, 0), puzzle.Either)
		if len(a.Status) != 0 || a.Solutions.Count != 0 || a.Solutions.Size != c.size {
			t.Errorf("%s %s: answers %+v to no boards", c.rule, c.size, a)
		}
	}
}

// TestSearchLimit: above the limit a board still gets a solution, the least of
// all, not claimed to have the fewest presses.
func TestSearchLimit(t *testing.T) {
	rng := seeded(t)
	for _, c := range []struct {
		rule string
		size puzzle.Size
	}{{"plus", puzzle.Size{Rows: 5, Cols: 5}}, {"plus", puzzle.Size{Rows: 9, Cols: 9}}, {"plus", puzzle.Size{Rows: 5, Cols: 17}}, {"king", puzzle.Size{Rows: 3, Cols: 5}}, {"plus", puzzle.Size{Rows: 17, Cols: 17}}, {"plus", puzzle.Size{Rows: 19, Cols: 19}}} {
		ref := newReference(c.rule, c.size)
		atLimit := int64(1) << len(ref.quiet)
		boards := randomRun(t, rng, c.rule, c.size, 20)
		for limit, status := range map[int64]puzzle.Status{atLimit: puzzle.Solved, atLimit - 1: puzzle.Unproven, 1: puzzle.Unproven} {
			s, err := New(mustRule(t, c.rule), c.size, Options{SearchLimit: limit})
			if err != nil {
				t.Fatal(err)
			}
			a := solve(t, s, boards, puzzle.Zero)
			for i, got := range a.Status {
				if got == puzzle.Impossible && i%2 == 0 {
					continue // not made to be solvable
				}
				if got != status || (a.OptimalCount[i] == 0) != (status == puzzle.Unproven) {
					t.Errorf("%s %s, limit %d: board %d is %s with %d optima, want %s", c.rule, c.size, limit, i, got, a.OptimalCount[i], status)
				}
				if status == puzzle.Unproven && len(ref.quiet) <= maxReferenceNullity {
					least := leastOfAll(ref, a.Solutions.AppendText(nil, i))
					if got := a.Solutions.AppendText(nil, i); !bytes.Equal(got, least) {
						t.Errorf("%s %s, limit %d: board %d has solution %s, want the least, %s", c.rule, c.size, limit, i, got, least)
					}
				}
			}
		}
	}
	s, err := New(mustRule(t, "fridge"), puzzle.Size{Rows: 9, Cols: 9}, Options{SearchLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if a := solve(t, s, puzzle.NewRun(s.Size(), 1), puzzle.One); a.Status[0] != puzzle.Solved {
		t.Errorf("fridge within a search limit of 1: %s, want solved", a.Status[0])
	}
}

// leastOfAll returns the least text of one solution plus any quiet pattern.
func leastOfAll(ref *reference, solution []byte) []byte {
	x, least := bytes.Clone(solution), bytes.Clone(solution)
	for k := range 1 << len(ref.quiet) {
		for j, pattern := range ref.quiet {
			if k^(k+1)&(1<<j) != 0 && k>>j&1 != (k+1)>>j&1 {
				xor(x, pattern)
			}
		}
		if bytes.Compare(x, least) < 0 {
			least = bytes.Clone(x)
		}
	}
	return least
}

// TestCheck: whatever is wrong with an answer is found, and a word says where.
func TestCheck(t *testing.T) {
	rng := seeded(t)
	for _, c := range samples {
		s := mustSolver(t, c.rule, c.size)
		boards := randomRun(t, rng, c.rule, c.size, 70)
		const victim = 65 // solvable, in the second block
		var scratch puzzle.Run
		for name, damage := range map[string]func(a *puzzle.Answers){
			"solution": func(a *puzzle.Answers) { a.Solutions.Masks[victim] ^= 1 },
			"moves":    func(a *puzzle.Answers) { a.MinMoves[victim]++ },
			"reached":  func(a *puzzle.Answers) { a.Reached[victim] = puzzle.One },
			"status": func(a *puzzle.Answers) {
				a.Status[victim], a.Solutions.Masks[victim] = puzzle.Impossible, a.Solutions.Masks[victim]^1
			},
		} {
			a := solve(t, s, boards, puzzle.Zero)
			damage(a)
			if err := s.Check(&scratch, boards, a); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("board %d ", victim)) {
				t.Errorf("%s %s, wrong %s: Check says %v", c.rule, c.size, name, err)
			}
		}
		a := solve(t, s, boards, puzzle.Zero)
		a.Reset(c.size, 3)
		if err := s.Check(&scratch, boards, a); err == nil {
			t.Errorf("%s %s: Check accepts answers to another run", c.rule, c.size)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	plus := mustRule(t, "plus")
	for _, c := range []struct {
		rule puzzle.Rule
		size puzzle.Size
		opts Options
	}{
		{plus, puzzle.Size{Rows: 65, Cols: 65}, Options{}},
		{mustRule(t, "fridge"), puzzle.Size{Rows: 17, Cols: 17}, Options{}},
		{plus, puzzle.Size{Rows: 257, Cols: 1}, Options{}},
		{plus, puzzle.Size{Rows: 0, Cols: 4}, Options{}},
		{plus, puzzle.Size{Rows: 4, Cols: 4}, Options{SearchLimit: -1}},
		{puzzle.Rule{}, puzzle.Size{Rows: 4, Cols: 4}, Options{}},
	} {
		if _, err := New(c.rule, c.size, c.opts); err == nil {
			t.Errorf("New(%v, %s, %v) succeeds", c.rule, c.size, c.opts)
		}
	}
}

func TestSet(t *testing.T) {
	set := NewSet(mustRule(t, "plus"), Options{})
	size := puzzle.Size{Rows: 9, Cols: 9}
	var wg sync.WaitGroup
	got := make([]*Solver, 8)
	for i := range got {
		wg.Go(func() { got[i], _ = set.For(size) })
	}
	wg.Wait()
	for _, s := range got {
		if s == nil || s != got[0] || s.Size() != size {
			t.Fatalf("one size has the solvers %v", got)
		}
	}
	for i := range got { // sizes that do not all fit
		wg.Go(func() {
			for rows := 1; rows <= 100; rows++ {
				size := puzzle.Size{Rows: rows, Cols: 16 - i%2}
				if s, err := set.For(size); err != nil || s.Size() != size {
					t.Errorf("For(%s) = %v, %v", size, s, err)
				}
			}
		})
	}
	wg.Wait()
	cells := 0
	for _, size := range set.sizes {
		cells += tabled(size)
	}
	if cells != set.cells || cells > maxSetCells || len(set.solvers) != len(set.sizes) || len(set.sizes) < 2 {
		t.Errorf("set counts %d cells in %d solvers of sizes %v", set.cells, len(set.solvers), set.sizes)
	}
	if _, err := set.For(puzzle.Size{Rows: 65, Cols: 65}); err == nil || len(set.solvers) != len(set.sizes) {
		t.Errorf("For(65x65): %v", err)
	}
}
