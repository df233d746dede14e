package solver

import (
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// This file is the linear kernel once more, for boards that fit one word
// together with their checks: up to 8×8, and so most corpora. Each step is done
// for all boards of the block before the next, in plain loops without branches
// that depend on a board.

// words is the working memory for a block of these.
type words struct {
	zero, one column[uint64] // presses and failing checks, then solutions
	ones      struct {       // what is found for one, where zero is the other choice
		status column[puzzle.Status]
		moves  column[int32]
		count  column[int64]
	}
	pieces column[uint16] // of solutions
}

// solveWords answers the boards of the block where k.row is 1. It reads their
// lines from in and writes those of the solutions to out, stride masks apart.
func (k *linear) solveWords(b *block, out, in []uint16, stride int, target puzzle.Target) {
	w := &b.words
	k.lookUpAll(&w.zero, in, stride)
	switch target {
	case puzzle.Zero:
		k.choose(b, &w.zero, b.verdict)
		clear(b.reached[:])
	case puzzle.One:
		k.invert(&w.zero, &w.zero)
		k.choose(b, &w.zero, b.verdict)
		for i, status := range b.status {
			b.reached[i] = puzzle.One &^ puzzle.Target(status&puzzle.Impossible)
		}
	case puzzle.Either:
		k.invert(&w.one, &w.zero)
		k.choose(b, &w.zero, b.verdict)
		k.choose(b, &w.one, verdict{&w.ones.status, &w.ones.moves, &w.ones.count})
		b.prefer()
	}
	k.quiet.unpackAll(out, stride, &w.zero, &w.pieces)
}

// invert sets y to the look-ups of the inverse boards.
func (k *linear) invert(y, x *column[uint64]) {
	for i, look := range x {
		y[i] = look ^ k.onesTail[0]
	}
}

// fillTables makes the tables from the entries of single cells: one for each
// pair of lines, where these have no more than wordBits cells, or else for each
// line, or half a line.
func (k *linear) fillTables(single [][]uint64) {
	y := &k.quiet.layout
	const rest = 16 - wordBits // lowest bit of the upper half
	for line := 0; line < y.lines; {
		first := y.position(line, y.width-1)
		switch {
		case 2*y.width <= wordBits && line+1 < y.lines:
			k.fillPiece(piece{line, 0, 2}, single[first-y.width:][:2*y.width])
			line++
		case y.width <= wordBits:
			k.fillPiece(piece{line, 0, 1}, single[first:][:y.width])
		default:
			k.fillPiece(piece{line, 0, 1}, single[first:][:wordBits])
			k.fillPiece(piece{line, rest, 1}, append(make([][]uint64, wordBits-rest), single[first+wordBits:first+y.width]...))
		}
		line++
	}
}

// fillPiece makes the table of a piece from the entries of its cells.
func (k *linear) fillPiece(at piece, single [][]uint64) {
	var table pieceTable
	for v := 1; v < 1<<len(single); v++ {
		table[v] = table[v&(v-1)]
		if cell := single[trailing(v)]; cell != nil {
			table[v] ^= cell[0]
		}
	}
	k.pieces, k.tables = append(k.pieces, at), append(k.tables, table)
}

// lookUpAll sets x to the presses and failing checks of the boards.
func (k *linear) lookUpAll(x *column[uint64], boards []uint16, stride int) {
	clear(x[:])
	for p, at := range k.pieces {
		line := (*column[uint16])(boards[at.line*stride:])
		if at.lines == 1 {
			k.tables[p].one(x, at.shift, line)
		} else {
			k.tables[p].two(x, k.quiet.width, line, (*column[uint16])(boards[(at.line+1)*stride:]))
		}
	}
}

// pieceTable has what a piece of each value adds to the look-up of its board.
// The methods are on their own to have all they need in registers.
type pieceTable [1 << wordBits]uint64

// one looks up pieces that begin at bit shift of a line.
func (t *pieceTable) one(x *column[uint64], shift int, line *column[uint16]) {
	shift &= 15
	for i := 0; i < len(x); i += 4 {
		t.four(x, i, four(line[i:i+4])>>shift)
	}
}

// two looks up pieces that are two lines of the given width.
func (t *pieceTable) two(x *column[uint64], width int, line, below *column[uint16]) {
	width &= 15
	for i := 0; i < len(x); i += 4 {
		t.four(x, i, four(line[i:i+4])<<width|four(below[i:i+4]))
	}
}

// four looks up the pieces of four boards, from i on.
func (t *pieceTable) four(x *column[uint64], i int, pieces uint64) {
	const mask = 1<<wordBits - 1
	x[i] ^= t[pieces&mask]
	x[i+1] ^= t[pieces>>16&mask]
	x[i+2] ^= t[pieces>>32&mask]
	x[i+3] ^= t[pieces>>48&mask]
}

// choose finds the answers to the boards that were looked up as x, and leaves
// their solutions there. Only a search is dear enough to spare what follows the
// block's boards.
func (k *linear) choose(b *block, x *column[uint64], found verdict) {
	switch {
	case k.quiet.nullity() == 0:
		clear(found.status[:])
		for i, x := range x {
			found.moves[i], found.count[i] = int32(bits.OnesCount64(x)), 1
		}
	case k.outcomes != nil:
		k.outcomes.choose(x, found, k.quiet.lastBits())
	default:
		for i, look := range x[:b.n] {
			found.status[i], found.moves[i], found.count[i] = puzzle.Impossible, 0, 0
			if look>>k.quiet.lastBits() != 0 {
				x[i] = 0
				continue
			}
			f := k.quiet.search(x[i:i+1], &b.scratch)
			found.status[i], found.moves[i], found.count[i] = k.quiet.status(), int32(f.moves), f.count
		}
	}
}

// prefer replaces the answers for zero by those for one where these have fewer
// presses, or where zero has none.
func (b *block) prefer() {
	w := &b.words
	for i := range b.reached {
		fewer := int64(cost(w.ones.status[i], w.ones.moves[i])-cost(b.status[i], b.moves[i])) >> 63
		w.zero[i] ^= (w.zero[i] ^ w.one[i]) & uint64(fewer)
		b.status[i] ^= (b.status[i] ^ w.ones.status[i]) & puzzle.Status(fewer)
		b.moves[i] ^= (b.moves[i] ^ w.ones.moves[i]) & int32(fewer)
		b.count[i] ^= (b.count[i] ^ w.ones.count[i]) & fewer
		b.reached[i] = puzzle.Target(fewer & 1)
	}
}

// cost is the moves, or more than any where there is no solution.
func cost(status puzzle.Status, moves int32) int {
	return int(status&puzzle.Impossible)<<16 + int(moves)
}

// unpackAll sets boards to x, where they are one word each. As many lines as fit
// 16 bits are cut out of x at once.
func (y *layout) unpackAll(boards []uint16, stride int, x *column[uint64], pieces *column[uint16]) {
	most := 16 / y.width
	for last := y.lines - 1; last >= 0; last -= most {
		cut(pieces, x, (y.lines-1-last)*y.width)
		y.split(boards, stride, pieces, last, max(0, last-most+1))
	}
}

// split sets the lines from last back to first, given as 16 bits or less.
func (y *layout) split(boards []uint16, stride int, pieces *column[uint16], last, first int) {
	for l := last; l >= first; l-- {
		part((*column[uint16])(boards[l*stride:]), pieces, (last-l)*y.width, lanes(1<<y.width-1))
	}
}

// cut sets pieces to the bits of x from shift on. It and part are on their own
// to have all they need in registers.
//
//go:noinline
func cut(pieces *column[uint16], x *column[uint64], shift int) {
	shift &= 63
	for i := 0; i < len(x); i += 4 {
		pieces[i] = uint16(x[i] >> shift)
		pieces[i+1] = uint16(x[i+1] >> shift)
		pieces[i+2] = uint16(x[i+2] >> shift)
		pieces[i+3] = uint16(x[i+3] >> shift)
	}
}

// part sets the line to the bits of the pieces from shift on, where the lanes of
// mask have bits.
//
//go:noinline
func part(line, pieces *column[uint16], shift int, mask uint64) {
	shift &= 15
	for i := 0; i < len(line); i += 4 {
		setFour(line[i:i+4], four(pieces[i:i+4])>>shift&mask)
	}
}
