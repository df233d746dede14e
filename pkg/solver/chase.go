package solver

import (
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// chase is the kernel for row-chasing rules, where a press touches the line
// before its own only straight above, as with plus.
//
// Source: light chasing, the folklore of Lights Out (POJ 3279 and many others).
// Idea: once the presses of line l are chosen, each cell that line l still shows
// forces the press straight below it; so the first line's presses x decide all,
// and leave in the last line's successor a residual A·x + r(board). Instead of
// trying all x, the width×width matrix A is inverted once: two tables turn the
// residual of x = 0 into the right x, or say that there is none. Complexity: two
// passes over the lines, four boards in one word; what remains are the
// quiet patterns. Precondition: chasable.
type chase struct {
	quiet    *quiet
	classes  *classes // the search, where there is one for the size
	lines    int
	plus     bool           // the stencil is that of plus, for which there is a quicker step
	loose    bool           // solutions are not the least ones yet: the size is transposed, and least is by rows
	mid, low shifts         // what the stencil's middle and lower row toggle
	first    [2][256]uint32 // by residual byte: first line, and above it the failing bits
	onesFail uint16         // failing bits of the all-1 board
}

// chasable reports whether the chase kernel can solve a rule's boards.
func chasable(rule puzzle.Rule, size puzzle.Size) bool {
	return !rule.Torus() && rule.Oriented(size)[0] == 0b010
}

// shifts applies one row of a stencil to four lines in one word. The masks keep
// the cells whose neighbour on that side exists, or none where the stencil has
// no cell there; so nothing is shifted out of a line.
type shifts struct {
	toLeft, self, toRight uint64
}

func newShifts(row uint8, width int) shifts {
	full := uint16(1)<<width - 1
	keep := func(has uint8, mask uint16) uint64 { return lanes(mask & -uint16(has&1)) }
	return shifts{toLeft: keep(row>>2, full>>1), self: keep(row>>1, full), toRight: keep(row, full&^1)}
}

func (s *shifts) of(x uint64) uint64 {
	return (x&s.toLeft)<<1 ^ x&s.self ^ (x&s.toRight)>>1
}

func newChase(rule puzzle.Rule, size puzzle.Size, limit int64) *chase {
	stencil, width := rule.Oriented(size), size.Width()
	c := &chase{lines: size.Lines(), mid: newShifts(stencil[1], width), low: newShifts(stencil[2], width), loose: size.Transposed()}
	c.plus = stencil == [3]uint8{0b010, 0b111, 0b010}

	// Column j of A is the residual of an all-0 board whose first line is just cell j.
	var columns []vector
	var order []int
	for j := range width {
		_, residual := c.pattern(1 << j)
		columns = append(columns, vector{[]uint64{uint64(residual)}, []uint64{1 << j}})
		order = append(order, j)
	}
	pivots := eliminate(columns, order)
	firsts := make([]vector, 0, width) // first lines of quiet patterns
	for _, v := range columns[len(pivots):] {
		firsts = append(firsts, vector{cells: v.presses})
	}
	slices.Reverse(order) // from here on as in the text of a row
	for i, p := range eliminate(firsts, order) {
		for _, v := range columns[:len(pivots)] {
			if bit(v.presses, p) {
				add(v.presses, firsts[i].cells)
			}
		}
	}
	c.fillTables(columns, pivots, width)

	y := newLayout(size)
	var patterns [][]uint64
	for _, v := range firsts {
		lines, _ := c.pattern(uint16(v.cells[0]))
		patterns = append(patterns, y.packLines(lines))
	}
	c.quiet = newQuiet(y, patterns, limit)

	ones := block{n: 1, masks: make([]uint16, size.Lines()*blockBoards)}
	ones.fill(c.lines, width)
	c.project(&ones)
	c.onesFail = ones.fail[0]
	y.pack(ones.x[:], &ones, 0)
	c.quiet.setOnes(ones.x[:])
	c.quiet.setOnesLines()
	if !c.loose {
		c.classes = newClasses(c.quiet)
	}
	return c
}

// pattern returns the presses that a first line forces on an all-0 board, and
// the residual.
func (c *chase) pattern(first uint16) (lines []uint16, residual uint16) {
	above, here := uint64(0), uint64(first)
	for range c.lines {
		lines = append(lines, uint16(here))
		above, here = here, c.mid.of(here)^c.low.of(above)
	}
	return lines, uint16(here)
}

// fillTables sets first from the reduced columns of A. A residual is cleared by
// the presses of every column whose pivot it has; what that leaves are bits that
// are no pivot, and these fail.
func (c *chase) fillTables(columns []vector, pivots []int, width int) {
	var single [maxWidth]uint32 // table entry of each residual bit
	var pivotBits uint16
	for _, p := range pivots {
		pivotBits |= 1 << p
	}
	for p := range width {
		single[p] = uint32(1) << (16 + p)
	}
	for i, p := range pivots {
		fail := uint16(columns[i].cells[0]) &^ pivotBits
		single[p] = uint32(columns[i].presses[0]) | uint32(fail)<<16
	}
	for half := range c.first {
		for v := 1; v < 256; v++ {
			low := v & -v
			c.first[half][v] = c.first[half][v^low] ^ single[half*8+trailing(low)]
		}
	}
}

// solve answers the boards of the block.
func (c *chase) solve(b *block, target puzzle.Target) {
	c.project(b)
	if c.quiet.nullity() == 0 {
		c.quiet.straight(b, target)
		return
	}
	b.reset()
	c.blank(b, target)
	if c.classes != nil {
		c.classes.solve(b, target, c.onesFail)
		return
	}
	for i := range b.n {
		zero, one := b.fail[i] == 0, b.fail[i] == c.onesFail
		if !zero && !one {
			continue
		}
		c.quiet.pack(b.x[:], b, i)
		if c.loose {
			c.quiet.normalise(b.x[:c.quiet.words])
		}
		c.quiet.answer(b, i, b.x[:], b.y[:], target, zero, one)
		c.quiet.unpack(b, i, b.x[:])
	}
}

// blank makes boards that cannot reach the target all 0.
func (c *chase) blank(b *block, target puzzle.Target) {
	zero, one := uint16(0), c.onesFail
	switch target {
	case puzzle.Zero:
		one = zero
	case puzzle.One:
		zero = one
	}
	var keep column[uint16]
	for i, fail := range b.fail {
		// One less than 0 is all there is to tell the boards apart by.
		keep[i] = uint16((int32(fail^zero)-1)>>31 | (int32(fail^one)-1)>>31)
	}
	for l := range c.lines {
		and(b.line(l), &keep)
	}
}

// project replaces every board of the block by a solution for target zero, the
// least one unless c.loose, and sets fail where there is none. It is linear: the
// sum of two boards gets the sum of their solutions, also where these are none.
func (c *chase) project(b *block) {
	clear(b.here[:])
	clear(b.above[:])
	for l := range c.lines {
		c.step(b.line(l), &b.above, &b.above, &b.here)
	}
	for i, residual := range b.here {
		entry := c.first[0][residual&255] ^ c.first[1][residual>>8]
		b.here[i], b.fail[i] = uint16(entry), uint16(entry>>16)
	}
	above := &b.none
	for l := range c.lines {
		line := b.line(l)
		c.step(line, above, line, &b.here)
		above = line
	}
}

// step goes from one line to the next, with the presses of the line above it and
// of the line itself, here: it puts these into presses and those that the line
// then forces into here.
func (c *chase) step(line, above, presses, here *column[uint16]) {
	if c.plus {
		stepPlus(c.mid.toLeft<<1, c.mid.toRight>>1, line, above, presses, here)
		return
	}
	mid, low := c.mid, c.low
	for i := 0; i < len(line); i += 4 {
		x := four(here[i : i+4])
		next := four(line[i:i+4]) ^ mid.of(x) ^ low.of(four(above[i:i+4]))
		setFour(presses[i:i+4], x)
		setFour(here[i:i+4], next)
	}
}

// stepPlus is step for plus, given where presses to the right and to the left
// may toggle a cell.
func stepPlus(right, left uint64, line, above, presses, here *column[uint16]) {
	_, _, _, _ = line[0], above[0], presses[0], here[0] // so the loop need not check for nil
	for i := 0; i < len(line); i += 4 {
		x := four(here[i : i+4])
		next := four(line[i:i+4]) ^ x ^ x<<1&right ^ x>>1&left ^ four(above[i:i+4])
		setFour(presses[i:i+4], x)
		setFour(here[i:i+4], next)
	}
}
