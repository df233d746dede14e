package solver

import (
	"fmt"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestSweep compares the kernel for wide boards with the others, on boards that
// those can solve.
func TestSweep(t *testing.T) {
	rng := seeded(t)
	compare := func(rule string, size puzzle.Size) {
		other := mustSolver(t, rule, size)
		k := newSweep(mustRule(t, rule), size, DefaultSearchLimit)
		s := &Solver{rule: other.rule, size: size, nullity: k.quiet.nullity(), sweep: k}
		if s.nullity != other.nullity {
			t.Fatalf("%s %s: nullity %d, want %d", rule, size, s.nullity, other.nullity)
		}
		boards := randomRun(t, rng, rule, size, 5)
		for _, target := range targets {
			if a, b := solve(t, s, boards, target), solve(t, other, boards, target); !equalAnswers(a, b) {
				t.Fatalf("%s %s to %s: other answers than those of other kernels", rule, size, target)
			}
		}
	}
	for pattern := 1; pattern < 1<<9; pattern++ {
		rule := fmt.Sprintf("stencil:%03b/%03b/%03b", pattern>>6, pattern>>3&7, pattern&7)
		for _, torus := range []string{"", "-torus"} {
			sizes := [...]puzzle.Size{{Rows: 1 + rng.IntN(6), Cols: 1 + rng.IntN(6)}, {Rows: 1 + rng.IntN(6), Cols: 7 + rng.IntN(10)}, {Rows: 1 + rng.IntN(4), Cols: 17 + rng.IntN(6)}}
			compare(rule+torus, sizes[rng.IntN(len(sizes))])
		}
	}
}
