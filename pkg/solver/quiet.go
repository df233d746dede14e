package solver

import (
	"math"
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// found is the outcome of a search: the fewest presses, and how many solutions
// have as few.
type found struct {
	moves int
	count int64
}

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
	low    [][]uint64 // low[w][k]: word w of the sum of those of the last lowBits basis patterns that k chooses
	proven bool       // the candidates are within the search limit

	// The solution of the all-1 board, and as lines. Where that board has no
	// solution this still turns a board's solution for target zero into the one
	// for target one, if there is one, because the map from boards to solutions
	// is linear.
	ones      []uint64
	onesLines []uint16
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
	lowBits := min(d, bits.Len(lowPatterns-1))
	for w := range y.words {
		table := make([]uint64, 1, 1<<lowBits)
		for i := range lowBits {
			pattern := q.basis[d-1-i][w]
			for _, sum := range table {
				table = append(table, sum^pattern)
			}
		}
		q.low = append(q.low, table)
	}
	return q
}

func (q *quiet) nullity() int { return len(q.basis) }

// setOnes stores the solution of the all-1 board.
func (q *quiet) setOnes(x []uint64) {
	q.ones = append(q.ones, x[:q.words]...)
	b := block{stride: 4}
	q.unpack(&b, 0, q.ones)
	for l := range q.lines {
		q.onesLines = append(q.onesLines, b.masks[l*b.stride])
	}
}

// answer answers board i of the block, given in b.x a solution for target zero
// and whether zero and one can be reached at all. It leaves the solution in b.x.
func (q *quiet) answer(b *block, i int, target puzzle.Target, zero, one bool) {
	x, y := b.x[:q.words], b.y[:q.words]
	copy(y, x)
	best := found{moves: math.MaxInt}
	if zero && target != puzzle.One {
		best = q.search(x, &b.weights)
		b.answer(i, q.status(), best, puzzle.Zero)
	} else {
		clear(x)
	}
	if one && target != puzzle.Zero {
		add(y, q.ones)
		if f := q.search(y, &b.weights); f.moves < best.moves {
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
	var none [puzzle.MaxLines]uint16
	var toOne [blockBoards]int32
	if target != puzzle.One {
		b.weigh(b.moves[:b.n], none[:q.lines])
	}
	if target != puzzle.Zero {
		b.weigh(toOne[:b.n], q.onesLines)
	}
	var chosen [blockBoards]uint16 // all ones where the board goes to one
	for i := range b.n {
		reached := puzzle.Zero
		if target == puzzle.One || target == puzzle.Either && toOne[i] < b.moves[i] {
			reached, chosen[i], b.moves[i] = puzzle.One, ^uint16(0), toOne[i]
		}
		b.status[i], b.count[i], b.reached[i] = puzzle.Solved, 1, reached
	}
	if target == puzzle.Zero {
		return
	}
	for l, ones := range q.onesLines {
		line := b.masks[l*b.stride:][:b.n]
		for i := range line {
			line[i] ^= ones & chosen[i]
		}
	}
}

// search replaces the solution x by the least one with the fewest presses.
// Where the search limit forbids that, x becomes the least of all solutions and
// the count is 0.
//
// The low table holds the candidates of the last few basis patterns; the others
// are counted through outside it. Time is 2^nullity × words.
func (q *quiet) search(x []uint64, weights *[lowPatterns]uint16) found {
	q.normalise(x)
	if !q.proven || q.nullity() == 0 {
		return found{weight(x), q.optima(1)}
	}
	n := len(q.low[0])
	var best found
	bestK, last := 0, 1<<q.nullity()/n-1
	for high := 0; ; high++ {
		k, low := least(q.weigh(x, weights))
		switch {
		case best.count == 0 || low.moves < best.moves:
			best, bestK = low, high*n+k
		case low.moves == best.moves:
			best.count += low.count
		}
		if high == last {
			q.apply(x, high*n^bestK)
			return best
		}
		q.apply(x, (high^(high+1))*n)
	}
}

// normalise makes x the least solution, by taking the presses at the pivots away.
func (q *quiet) normalise(x []uint64) {
	for i, p := range q.pivots {
		if bit(x, p) {
			add(x, q.basis[i])
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

// weigh counts the presses of x plus each pattern of the low table.
func (q *quiet) weigh(x []uint64, weights *[lowPatterns]uint16) []uint16 {
	out := weights[:len(q.low[0])]
	clear(out)
	w := 0
	for ; w+2 <= len(x); w += 2 { // two words at once halve the loads and stores of out
		x0, x1 := x[w], x[w+1]
		low0, low1 := q.low[w][:len(out)], q.low[w+1][:len(out)]
		for k := range out {
			out[k] += uint16(bits.OnesCount64(x0^low0[k]) + bits.OnesCount64(x1^low1[k]))
		}
	}
	if w < len(x) {
		x0, low0 := x[w], q.low[w][:len(out)]
		for k := range out {
			out[k] += uint16(bits.OnesCount64(x0 ^ low0[k]))
		}
	}
	return out
}

// least returns the index of the first smallest weight, and what it says. The
// number of weights is even. There are no branches to mispredict: which weight
// is smallest is random.
func least(weights []uint16) (int, found) {
	even, odd := uint32(1<<32-1), uint32(1<<32-1) // weights above indices
	for k := 0; k+1 < len(weights); k += 2 {
		even = min(even, uint32(weights[k])<<16|uint32(k))
		odd = min(odd, uint32(weights[k+1])<<16|uint32(k+1))
	}
	best := min(even, odd)
	count := uint32(0)
	for _, w := range weights {
		count += (uint32(w) ^ best>>16 - 1) >> 31 // 1 where equal
	}
	return int(best & 0xffff), found{int(best >> 16), int64(count)}
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
