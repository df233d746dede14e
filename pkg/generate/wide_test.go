package generate_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestWide compares the largest boards, which are made from the seed as docs/generate.md
// says, and their least solutions with those that another program has found: elimination
// over all presses at once, in numbers as long as the board, and all sums of the free
// ones (Python, testdata/wide.py).
func TestWide(t *testing.T) {
	for _, want := range []string{
		// the size, the rule, the seed, nullity, presses, solutions with as many, the first 64 bits of the SHA-256 of board and solution
		"5x5 plus 1 2 8 1 ecf888e9fb362ad5 85e7a7dc5d9011e8",
		"19x19 plus 11 16 141 1 5a31a2ba2f6a70e8 afab937bd038ee50",
		"24x24 plus 9 4 266 1 9db3a25cce70e881 d3893c7544b3c110",
		"256x17 plus 10 0 2150 1 54efa9cc5658a797 0183980bfcf1a1f0",
		"16x256 plus 3 0 2043 1 30b1ffe31a43c1cd 71c850548e8960cb",
		"256x16 king 4 0 2083 1 726cb30969cfae07 8c4b9dcc89a2b66c",
		"64x256 plus 5 0 8115 1 09d618d88ca11a11 6e891c788c46686d",
		"64x256 stencil:011/110/010 6 2 8215 1 c42ea6bdf092ab71 94195dfdc5ca0cf7",
		"256x64 king 7 0 8299 1 121676157b8fe4ba a096408aea16afcc",
	} {
		var size, rule string
		var seed int
		if _, err := fmt.Sscan(want, &size, &rule, &seed); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("solvable,count=1,seed=%d %s %s zero", seed, size, rule)
		spec := newSpec(t, name)
		var board puzzle.Run
		newGenerator(t, name).Fill(&board, 0, 1)
		s, err := solverOf(spec).For(spec.Size)
		if err != nil {
			t.Fatal(err)
		}
		var a puzzle.Answers
		s.Solve(&a, board, puzzle.Zero)
		sum := func(run puzzle.Run) string { return fmt.Sprintf("%x", sha256.Sum256(run.AppendText(nil, 0)))[:16] }
		got := fmt.Sprint(size, " ", rule, " ", seed, " ", a.Nullity, " ", a.MinMoves[0], " ", a.OptimalCount[0], " ", sum(board), " ", sum(a.Solutions))
		if got != want || a.Status[0] != puzzle.Solved {
			t.Errorf("%s, want\n%s", got, want)
		}
	}
}
