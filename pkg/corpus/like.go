package corpus

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// NextLike reads on behind rec, which Next has just returned, as long as there is
// nothing but boards of its size, one on each line: at most so many as are wanted.
// It appends their masks to dst, one board after the other, and returns how many
// there are; they have the next line numbers, and no labels. What is not as plain
// as that, and the end, is for Next, so that none means nothing.
//
// It exists because most corpora are large and plain: a board takes a sixth of the
// time that it takes with Next.
func (c *Corpus) NextLike(rec *Record, dst []uint16, most int) ([]uint16, int) {
	l, ok := c.format.(*lines)
	if !ok || c.src == nil || c.ahead || rec.Rejected() || rec.Line != c.in.line || rec.Source != c.src.name || rec.Board.Size != l.size {
		return dst, 0
	}
	return l.plain(c.in, dst, most)
}

// plain reads boards from what is in the scanner's buffer. It leaves lines that
// are anything but cells to next.
func (l *lines) plain(in *scanner, dst []uint16, most int) ([]uint16, int) {
	size, cells := l.size, l.size.Cells()
	if size == (puzzle.Size{}) || size.Transposed() || size.LineMasks() > 1 || l.sheet.columns || cells > in.max || in.again {
		return dst, 0
	}
	const room = 16 + 2 // bytes that are looked at behind the start of the last row
	most = min(most, (in.end-in.start)/(cells+1))
	dst = slices.Grow(dst, most*size.Rows)
	n := 0
	for ; n < most && in.end-in.start >= cells+room; n++ {
		text := in.buf[in.start : in.start+cells+room]
		end := cells
		if text[end] == '\r' {
			end++
		}
		masks := dst[len(dst) : len(dst)+size.Rows]
		if text[end] != '\n' || !l.sheet.unpack(masks, text, size.Cols) {
			break
		}
		dst = dst[:len(dst)+size.Rows]
		in.start += end + 1
	}
	in.line += int64(n)
	return dst, n
}

// unpack reads rows of cols cells without anything between them. Behind them,
// text has room for a row of the largest width. It reports whether they are cells.
func (s *sheet) unpack(masks []uint16, text []byte, cols int) bool {
	off, mark := uint64(s.symbols.Off)*ones, uint64(s.symbols.On^s.symbols.Off)
	shift := bits.TrailingZeros64(mark)
	head, tail := min(cols, 8), max(cols-8, 0)
	var wrong uint64
	for row := range masks {
		text := text[row*cols:]
		x := binary.LittleEndian.Uint64(text) ^ off
		one := x >> shift & ones
		wrong |= (one*mark ^ x) << (64 - 8*head)
		mask := one * packBits >> 56 >> (8 - head)
		if tail > 0 {
			x := binary.LittleEndian.Uint64(text[8:]) ^ off
			one := x >> shift & ones
			wrong |= (one*mark ^ x) << (64 - 8*tail)
			mask = mask<<tail | one*packBits>>56>>(8-tail)
		}
		masks[row] = uint16(mask)
	}
	return wrong == 0
}
