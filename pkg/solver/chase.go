package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

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
	lines    int
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
	c := &chase{lines: size.Lines(), mid: newShifts(stencil[1], width), low: newShifts(stencil[2], width)}

	// Column j of A is the residual of an all-0 board whose first line is just cell j.
	var columns []vector
	var order []int
	for j := range width {
		_, residual := c.pattern(1 << j)
		columns = append(columns, vector{[]uint64{uint64(residual)}, []uint64{1 << j}})
		order = append(order, j)
	}
	pivots := eliminate(columns, order)
	c.fillTables(columns, pivots, width)

	y := newLayout(size)
	var patterns [][]uint64
	for _, v := range columns[len(pivots):] {
		lines, _ := c.pattern(uint16(v.presses[0]))
		patterns = append(patterns, y.packLines(lines))
	}
	c.quiet = newQuiet(y, patterns, limit)

	ones := block{stride: 4, n: 1}
	ones.fill(c.lines, width)
	c.project(&ones)
	c.onesFail = ones.fail[0]
	y.pack(ones.x[:], &ones, 0)
	c.quiet.setOnes(ones.x[:])
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
	var single [puzzle.MaxWidth]uint32 // table entry of each residual bit
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
	for i := range b.n {
		zero, one := b.fail[i] == 0, b.fail[i] == c.onesFail
		if !zero && !one {
			b.blank(i, c.lines)
			continue
		}
		c.quiet.pack(b.x[:], b, i)
		c.quiet.answer(b, i, target, zero, one)
		c.quiet.unpack(b, i, b.x[:])
	}
}

// project replaces every board of the block by a solution for target zero, and
// sets fail where there is none. It is linear: the sum of two boards gets the
// sum of their solutions, also where these are none.
func (c *chase) project(b *block) {
	for i := 0; i < b.n; i += 4 {
		residual := c.drop(b, i, 0, false)
		var first uint64
		for j := range 4 {
			r := uint16(residual >> (16 * j))
			entry := c.first[0][r&255] ^ c.first[1][r>>8]
			first |= uint64(uint16(entry)) << (16 * j)
			b.fail[i+j] = uint16(entry >> 16)
		}
		c.drop(b, i, first, true)
	}
}

// drop chases boards i to i+3 from a first line of presses and returns their
// residuals. With keep it replaces each line by its presses.
func (c *chase) drop(b *block, i int, first uint64, keep bool) (residual uint64) {
	above, here := uint64(0), first
	mid, low := c.mid, c.low
	for k := i; k < c.lines*b.stride; k += b.stride {
		next := b.four(k) ^ mid.of(here) ^ low.of(above)
		if keep {
			b.setFour(k, here)
		}
		above, here = here, next
	}
	return here
}
