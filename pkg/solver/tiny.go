package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

// tiny is the kernel for boards of at most 16 cells: it has the answers to all
// of them, made with another kernel.
//
// Idea: a board is a number, whose bits are its cells. Complexity: one look-up,
// in a table of 256 KB; a millisecond to make it. Precondition: see newTiny.
type tiny struct {
	layout
	answers [1 << tinyCells]tinyAnswer // to target zero, by board
}

// tinyAnswer is a solution; from bit 16 on its presses, in bit 21 whether there
// is none, and from bit 22 on how many have as few presses.
type tinyAnswer uint32

// tinyCells and tinyNullity bound what a tinyAnswer can hold.
const (
	tinyCells   = 16
	tinyNullity = 8
)

// newTiny returns nil where s has boards that are too large, or answers that are
// not proved.
func newTiny(s *Solver) *tiny {
	cells := s.size.Cells()
	if cells > tinyCells || s.nullity > tinyNullity || s.linear != nil && !s.linear.quiet.proven {
		return nil
	}
	t := &tiny{layout: newLayout(s.size)}
	var answers puzzle.Answers
	boards := puzzle.NewRun(s.size, 1<<min(cells, 10)) // few at a time take less memory
	n, full := boards.Count, uint16(1)<<t.width-1
	for first := 0; first < 1<<cells; first += n {
		for l := range t.lines {
			line, shift := boards.Masks[l*n:][:n], (t.lines-1-l)*t.width
			for i := range line {
				line[i] = uint16((first+i)>>shift) & full
			}
		}
		s.Solve(&answers, boards, puzzle.Zero)
		out := t.answers[first:][:n]
		for i, status := range answers.Status {
			out[i] = tinyAnswer(answers.MinMoves[i])<<16 | tinyAnswer(status)<<21 | tinyAnswer(answers.OptimalCount[i])<<22
		}
		for l := range t.lines {
			line, shift := answers.Solutions.Masks[l*n:][:n], (t.lines-1-l)*t.width
			for i, m := range line {
				out[i] |= tinyAnswer(m) << shift
			}
		}
	}
	return t
}

// solve answers the boards of the block, of which it reads the lines from in and
// writes those of the solutions to out.
func (t *tiny) solve(b *block, out, in []uint16, stride int, target puzzle.Target) {
	x := &b.words.pieces
	clear(x[:])
	for l := range t.lines {
		join(x, t.width, (*column[uint16])(in[l*stride:]))
	}
	ones := uint16(1<<(t.lines*t.width) - 1)
	switch target {
	case puzzle.Zero:
		t.lookUp(b, x, 0)
		clear(b.reached[:])
	case puzzle.One:
		t.lookUp(b, x, ones)
		for i, status := range b.status {
			b.reached[i] = puzzle.One &^ puzzle.Target(status)
		}
	case puzzle.Either:
		t.lookUpBoth(b, x, ones)
	}
	t.split(out, stride, x, t.lines-1, 0)
}

// join appends a line of the given width to each of x.
//
//go:noinline
func join(x *column[uint16], width int, line *column[uint16]) {
	_, _ = x[0], line[0] // so the loop need not check for nil
	width &= 15
	for i := 0; i < len(x); i += 4 {
		setFour(x[i:i+4], four(x[i:i+4])<<width|four(line[i:i+4]))
	}
}

// lookUp replaces boards by solutions, after toggling some cells.
func (t *tiny) lookUp(b *block, x *column[uint16], toggled uint16) {
	status, moves, count := b.status, b.moves, b.count
	_, _, _, _ = x[0], status[0], moves[0], count[0]
	for i := range x {
		a := t.answers[x[i]^toggled]
		x[i] = uint16(a)
		status[i], moves[i], count[i] = puzzle.Status(a>>21&1), int32(a>>16&31), int64(a>>22)
	}
}

// lookUpBoth is lookUp for boards as they are or with the cells toggled,
// whichever needs fewer presses.
func (t *tiny) lookUpBoth(b *block, x *column[uint16], toggled uint16) {
	status, moves, count, reached := b.status, b.moves, b.count, b.reached
	_, _, _, _, _ = x[0], status[0], moves[0], count[0], reached[0]
	for i := range x {
		a, other := t.answers[x[i]], t.answers[x[i]^toggled]
		fewer := (int32(other>>16&63) - int32(a>>16&63)) >> 31 // with the bit that says there is none
		a ^= (a ^ other) & tinyAnswer(fewer)
		x[i] = uint16(a)
		status[i], moves[i], count[i] = puzzle.Status(a>>21&1), int32(a>>16&31), int64(a>>22)
		reached[i] = puzzle.Target(fewer & 1)
	}
}
