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
// side, each line of the other then decides for itself. Idea: q runs through a
// Gray code, two cells at a time to keep Σq; the number of presses of 16 lines
// are 16 nibbles of one word, and one step adds a word. Complexity: 2^(width-1)
// steps of lines/16 words. Precondition: width and lines odd, width ≤ lines
// (boards are turned to have it so).
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

// game is the state of one search.
type game struct {
	*gale
	board [puzzle.MaxLines]uint16
	beta  uint16
	delta [puzzle.MaxWidth][puzzle.MaxLines / 16]uint64 // what flipping q(c) adds to count; negated by each flip
	count [puzzle.MaxLines / 16]uint64                  // presses of each line, biased

	best  found
	least [puzzle.MaxLines]uint16
	trial [puzzle.MaxLines]uint16
}

// find replaces the board in s.presses by its solution.
func (g *gale) find(s *solution, beta uint16) {
	var play game
	play.gale, play.beta = g, beta
	play.start(s)
	play.run()
	s.found = play.best
	if g.turned {
		turn(s.presses[:g.width], play.least[:g.lines], g.lines)
	} else {
		copy(s.presses[:], play.least[:g.lines])
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

// start counts the presses of each line for q = β in the last cell only.
func (p *game) start(s *solution) {
	if p.turned {
		turn(p.board[:p.lines], s.presses[:p.width], p.width)
	} else {
		copy(p.board[:p.lines], s.presses[:])
	}
	for l, m := range p.board[:p.lines] {
		word, shift := l/16, l%16*4
		p.count[word] += (uint64(bits.OnesCount16(m^p.beta)) + p.bias) << shift
		for c := range p.width {
			p.delta[c][word] += (1 - 2*uint64((m^p.beta)>>c&1)) << shift // +1, or -1 for a press taken away
		}
	}
	p.best.moves = p.lines*p.width + 1
}

// run tries every q, ending with the one that start counted. Each step flips q
// in the last cell and in the one that a cyclic Gray code of the others names.
// Nibbles carry into each other only on the way: a word is the sum of its
// nibbles times powers of 16, and in the end each of them is within 0..15.
func (p *game) run() {
	if p.width == 1 {
		p.consider(p.beta)
		return
	}
	q := p.beta
	counts := p.count[:p.words]
	constant := p.lines * int(p.bias)
	for step := 1; step <= 1<<(p.width-1); step++ {
		c := 1 + min(trailing(step), p.width-2)
		q ^= 1 | 1<<c
		last, other := p.delta[0][:len(counts)], p.delta[c][:len(counts)]
		var sum, inverted uint64
		for w, n := range counts {
			n += last[w] + other[w]
			counts[w], last[w], other[w] = n, -last[w], -other[w]
			top := n >> 3 & nibbles
			inverted ^= top
			n ^= top * 15
			sum += n&0x0f0f_0f0f_0f0f_0f0f + n>>4&0x0f0f_0f0f_0f0f_0f0f
		}
		sum = sum&0x00ff_00ff_00ff_00ff + sum>>8&0x00ff_00ff_00ff_00ff
		moves := int(sum*0x0001_0001_0001_0001>>48) - constant
		wrong := (bits.OnesCount64(inverted) ^ int(p.beta)) & 1 // then a line must be inverted back, which costs at least 1
		if moves+wrong <= p.best.moves {
			p.consider(q)
		}
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
