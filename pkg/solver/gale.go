package solver

import (
	"math/bits"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// gale solves odd×odd fridge boards: x = b + p(l) + q(c) with Σp = Σq = β, all
// parities of the board being β (see fridge). Distinct (p, q) give distinct x,
// since the only other pair with the same x is (p+1, q+1), of the other parity.
//
// Source: the Gale-Berlekamp switching game, solved as Fishburn and Sloane did
// in "The solution to Berlekamp's switching game" (1989): try the choices of one
// side, each line of the other then decides for itself. Idea: the numbers of
// presses of 16 lines are 16 nibbles of one word, and each cell of q adds its own
// word to that; so the words of all choices of the last cells are summed up once,
// and for each choice of the others a plain loop goes over them. Complexity:
// 2^(width-1) steps of lines/16 words. Precondition: width and lines odd, width ≤
// lines (boards are turned to have it so).
type gale struct {
	lines, width int
	turned       bool // lines are cross lines of the stored board
	rows         bool // lines are the board's rows
	words        int
	bias         uint64 // added to each nibble, see newGale
}

const nibbles = 0x1111_1111_1111_1111

func newGale(size puzzle.Size) *gale {
	g := &gale{lines: size.Lines(), width: size.Width(), rows: !size.Transposed()}
	if g.lines < g.width {
		g.lines, g.width = g.width, g.lines
		g.turned, g.rows = true, !g.rows
	}
	g.words = (g.lines + 15) / 16
	// With width 2h+1 a line of n presses is kept as n+7-h. Then its inverse is
	// 15 minus that, as if all lines had 15 cells, and its top bit says whether
	// inverting pays.
	g.bias = uint64(7 - g.width/2)
	return g
}

// lastCells is the number of cells of q whose choices are summed up in a table.
const lastCells = 6

// game is the state of one search.
type game struct {
	*gale
	board [puzzle.MaxLines]uint16
	beta  uint16
	count [puzzle.MaxLines / 16]uint64           // presses of each line for q = 0, biased
	delta [maxWidth][puzzle.MaxLines / 16]uint64 // what flipping q(c) adds to count

	// last[w][par][j] is what choice j of the last cells of q adds to count[w]: j
	// are these cells but the last one, which makes their sum par.
	last  [puzzle.MaxLines / 16][2][1 << (lastCells - 1)]uint64
	moves [1 << (lastCells - 1)]uint16 // presses for each choice, biased

	best  found
	least [puzzle.MaxLines]uint16
	trial [puzzle.MaxLines]uint16
}

// find replaces the board in s.presses by its solution.
func (p *game) find(s *solution, beta uint16) {
	p.beta = beta
	p.start(s)
	p.run()
	s.found = p.best
	if p.turned {
		turn(s.presses[:p.width], p.least[:p.lines], p.lines)
	} else {
		copy(s.presses[:], p.least[:p.lines])
	}
}

// turn sets dst to the cross lines of src; dst's lines have the given width.
func turn(dst, src []uint16, width int) {
	for l := range dst {
		dst[l] = 0
		for c, m := range src {
			dst[l] |= m >> (len(dst) - 1 - l) & 1 << (width - 1 - c)
		}
	}
}

// start counts the presses of each line for q = 0, and what each cell of q changes.
func (p *game) start(s *solution) {
	if p.turned {
		turn(p.board[:p.lines], s.presses[:p.width], p.width)
	} else {
		copy(p.board[:p.lines], s.presses[:])
	}
	clear(p.count[:p.words])
	for c := range p.width {
		clear(p.delta[c][:p.words])
	}
	for l, m := range p.board[:p.lines] {
		word, shift := l/16, l%16*4
		p.count[word] += (uint64(bits.OnesCount16(m)) + p.bias) << shift
		for c := range p.width {
			p.delta[c][word] += (1 - 2*uint64(m>>c&1)) << shift // +1, or -1 for a press taken away
		}
	}
	for w := range p.words {
		last := &p.last[w]
		last[0][0], last[1][0] = 0, p.delta[0][w]
		for c := 1; c < min(p.width, lastCells); c++ {
			n := 1 << (c - 1)
			for j := range n {
				last[1][n+j] = last[0][j] + p.delta[c][w]
				last[0][n+j] = last[1][j] + p.delta[c][w]
			}
		}
	}
	p.best.moves = p.lines*p.width + 1
}

// run tries every q whose sum is β. Nibbles carry into each other only on the
// way: a word is the sum of its nibbles times powers of 16, and in the end each
// of them is within 0..15.
func (p *game) run() {
	cells := min(p.width, lastCells)
	moves := p.moves[:1<<(cells-1)]
	constant := p.lines * int(p.bias)
	for first := range 1 << (p.width - cells) {
		parity := (bits.OnesCount(uint(first)) ^ int(p.beta)) & 1
		clear(moves)
		for w, n := range p.count[:p.words] {
			for k := first; k != 0; k &= k - 1 {
				n += p.delta[cells+trailing(k)][w]
			}
			weighLines(moves, n, &p.last[w][parity])
		}
		for j, n := range moves {
			if int(n)-constant <= p.best.moves {
				last := j<<1 | (bits.OnesCount(uint(j))^parity)&1
				p.consider(uint16(first<<cells | last))
			}
		}
	}
}

// weighLines adds to moves the biased presses in 16 lines, given what the last
// cells of q add to n, after inverting each line where that pays. Where an
// inversion too many or too few was made, one more is needed, so it is a lower
// bound.
func weighLines(moves []uint16, n uint64, last *[1 << (lastCells - 1)]uint64) {
	for j := range moves {
		n := n + last[j]
		n ^= (n >> 3 & nibbles) * 15
		sum := n&0x0f0f_0f0f_0f0f_0f0f + n>>4&0x0f0f_0f0f_0f0f_0f0f
		moves[j] += uint16(sum * 0x0101_0101_0101_0101 >> 56) // at most 7·16
	}
}

// consider compares the solutions for q with the best so far.
func (p *game) consider(q uint16) {
	x := p.trial[:p.lines]
	for l, m := range p.board[:p.lines] {
		x[l] = m ^ q
	}
	f := chooseLines(x, p.width, p.beta)
	switch {
	case f.moves < p.best.moves:
		p.best = f
		copy(p.least[:], x)
	case f.moves == p.best.moves:
		p.best.count += f.count
		if p.less(x, p.least[:p.lines]) {
			copy(p.least[:], x)
		}
	}
}

// less reports whether x comes before y in the board's row-major order.
func (p *game) less(x, y []uint16) bool {
	if p.rows {
		return slices.Compare(x, y) < 0
	}
	var differ uint16 // rows in which they differ
	for l := range x {
		differ |= x[l] ^ y[l]
	}
	top := uint16(1) << bits.Len16(differ) >> 1
	for l := range x {
		if (x[l]^y[l])&top != 0 {
			return y[l]&top != 0
		}
	}
	return false
}
