package solver

import (
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// fridge is the kernel for the fridge rule.
//
// Source: POJ 2965; the odd×odd case is the Gale-Berlekamp switching game. Idea:
// let x be the presses, p(l) the parity of x in line l and q(c) that of x in cell
// c of all lines. A press toggles its line and its cross line, itself once, so x
// clears board b exactly when
//
//	x(l,c) = b(l,c) + p(l) + q(c)
//
// and what is left is to find parities that agree with this x. Summing it over a
// line gives (1+width)·p(l) = β(l) + Σq with β(l) the parity of b in line l, and
// over a cross line (1+lines)·q(c) = δ(c) + Σp. Hence four cases:
//
//	width  lines
//	even   even   p and q are determined, and x is what pressing b itself toggles
//	odd    even   all β must equal Σq, then q(c) = δ(c) + β; the p are free but for Σp = β
//	even   odd    the same with lines and cells exchanged
//	odd    odd    all β and δ must be equal; p and q are free but for Σp = Σq = β: see gale
//
// Free parities are chosen one by one: p(l) = 1 inverts line l of x, which pays
// where more than half of the line is pressed; that is never exactly half, as the
// line is odd. If then Σp is wrong the cheapest line is inverted back, see repair.
// Complexity: linear but for odd×odd. Precondition: none; never Unproven.
type fridge struct {
	size    puzzle.Size
	nullity int
	gale    *gale // for odd×odd
}

// smallFridge reports whether the linear kernel is the quicker one for the
// fridge rule: one word, and nothing to search.
func smallFridge(size puzzle.Size) bool {
	return size.Cells() <= wordCells && size.Rows%2 == 0 && size.Cols%2 == 0
}

func newFridge(size puzzle.Size) *fridge {
	f := &fridge{size: size}
	if size.Rows%2 == 1 {
		f.nullity += size.Cols - 1
	}
	if size.Cols%2 == 1 {
		f.nullity += size.Rows - 1
	}
	if size.Rows%2 == 1 && size.Cols%2 == 1 {
		f.gale = newGale(size)
	}
	return f
}

// solution is what the fridge kernel finds for one board; moves is -1 where
// there is none.
type solution struct {
	found
	presses [puzzle.MaxLines]uint16
}

// solve answers the boards of the block.
func (f *fridge) solve(b *block, target puzzle.Target) {
	if f.gale == nil {
		f.solveWith(nil, b, target)
		return
	}
	play := game{gale: f.gale} // large, so it serves all boards
	f.solveWith(&play, b, target)
}

func (f *fridge) solveWith(play *game, b *block, target puzzle.Target) {
	b.reset()
	lines := f.size.Lines()
	full := uint16(1)<<f.size.Width() - 1
	var zero, one solution
	for i := range b.n {
		for l := range lines {
			m := b.masks[l*blockBoards+i]
			zero.presses[l], one.presses[l] = m, m^full
		}
		zero.moves, one.moves = -1, -1
		if target != puzzle.One {
			f.find(&zero, play)
		}
		if target != puzzle.Zero {
			f.find(&one, play)
		}
		best, reached := &zero, puzzle.Zero
		if one.moves >= 0 && (zero.moves < 0 || one.moves < zero.moves) {
			best, reached = &one, puzzle.One
		}
		if best.moves < 0 {
			b.blank(i, lines)
			continue
		}
		b.answer(i, puzzle.Solved, best.found, reached)
		for l, m := range best.presses[:lines] {
			b.masks[l*blockBoards+i] = m
		}
	}
}

// parities are those of a board: of each line, and of each cell over all lines.
type parities struct {
	lines     [puzzle.MaxLines]uint16 // 0 or 1
	cells     uint16
	sameLines bool // all lines have the same
	sameCells bool
}

func (p *parities) of(board []uint16, full uint16) {
	p.cells = 0
	differ := uint16(0)
	for l, m := range board {
		p.lines[l] = uint16(bits.OnesCount16(m) & 1)
		differ |= p.lines[l] ^ p.lines[0]
		p.cells ^= m
	}
	p.sameLines = differ == 0
	p.sameCells = p.cells == 0 || p.cells == full
}

// find replaces the board in s.presses by its solution.
func (f *fridge) find(s *solution, play *game) {
	x := s.presses[:f.size.Lines()]
	full := uint16(1)<<f.size.Width() - 1
	var p parities
	p.of(x, full)
	oddWidth, oddLines := f.size.Width()%2 == 1, len(x)%2 == 1
	if oddWidth && !p.sameLines || oddLines && !p.sameCells {
		return
	}
	switch {
	case oddWidth && oddLines:
		play.find(s, p.lines[0])
	case oddWidth:
		for l := range x {
			x[l] ^= p.cells ^ -p.lines[0]&full
		}
		s.found = chooseLines(x, f.size.Width(), p.lines[0])
	case oddLines:
		for l := range x {
			x[l] ^= -(p.lines[l] ^ p.cells&1) & full
		}
		s.found = chooseCells(x, f.size.Width(), p.cells&1)
	default:
		s.found = found{count: 1}
		for l := range x {
			x[l] ^= p.cells ^ -p.lines[l]&full
			s.moves += bits.OnesCount16(x[l])
		}
	}
}

// repair chooses, among lines whose inversion costs equally little, the one that
// gives the least solution, given as pairs in line order. Candidates inverting
// lines l < m differ first in the first cell of l: that of the other is as it
// was. So the first line that begins with a press is best, as inverting it takes
// that press away; where no line begins with a press, each inversion adds one,
// and the last line is best. The same holds where lines are columns of the
// board: then inverting l or m changes the first row in cell l or m. It remains
// true with cells in the place of lines.
type repair struct {
	cost   int // presses that the inversion adds
	at     int // the line
	begins bool
	count  int64
}

// offer tells of the next line: what its inversion costs and whether it begins
// with a press.
func (r *repair) offer(at, cost int, begins bool) {
	switch {
	case r.count == 0 || cost < r.cost:
		*r = repair{cost: cost, at: at, begins: begins, count: 1}
	case cost == r.cost:
		if !r.begins {
			r.at, r.begins = at, begins
		}
		r.count++
	}
}

// chooseLines inverts lines of x, in number of the given parity, so that the
// presses are fewest and the solution the least of these. The width is odd.
func chooseLines(x []uint16, width int, parity uint16) found {
	full := uint16(1)<<width - 1
	moves := 0
	var r repair
	for l, m := range x {
		n := bits.OnesCount16(m)
		if 2*n > width {
			x[l], n, parity = m^full, width-n, parity^1
		}
		moves += n
		r.offer(l, width-2*n, x[l]>>(width-1) != 0)
	}
	if parity == 0 {
		return found{moves, 1}
	}
	x[r.at] ^= full
	return found{moves + r.cost, r.count}
}

// chooseCells is chooseLines for cells: it inverts cell c of all lines, which
// are odd in number.
func chooseCells(x []uint16, width int, parity uint16) found {
	moves := 0
	var r repair
	var invert uint16
	for c := width - 1; c >= 0; c-- {
		n := 0
		for _, m := range x {
			n += int(m >> c & 1)
		}
		begins := x[0]>>c&1 != 0
		if 2*n > len(x) {
			invert |= 1 << c
			n, begins, parity = len(x)-n, !begins, parity^1
		}
		moves += n
		r.offer(c, len(x)-2*n, begins)
	}
	f := found{moves, 1}
	if parity != 0 {
		invert ^= 1 << r.at
		f = found{moves + r.cost, r.count}
	}
	for l := range x {
		x[l] ^= invert
	}
	return f
}
