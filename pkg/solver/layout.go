package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

// wordCells is the number of cells that fit one word.
const wordCells = 64

// layout says where a packed board has its cells. A packed board is a few
// 64-bit words, each with as many whole lines as fit, the first line highest;
// unused bits are at the top and 0. Whole lines cost a word more at some sizes
// (11×11: three for two) and make packing a shift and an or per line.
type layout struct {
	lines, width int
	perWord      int   // lines in a word
	words        int   // words in a board, at most maxWords where lines are a mask each
	order        []int // positions of the cells in row-major order of the board, which is not line order where the size is transposed
}

func newLayout(size puzzle.Size) layout {
	y := layout{lines: size.Lines(), width: size.Width()}
	y.perWord = wordCells / y.width
	y.words = (y.lines + y.perWord - 1) / y.perWord
	for row := range size.Rows {
		for col := range size.Cols {
			if size.Transposed() {
				y.order = append(y.order, y.position(col, row))
			} else {
				y.order = append(y.order, y.position(row, col))
			}
		}
	}
	return y
}

// position returns where a cell is: its word times 64 plus its bit.
func (y *layout) position(line, cell int) int {
	word := line / y.perWord
	last := min(y.lines, (word+1)*y.perWord) - 1
	return word*64 + (last-line)*y.width + y.width - 1 - cell
}

// lastBits returns the number of bits in use in the last word.
func (y *layout) lastBits() int { return y.wordBits(y.words - 1) }

// wordBits returns the number of bits in use in word w.
func (y *layout) wordBits(w int) int {
	return min(y.perWord, y.lines-w*y.perWord) * y.width
}

// pack sets x to board i of the block.
func (y *layout) pack(x []uint64, b *block, i int) {
	b.gather(i, y.width, y.perWord*blockBoards, i+y.lines*blockBoards, x[:y.words])
}

// gather sets each word of x to the next masks that step passes, a line apart,
// from k to end. It and scatter are on their own to have all they need in
// registers.
//
//go:noinline
func (b *block) gather(k, width, step, end int, x []uint64) {
	masks := b.masks
	width &= 63
	for w := range x {
		stop := min(k+step, end)
		var word uint64
		for ; k < stop; k += blockBoards {
			word = word<<width | uint64(masks[k])
		}
		x[w] = word
	}
}

// unpack sets board i of the block to x.
func (y *layout) unpack(b *block, i int, x []uint64) {
	b.scatter(i, y.width, y.perWord*blockBoards, i+y.lines*blockBoards, x[:y.words])
}

// scatter is the inverse of gather.
//
//go:noinline
func (b *block) scatter(k, width, step, end int, x []uint64) {
	masks := b.masks
	width &= 63
	full := uint64(1)<<width - 1
	for _, word := range x {
		stop := min(k+step, end)
		for j := stop - blockBoards; j >= k; j -= blockBoards {
			masks[j] = uint16(word & full)
			word >>= width
		}
		k = stop
	}
}

// packLines returns the packed form of a board given as its lines.
func (y *layout) packLines(lines []uint16) []uint64 {
	x := make([]uint64, y.words)
	for l, mask := range lines {
		p := y.position(l, y.width-1)
		x[p/64] |= uint64(mask) << (p % 64)
	}
	return x
}

// join sets x to a board given as its lines, and returns it.
func (y *layout) join(x, lines []uint64) []uint64 {
	for w := range x {
		word := uint64(0)
		for _, line := range lines[w*y.perWord : min(len(lines), (w+1)*y.perWord)] {
			word = word<<y.width | line
		}
		x[w] = word
	}
	return x
}

// part is the inverse of join.
func (y *layout) part(lines, x []uint64) {
	for w, word := range x {
		for l := min(len(lines), (w+1)*y.perWord) - 1; l >= w*y.perWord; l-- {
			lines[l] = word & fullLine(y.width)
			word >>= y.width
		}
	}
}
