package solver

import "math/bits"

// Linear algebra over GF(2), used when a solver is made. Vectors are bits in
// words; a position is a word's index times 64 plus the bit.

// vector is a set of cells, and the presses that toggle just these. presses may
// be nil where nobody asks for them.
type vector struct {
	cells, presses []uint64
}

func bit(x []uint64, position int) bool { return x[position/64]>>(position%64)&1 != 0 }

func toggle(x []uint64, position int) { x[position/64] ^= 1 << (position % 64) }

// trailing returns the lowest bit that is set in v, which is not 0.
func trailing(v int) int { return bits.TrailingZeros(uint(v)) }

// add adds y to x, as far as x goes.
func add(x, y []uint64) {
	y = y[:len(x)]
	for w := range x {
		x[w] ^= y[w]
	}
}

// eliminate is Gauss-Jordan elimination: it brings the vectors' cells into
// reduced echelon form with respect to the given order of positions, and returns
// the pivots. Vector i, of the first len(pivots), has a cell at pivot i, none at
// positions before it in the order and none at any other pivot. The remaining
// vectors have no cells: their presses change nothing.
//
// Time is cubic: half a second for 4096 cells with presses.
func eliminate(vectors []vector, order []int) (pivots []int) {
	for _, p := range order {
		rank := len(pivots)
		found := rank
		for found < len(vectors) && !bit(vectors[found].cells, p) {
			found++
		}
		if found == len(vectors) {
			continue
		}
		vectors[rank], vectors[found] = vectors[found], vectors[rank]
		pivot := vectors[rank]
		for i, v := range vectors {
			if i != rank && bit(v.cells, p) {
				add(v.cells, pivot.cells)
				add(v.presses, pivot.presses)
			}
		}
		pivots = append(pivots, p)
	}
	return pivots
}

// inverse undoes a linear map, as far as it can be undone.
type inverse struct {
	entries [][]uint64 // by bit of an image: a preimage, then failing bits
	failing int        // words of failing bits, which are all 0 where there is a preimage
	kernel  [][]uint64 // basis of what is mapped to 0
}

// invert returns the inverse of the map that has the presses of each column as
// preimage of its cells. order are the positions in which cells may be.
func invert(columns []vector, order []int) *inverse {
	if len(columns) == 0 {
		return new(inverse)
	}
	words := len(columns[0].presses)
	pivots := eliminate(columns, order)
	m := &inverse{failing: (len(order) - len(pivots) + 63) / 64}
	for _, v := range columns[len(pivots):] {
		m.kernel = append(m.kernel, v.presses)
	}
	m.entries = make([][]uint64, len(columns[0].cells)*64)
	for i, p := range pivots {
		m.entries[p] = append(columns[i].presses, make([]uint64, m.failing)...)
	}
	loose := 0
	for _, p := range order {
		if m.entries[p] != nil {
			continue
		}
		m.entries[p] = make([]uint64, words+m.failing)
		toggle(m.entries[p], words*64+loose)
		for i, pivot := range pivots {
			if bit(columns[i].cells, p) {
				toggle(m.entries[pivot], words*64+loose)
			}
		}
		loose++
	}
	return m
}

// of sets x to a preimage of an image, and its failing bits.
func (m *inverse) of(x, image []uint64) {
	clear(x)
	for w, word := range image {
		for ; word != 0; word &= word - 1 {
			add(x, m.entries[w*64+bits.TrailingZeros64(word)])
		}
	}
}
