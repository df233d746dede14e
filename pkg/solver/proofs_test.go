package solver

import (
	"bytes"
	"math/bits"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestProofs goes through every set of cells on small boards: the least one of which
// every press toggles an even number, and no way to the target does. There is one
// just if no presses reach the target.
func TestProofs(t *testing.T) {
	for _, c := range []struct {
		rule string
		size puzzle.Size
	}{
		{"plus", puzzle.Size{Rows: 3, Cols: 3}}, {"plus", puzzle.Size{Rows: 2, Cols: 5}}, {"king", puzzle.Size{Rows: 3, Cols: 4}},
		{"plus-torus", puzzle.Size{Rows: 3, Cols: 3}}, {"fridge", puzzle.Size{Rows: 3, Cols: 3}}, {"fridge", puzzle.Size{Rows: 4, Cols: 3}},
		{"stencil:110/000/011-torus", puzzle.Size{Rows: 3, Cols: 4}}, {"stencil:010/001/000", puzzle.Size{Rows: 3, Cols: 4}},
		{"stencil:011/100/000", puzzle.Size{Rows: 4, Cols: 3}}, {"stencil:000/000/110", puzzle.Size{Rows: 3, Cols: 3}},
	} {
		n := c.size.Cells()
		number := func(cells []byte) (b uint) {
			for _, cell := range cells {
				b = b<<1 | uint(cell&1)
			}
			return b
		}
		var effects []uint
		for k := range n {
			effects = append(effects, number(toggled(c.rule, c.size, k/c.size.Cols, k%c.size.Cols)))
		}
		var proofs []uint // least first
		for cells := uint(1); cells < 1<<n; cells++ {
			even := true
			for _, effect := range effects {
				even = even && bits.OnesCount(effect&cells)%2 == 0
			}
			if even {
				proofs = append(proofs, cells)
			}
		}
		s, boards, full := mustSolver(t, c.rule, c.size), allBoards(c.size), uint(1)<<n-1
		for _, target := range targets {
			a, p := solve(t, s, boards, target), s.Proofs(target)
			for i, status := range a.Status {
				text := boards.AppendText(nil, i)
				zero := number(text)
				want := []byte(nil)
				for _, cells := range proofs {
					odd := bits.OnesCount(zero&cells)%2 == 1
					oddToOne := bits.OnesCount((zero^full)&cells)%2 == 1
					if target == puzzle.One {
						odd = oddToOne
					} else if target == puzzle.Either {
						odd = odd && oddToOne
					}
					if odd {
						for k := range n {
							want = append(want, '0'+byte(cells>>(n-1-k)&1))
						}
						break
					}
				}
				if got := p.Least(text); !bytes.Equal(got, want) || (got != nil) != (status == puzzle.Impossible) {
					t.Fatalf("%s %s to %s: board %s, %s: proof %s, want %s", c.rule, c.size, target, text, status, got, want)
				}
			}
		}
	}
}
