package solver

import (
	"math"
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// quiet is the space of quiet patterns of one rule and size, ready to be
// searched: all solutions of a board are one solution plus each quiet pattern.
//
// The basis is in reduced echelon form with respect to the row-major order of
// the board. So with d basis patterns, a solution with no press at any pivot is
// the least one, and adding the patterns that a d-bit number k chooses (basis[0]
// for its highest bit) sets the pivots to the bits of k. Two solutions first
// differ at a pivot: their difference is a quiet pattern, and that begins at the
// pivot of the first basis pattern it contains. Hence candidates in the order of
// k are in the order of their texts, whatever the rule and however the board is
// stored, and the first candidate with the fewest presses is the answer.
type quiet struct {
	layout
	basis  [][]uint64
	pivots []int
	proven bool // the candidates are within the search limit

	// The search's, see there.
	lanes  int         // basis patterns whose sums are in the tables
	groups int         // sums of the basis patterns before these
	tables []wordTable // of each word

	// The least solution of the all-1 board, and its lines for four boards each.
	// Where that board has no solution this still turns a board's solution for
	// target zero into the one for target one, if there is one, because the map
	// from boards to solutions is linear.
	ones      []uint64
	onesLines []uint64
}

func newQuiet(y layout, patterns [][]uint64, limit int64) *quiet {
	q := &quiet{layout: y}
	vectors := make([]vector, len(patterns))
	for i, p := range patterns {
		vectors[i].cells = p
	}
	q.pivots = eliminate(vectors, y.order)
	for _, v := range vectors {
		q.basis = append(q.basis, v.cells)
	}
	d := len(q.basis)
	q.proven = d < 63 && int64(1)<<d <= limit
	q.prepare()
	return q
}

func (q *quiet) nullity() int { return len(q.basis) }

// setOnes stores the solution of the all-1 board.
func (q *quiet) setOnes(x []uint64) {
	q.ones = append(q.ones, x[:q.words]...)
	q.normalise(q.ones)
}

// setOnesLines stores the lines of that solution, for straight.
func (q *quiet) setOnesLines() {
	b := block{masks: make([]uint16, q.lines*blockBoards)}
	q.unpack(&b, 0, q.ones)
	for l := range q.lines {
		q.onesLines = append(q.onesLines, lanes(b.line(l)[0]))
	}
}

// answer answers board i of the block, given in x the least solution for target zero
// and whether zero and one can be reached at all. It leaves the solution in x; y has
// room for another.
func (q *quiet) answer(b *block, i int, x, y []uint64, target puzzle.Target, zero, one bool) {
	x, y = x[:q.words], y[:q.words]
	copy(y, x)
	best := found{moves: math.MaxInt}
	if zero && target != puzzle.One {
		best = q.search(x, &b.scratch)
		b.answer(i, q.status(), best, puzzle.Zero)
	} else {
		clear(x)
	}
	if one && target != puzzle.Zero {
		add(y, q.ones)
		if f := q.search(y, &b.scratch); f.moves < best.moves {
			copy(x, y)
			b.answer(i, q.status(), f, puzzle.One)
		}
	}
}

// status returns the status of a board that has a solution.
func (q *quiet) status() puzzle.Status {
	if q.proven {
		return puzzle.Solved
	}
	return puzzle.Unproven
}

// straight answers all boards of the block where there are no quiet patterns.
// The block holds the solutions for target zero.
func (q *quiet) straight(b *block, target puzzle.Target) {
	clear(b.status[:])
	clear(b.reached[:])
	for i := range b.count {
		b.count[i] = 1
	}
	if target != puzzle.One {
		var none [puzzle.MaxLines]uint64
		b.weigh(b.moves, none[:q.lines])
	}
	if target == puzzle.Zero {
		return
	}
	var toOne column[int32]
	b.weigh(&toOne, q.onesLines)
	var chosen column[uint16] // all ones where the board goes to one
	for i, moves := range toOne {
		one := (int64(moves) - int64(b.moves[i])) >> 63
		if target == puzzle.One {
			one = -1
		}
		b.moves[i] ^= (b.moves[i] ^ moves) & int32(one)
		b.reached[i], chosen[i] = puzzle.Target(one&1), uint16(one)
	}
	for l, ones := range q.onesLines {
		line := b.line(l)
		for i := 0; i < len(line); i += 4 {
			setFour(line[i:i+4], four(line[i:i+4])^ones&four(chosen[i:i+4]))
		}
	}
}

// normalise makes x the least solution, by taking the presses at the pivots away.
func (q *quiet) normalise(x []uint64) {
	for i, p := range q.pivots {
		pressed := -(x[p/64] >> (p % 64) & 1) // all ones or 0, as a branch would be mispredicted
		for w, word := range q.basis[i][:len(x)] {
			x[w] ^= word & pressed
		}
	}
}

// optima returns n where the search proves anything.
func (q *quiet) optima(n int64) int64 {
	if q.proven {
		return n
	}
	return 0
}

// apply adds the basis patterns that k chooses.
func (q *quiet) apply(x []uint64, k int) {
	for ; k != 0; k &= k - 1 {
		add(x, q.basis[len(q.basis)-1-trailing(k)])
	}
}

func weight(x []uint64) (n int) {
	for _, word := range x {
		n += bits.OnesCount64(word)
	}
	return n
}
