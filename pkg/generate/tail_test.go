package generate_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// newTail returns a generator that draws from the tail.
func newTail(t testing.TB, name string) *generate.Generator {
	t.Helper()
	g := newGenerator(t, name)
	if err := g.DrawFromTail(); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTailFacts compares with what the program in docs/generate.md makes, by which
// the tail's rules are those of any number of presses.
func TestTailFacts(t *testing.T) {
	for _, words := range facts(t, "tail.txt") {
		name, want := strings.Join(words[:4], " "), words[4:]
		g := newTail(t, name)
		if got := boards(g, 0, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
		if got := boards(g, 1, 1); got[0] != want[1] {
			t.Errorf("%s: board 1 alone is %s, want %s", name, got[0], want[1])
		}
	}
}

// TestTailUniform counts how often each board comes.
func TestTailUniform(t *testing.T) {
	const draws = 6_000
	for _, text := range []string{
		"3x3 plus zero", "3x3 plus either", "3x3 fridge zero", "3x3 fridge either", "2x5 plus either",
		"3x3 plus-torus one", "2x4 king either", "2x3 x-torus either", "4x2 x one", "3x3 stencil:010/001/000 either",
	} {
		_, byPresses := reached(newSpec(t, "all "+text))
		for k, weights := range byFewest(byPresses) {
			name := fmt.Sprintf("moves=%d,count=%d,seed=5 %s", k, draws, text)
			compareCounts(t, name, boards(newTail(t, name), 0, draws), weights)
		}
	}
}

// TestTail draws boards of 4x9 that need the most presses, 20, of which one try in
// 350,000 would stay. All need so many, and as many are different as has to be expected
// of so many draws among as many boards as were counted elsewhere.
func TestTail(t *testing.T) {
	const there = 20_736 // in dist_min_moves.csv
	name := fmt.Sprintf("moves=20,count=%d 4x9 plus zero", there)
	var run puzzle.Run
	var answers puzzle.Answers
	newGenerator(t, name).Fill(&run, 0, there)
	spec := newSpec(t, name)
	s, err := solverOf(spec).For(spec.Size)
	if err != nil {
		t.Fatal(err)
	}
	s.Solve(&answers, run, spec.Target)
	found := map[string]int{}
	for i := range run.Count {
		if answers.Status[i] != puzzle.Solved || answers.MinMoves[i] != 20 {
			t.Fatalf("board %d needs %d presses (%s)", i, answers.MinMoves[i], answers.Status[i])
		}
		found[string(run.AppendText(nil, i))] = 1
	}
	// Of n draws among n boards n/e leave each out, with a variance of n(1/e - 2/e²).
	want, deviation := there*(1-1/math.E), math.Sqrt(there*(1/math.E-2/(math.E*math.E)))
	if off := float64(len(found)) - want; math.Abs(off) > 5*deviation {
		t.Errorf("%d different boards, want %.0f ± %.0f", len(found), want, deviation)
	}
}

// What is too much to go through is refused, and what no board needs, too.
func TestTailRefused(t *testing.T) {
	for text, want := range map[string]string{
		"moves=41,count=1 9x9 plus zero":    "no board of 9x9 was found that needs 41 presses",
		"moves=21,count=1 4x9 plus zero":    "no board of 4x9 needs 21 presses, the most is 20",
		"moves=60,count=1 5x17 plus either": "no board of 5x17 needs 60 presses, the most is 47",
		"moves=60,count=1 9x9 plus zero":    "no board of 9x9 needs 60 presses",
	} {
		spec := newSpec(t, text)
		if g, err := generate.New(spec, solverOf(spec)); err == nil || !strings.HasSuffix(err.Error(), want) && !strings.Contains(err.Error(), want+":") {
			t.Errorf("%s: got %v, %v; want %q", text, g, err, want)
		}
	}
}
