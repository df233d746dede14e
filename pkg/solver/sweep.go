package solver

import (
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// sweep is the kernel for any stencil, with lines of up to 64 cells.
//
// Source: light chasing as in chase, made general. Idea: the stencil's first row
// that has any cells, its lead, is the last chance to toggle a line. So what a line
// of the board still shows forces the presses of the line whose lead meets it. Where
// lead is not one to one, some presses remain unknown (hidden), and some lines
// cannot be cleared (checks). All that is unknown is the hidden presses and the
// lines before the first one that is forced; all that these have to fulfil, the
// residual, is the checks and what is left when there is no line to be forced any
// more, or, on a torus, that the lines behind the last one are the first ones again.
// This system is inverted once: as in chase, it turns the residual of a board whose
// unknowns are 0 into the right ones, or says that there are none. Complexity: two
// passes over the lines, each a word; the elimination is cubic in the width plus, for
// stencils with hidden presses, the lines. Precondition: not fridge.
type sweep struct {
	quiet     *quiet
	lineMasks int
	torus     bool
	rows      [3]reach // what the rows of the stencil toggle, upper first
	lead, low int      // the first and the last row with cells; but low is never the upper one

	forced [8][256]uint64 // by byte of what lead is to toggle: presses that do
	hidden []uint64       // sets of presses that lead does not show
	checks []uint64       // as many sets of cells, of which lead toggles an even number

	// Unknowns and residuals are a word for each line, then a bit for each hidden set,
	// or check, of each line that is forced.
	starts, ends       int // lines
	unknowns, residual int // words
	system             *inverse
	onesFail           []uint64 // failing bits of the all-1 board
}

// maxUnknowns is the most words of unknowns, of a residual, and of failing bits.
const maxUnknowns = 2 + 2*puzzle.MaxLines/64

// reach applies one row of a stencil to a line. The masks keep the cells whose
// neighbour on that side exists, those at the edge of a torus apart.
type reach struct {
	toLeft, self, toRight, wrapLeft, wrapRight uint64
	across                                     int // from edge to edge
}

func newReach(row uint8, width int, torus bool) reach {
	full := ^uint64(0) >> (64 - width)
	keep := func(has uint8, mask uint64) uint64 { return mask & -uint64(has&1) }
	r := reach{toLeft: keep(row>>2, full>>1), self: keep(row>>1, full), toRight: keep(row, full&^1), across: width - 1}
	if torus {
		r.wrapLeft, r.wrapRight = keep(row>>2, full&^(full>>1)), keep(row, 1)
	}
	return r
}

func (r *reach) of(x uint64) uint64 {
	across := r.across & 63
	return x&r.toLeft<<1 ^ x&r.self ^ x&r.toRight>>1 ^ x&r.wrapLeft>>across ^ x&r.wrapRight<<across
}

func newSweep(rule puzzle.Rule, size puzzle.Size, limit int64) *sweep {
	y := newLayout(size)
	s := &sweep{lineMasks: size.LineMasks(), torus: rule.Torus(), lead: 3}
	for d, row := range rule.Oriented(size) {
		s.rows[d] = newReach(row, y.width, s.torus)
		if row != 0 {
			s.lead, s.low = min(s.lead, d), max(d, 1)
		}
	}
	s.invertLead(y.width)
	s.invertSystem(&y)

	lines, none := make([]uint64, y.lines), make([]uint64, y.lines)
	residual := make([]uint64, s.residual)
	var patterns [][]uint64
	for _, unknowns := range s.system.kernel {
		s.run(lines, none, unknowns, residual)
		patterns = append(patterns, y.join(make([]uint64, y.words), lines))
	}
	s.quiet = newQuiet(y, patterns, limit)

	ones := make([]uint64, y.lines)
	for l := range ones {
		ones[l] = fullLine(y.width)
	}
	var work sweepWork
	s.onesFail = append(s.onesFail, s.project(&work, ones)...)
	s.quiet.setOnes(y.join(make([]uint64, y.words), work.presses[:y.lines]))
	return s
}

// fullLine returns a line of the given width with all cells 1.
func fullLine(width int) uint64 { return ^uint64(0) >> (64 - width) }

// invertLead sets forced, hidden and checks.
func (s *sweep) invertLead(width int) {
	var columns []vector
	var order []int
	for p := range width {
		columns = append(columns, vector{[]uint64{s.rows[s.lead].of(1 << p)}, []uint64{1 << p}})
		order = append(order, p)
	}
	lead := invert(columns, order)
	for _, presses := range lead.kernel {
		s.hidden = append(s.hidden, presses[0])
	}
	s.checks = make([]uint64, len(s.hidden)) // as many, because lead maps a line to a line
	for p := range width {
		for j := range s.checks {
			s.checks[j] |= lead.entries[p][1] >> j & 1 << p
		}
	}
	for k := range s.forced {
		for v := 1; v < 256; v++ {
			low := v & -v
			s.forced[k][v] = s.forced[k][v^low]
			if p := k*8 + trailing(low); p < width {
				s.forced[k][v] ^= lead.entries[p][0]
			}
		}
	}
}

// invertSystem finds out which residual each of the unknowns makes of an all-0 board.
func (s *sweep) invertSystem(y *layout) {
	forced := y.lines
	switch {
	case s.torus:
		s.starts, s.ends = s.low-s.lead, s.low-s.lead
	case s.lead != 1:
		s.starts, s.ends, forced = 1, 1, y.lines-1
	}
	bits := forced * len(s.hidden)
	s.unknowns, s.residual = s.starts+(bits+63)/64, s.ends+(bits+63)/64

	positions := make([]int, 0, s.starts*y.width+bits)
	for l := range s.starts {
		for p := range y.width {
			positions = append(positions, l*64+p)
		}
	}
	for k := range bits {
		positions = append(positions, s.starts*64+k)
	}
	var columns []vector
	presses, none := make([]uint64, y.lines), make([]uint64, y.lines)
	for _, p := range positions {
		v := vector{cells: make([]uint64, s.residual), presses: make([]uint64, s.unknowns)}
		toggle(v.presses, p)
		s.run(presses, none, v.presses, v.cells)
		columns = append(columns, v)
	}
	s.system = invert(columns, positions) // there are as many equations, at the same places
}

// run sets presses to what the unknowns force on the board, and the residual.
//
// Entry i of its list is line i+1-low of the board. To line e of the board, lead
// brings what is in entry e+span, and the other rows what is in the span entries
// before. Beyond the edges there are no presses, but on a torus.
func (s *sweep) run(presses, board, unknowns, residual []uint64) {
	clear(residual)
	var list [puzzle.MaxLines + 2]uint64
	span := s.low - s.lead
	for i := range span {
		if s.torus {
			list[i] = unknowns[i]
		} else if i == s.low-1 {
			list[i] = unknowns[0]
		}
	}
	forced := 0
	for e, show := range board {
		for j := range span {
			show ^= s.rows[s.low-j].of(list[e+j])
		}
		if l := e + 1 - s.lead; !s.torus && (l < 0 || l == len(board)) {
			residual[0] = show
			continue
		}
		list[e+span] = s.force(show, forced, unknowns, residual)
		forced++
	}
	if s.torus {
		for j := range span {
			residual[j] = list[j] ^ list[len(board)+j]
		}
		for l := range presses {
			presses[l] = list[(l+s.low-1)%len(presses)]
		}
		return
	}
	copy(presses, list[s.low-1:])
	if s.lead == 2 { // nobody sees the last line's presses
		presses[len(presses)-1] = unknowns[0]
	}
}

// force returns the presses of the next line, before which so many have been forced:
// those of which lead toggles what the board shows, and hidden ones.
func (s *sweep) force(show uint64, before int, unknowns, residual []uint64) uint64 {
	presses := uint64(0)
	for k, v := 0, show; v != 0; k, v = k+1, v>>8 {
		presses ^= s.forced[k][byte(v)]
	}
	for j, check := range s.checks {
		k := before*len(s.checks) + j
		if bits.OnesCount64(show&check)&1 == 1 {
			toggle(residual, s.ends*64+k)
		}
		if bit(unknowns, s.starts*64+k) {
			presses ^= s.hidden[j]
		}
	}
	return presses
}

// sweepWork is the working memory for a board.
type sweepWork struct {
	board, presses     [puzzle.MaxLines]uint64 // lines
	x, y               [puzzle.MaxLines]uint64 // packed
	residual, unknowns [maxUnknowns]uint64
	out                [2 * maxUnknowns]uint64
}

// project sets the work's presses to a solution for target zero, and returns the
// failing bits, which are not 0 where there is none. It is linear, as that of chase.
func (s *sweep) project(work *sweepWork, board []uint64) (fail []uint64) {
	presses := work.presses[:len(board)]
	unknowns, residual := work.unknowns[:s.unknowns], work.residual[:s.residual]
	clear(unknowns)
	s.run(presses, board, unknowns, residual)
	out := work.out[:s.unknowns+s.system.failing]
	s.system.of(out, residual)
	s.run(presses, board, out[:s.unknowns], residual)
	return out[s.unknowns:]
}

// solve answers the boards of the block. It reads their lines from in and writes
// those of the solutions to out, stride masks apart.
func (s *sweep) solve(b *block, out, in []uint16, stride int, target puzzle.Target) {
	var work sweepWork
	y := &s.quiet.layout
	board := work.board[:y.lines]
	b.reset()
	for i := range b.n {
		s.load(board, in[i:], stride)
		fail := s.project(&work, board)
		zero, one := true, true
		for w, bits := range fail {
			zero, one = zero && bits == 0, one && bits == s.onesFail[w]
		}
		if zero || one {
			x := y.join(work.x[:y.words], work.presses[:y.lines])
			s.quiet.normalise(x)
			s.quiet.answer(b, i, x, work.y[:], target, zero, one)
			y.part(board, x)
		} else {
			clear(board)
		}
		s.store(out[i:], board, stride)
	}
}

// load puts the lines together from their masks.
func (s *sweep) load(lines []uint64, masks []uint16, stride int) {
	last, k := s.lastWidth(), 0
	for l := range lines {
		line := uint64(0)
		for range s.lineMasks - 1 {
			line = line<<maxWidth | uint64(masks[k])
			k += stride
		}
		lines[l] = line<<last | uint64(masks[k])
		k += stride
	}
}

// store is the inverse of load.
func (s *sweep) store(masks []uint16, lines []uint64, stride int) {
	last, k := s.lastWidth(), 0
	for _, line := range lines {
		for m := s.lineMasks - 2; m >= 0; m-- {
			masks[k] = uint16(line >> (last + m*maxWidth))
			k += stride
		}
		masks[k] = uint16(line & (1<<last - 1))
		k += stride
	}
}

// lastWidth returns the number of cells in the last mask of a line.
func (s *sweep) lastWidth() int { return s.quiet.width - (s.lineMasks-1)*maxWidth }
