package solver

import (
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Proofs prove that boards are impossible. A proof is a set of cells of which every
// press toggles an even number: so no presses change an odd number of them. Where a
// rule's stencil is the same upside down and from right to left, as with all that
// have a name, proofs are the quiet patterns. Of other rules they are the quiet
// patterns turned by 180 degrees, because a press here toggles a cell there just if
// a press there, of a rule so turned, toggles the cell here.
//
// Proofs never change: they may be used by many goroutines at once.
type Proofs struct {
	target puzzle.Target
	texts  [][]byte // a basis in reduced echelon form: the last one is the least
}

// Proofs returns the proofs for a target; for either those that serve for both.
func (s *Solver) Proofs(target puzzle.Target) *Proofs {
	quiet, n := s.Quiet(), s.size.Cells()
	vectors := make([]vector, quiet.Count)
	order := make([]int, n)
	for cell := range order {
		order[cell] = cell
	}
	for i := range vectors {
		vectors[i].cells = make([]uint64, (n+63)/64)
		text := quiet.AppendText(nil, i)
		slices.Reverse(text)
		for cell, pressed := range text {
			if pressed == '1' {
				toggle(vectors[i].cells, cell)
			}
		}
	}
	eliminate(vectors, order)
	p := &Proofs{target: target}
	if target == puzzle.Either {
		vectors = evens(vectors)
	}
	for _, v := range vectors {
		text := make([]byte, n)
		for cell := range text {
			text[cell] = '0'
			if bit(v.cells, cell) {
				text[cell] = '1'
			}
		}
		p.texts = append(p.texts, text)
	}
	return p
}

// evens returns a basis of the sums of vectors that have an even number of cells, of
// which equally many are to be changed whatever the target. It is in reduced echelon
// form as well: where the last odd vector begins none of the others has a cell, but
// for the odd ones to which it is added, and there they do not begin.
func evens(vectors []vector) []vector {
	odd := func(v vector) bool { return weight(v.cells)%2 == 1 }
	last := -1
	for i, v := range vectors {
		if odd(v) {
			last = i
		}
	}
	if last < 0 {
		return vectors
	}
	for _, v := range vectors[:last] {
		if odd(v) {
			add(v.cells, vectors[last].cells)
		}
	}
	return slices.Delete(vectors, last, last+1)
}

// Least returns the least proof that a board, in text form, is impossible; nil where
// there is none, as it is possible. The greatest pattern of the basis in which two
// sums differ is in the greater one, so the least sum that proves it is the last
// pattern that does so alone.
func (p *Proofs) Least(board []byte) []byte {
	done := byte('0') // how cells are that need no change
	if p.target == puzzle.One {
		done = '1'
	}
	for _, text := range slices.Backward(p.texts) {
		changes := byte(0)
		for cell, in := range text {
			changes ^= in & (board[cell] ^ done)
		}
		if changes&1 == 1 {
			return text
		}
	}
	return nil
}
