package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

// linear is the kernel for any rule: a press toggles fixed cells, so boards and
// presses are vectors over GF(2) and the map from a board to a solution is linear.
//
// Source: Anderson and Feil, Turning Lights Out with Linear Algebra (1998).
// Idea: one elimination per rule and size gives, for each cell, the presses it
// contributes to the solution, and the consistency checks it takes part in.
// Tables hold the sums of these for every value of a piece of a line, so that a
// board costs one lookup for each piece. Complexity: lookups × words of a packed
// board; the elimination is cubic in the cells. Precondition: none.
type linear struct {
	quiet    *quiet
	bits     int      // most cells in a piece
	pieces   []piece  // of all lines
	row      int      // words in a table entry: packed presses, and the checks above or behind them
	table    []uint64 // entry of piece p and value v at (p<<bits+v)*row
	onesTail []uint64 // the words with checks, for the all-1 board

	// Where row is 1, instead of bits and table; see words.go.
	tables   []pieceTable // of each piece
	outcomes *outcomes    // nil where there are too many
}

// piece is a part of a line: its line and lowest bit; or, in words, two lines.
type piece struct {
	line, shift, lines int
}

// Cells in a piece: a byte while the tables of 16×16 stay at 400 KB, a nibble
// beyond (16 MB at 256×16); more in words, see there.
const (
	smallBits     = 8
	largeBits     = 4
	smallMaxWords = 4
	wordBits      = 10
)

func newLinear(rule puzzle.Rule, size puzzle.Size, limit int64) *linear {
	y := newLayout(size)
	columns := pressEffects(rule, size, &y)
	pivots := eliminate(columns, y.order)
	rank := len(pivots)

	var patterns [][]uint64
	for _, v := range columns[rank:] {
		patterns = append(patterns, v.presses)
	}
	k := &linear{quiet: newQuiet(y, patterns, limit), bits: smallBits}
	if y.words > smallMaxWords {
		k.bits = largeBits
	}
	single := k.contributions(columns[:rank], pivots)
	ones := block{n: 1, masks: make([]uint16, size.Lines()*blockBoards)}
	ones.fill(y.lines, y.width)
	out := make([]uint64, k.row)
	if k.row == 1 {
		k.fillTables(single)
		k.lookUpAll(&ones.words.zero, ones.masks, blockBoards)
		out[0] = ones.words.zero[0]
	} else {
		k.fillTable(single)
		k.lookUp(out, &ones, 0)
	}
	k.onesTail = append(k.onesTail, out[y.words-1:]...)
	k.quiet.setOnes(k.presses(out))
	if k.row == 1 {
		k.outcomes = newOutcomes(k.quiet)
	}
	return k
}

// pressEffects returns, for every cell, what a press there toggles.
func pressEffects(rule puzzle.Rule, size puzzle.Size, y *layout) []vector {
	n := size.Cells()
	boards, presses := puzzle.NewRun(size, n), puzzle.NewRun(size, n)
	for i := range n {
		presses.SetCell(i, i/size.Cols, i%size.Cols)
	}
	rule.Press(boards, presses)
	columns := make([]vector, n)
	lines := make([]uint16, y.lines)
	pick := func(r puzzle.Run, i int) []uint64 {
		for l := range lines {
			lines[l] = r.Masks[l*n+i]
		}
		return y.packLines(lines)
	}
	for i := range columns {
		columns[i] = vector{cells: pick(boards, i), presses: pick(presses, i)}
	}
	return columns
}

// contributions returns the table entry of each single cell, by position. A
// board is cleared by the presses of each column whose pivot it has; what that
// leaves are cells that are no pivot, and these are the checks: check j is the
// j-th such cell. Checks share the last word of the presses where they fit.
func (k *linear) contributions(columns []vector, pivots []int) [][]uint64 {
	y := &k.quiet.layout
	checks := k.quiet.nullity()
	base := (y.words-1)*64 + y.lastBits()
	if y.lastBits()+checks > 64 {
		base = y.words * 64
	}
	k.row = max(y.words, (base+checks+63)/64)

	pivot := make([]bool, y.words*64)
	for _, p := range pivots {
		pivot[p] = true
	}
	single := make([][]uint64, y.words*64)
	var loose []int // positions of the cells that are no pivot
	for _, p := range y.order {
		single[p] = make([]uint64, k.row)
		if !pivot[p] {
			toggle(single[p], base+len(loose))
			loose = append(loose, p)
		}
	}
	for i, p := range pivots {
		copy(single[p], columns[i].presses)
		k.quiet.normalise(single[p][:y.words])
		for j, cell := range loose {
			if bit(columns[i].cells, cell) {
				toggle(single[p], base+j)
			}
		}
	}
	return single
}

// fillTable makes the tables from the entries of single cells.
func (k *linear) fillTable(single [][]uint64) {
	y := &k.quiet.layout
	for line := range y.lines {
		lowest := y.position(line, y.width-1)
		for shift := 0; shift < y.width; shift += k.bits {
			k.pieces = append(k.pieces, piece{line, shift, 1})
			start := len(k.table)
			k.table = append(k.table, make([]uint64, k.row<<k.bits)...)
			entry := func(v int) []uint64 { return k.table[start+v*k.row:][:k.row] }
			for v := 1; v < 1<<min(k.bits, y.width-shift); v++ {
				low := v & -v
				copy(entry(v), entry(v^low))
				add(entry(v), single[lowest+shift+trailing(low)])
			}
		}
	}
}

// solve answers the boards of the block, which are more than one word with
// their checks.
func (k *linear) solve(b *block, target puzzle.Target) {
	var wide [2 * maxWords]uint64 // checks may take as many words as the board
	out := wide[:k.row]
	b.reset()
	for i := range b.n {
		k.lookUp(out, b, i)
		zero, one := k.solvable(out)
		if !zero && !one {
			b.blank(i, k.quiet.lines)
			continue
		}
		copy(b.x[:], k.presses(out))
		k.quiet.answer(b, i, b.x[:], b.y[:], target, zero, one)
		k.quiet.unpack(b, i, b.x[:])
	}
}

// lookUp sets out to the presses and failing checks of board i.
func (k *linear) lookUp(out []uint64, b *block, i int) {
	mask := 1<<k.bits - 1
	clear(out)
	for p, at := range k.pieces {
		v := int(b.masks[at.line*blockBoards+i]>>(at.shift&15)) & mask
		add(out, k.table[(p<<(k.bits&15)|v)*k.row:])
	}
}

// solvable reports whether the board that out was looked up for can reach zero,
// and one.
func (k *linear) solvable(out []uint64) (zero, one bool) {
	var toZero, toOne uint64
	for w, check := range out[k.quiet.words-1:] {
		differ := check ^ k.onesTail[w]
		if w == 0 { // the lower bits are presses
			check >>= k.quiet.lastBits()
			differ >>= k.quiet.lastBits()
		}
		toZero |= check
		toOne |= differ
	}
	return toZero == 0, toOne == 0
}

// presses cuts the checks off.
func (k *linear) presses(out []uint64) []uint64 {
	out = out[:k.quiet.words]
	out[len(out)-1] &= 1<<k.quiet.lastBits() - 1
	return out
}
