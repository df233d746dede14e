package puzzle

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Run is a sequence of boards of one size. Mask k of board i is Masks[k*Count+i]:
// the same mask of consecutive boards is adjacent, so that four boards can be
// handled as one 64-bit word. A board's masks are its lines one after the other,
// each cut into LineMasks(), of 16 cells but for the last. Within a mask the first
// cell is bit MaskWidth(k)-1 and the bits above are 0. Lines are rows, or columns
// where the size is Transposed.
type Run struct {
	Size
	Count int
	Masks []uint16 // len BoardMasks()*Count
}

// NewRun returns a run of count boards, all cells 0.
func NewRun(size Size, count int) Run {
	return Run{Size: size, Count: count, Masks: make([]uint16, size.BoardMasks()*count)}
}

// Reset makes r a run of count boards of the given size, reusing its memory.
// The cells are not cleared.
func (r *Run) Reset(size Size, count int) {
	n := size.BoardMasks() * count
	if cap(r.Masks) < n {
		r.Masks = make([]uint16, n)
	}
	*r = Run{Size: size, Count: count, Masks: r.Masks[:n]}
}

// Validate reports a run whose size, count and masks do not agree, or whose
// masks have bits outside the board. Runs that come from outside the process
// are checked once, here.
func (r Run) Validate() error {
	if err := r.Size.Validate(); err != nil {
		return err
	}
	if r.Count < 0 || len(r.Masks) != r.BoardMasks()*r.Count {
		return fmt.Errorf("run of %d boards of %s has %d masks, want %d", r.Count, r.Size, len(r.Masks), r.BoardMasks()*r.Count)
	}
	for k := range r.BoardMasks() {
		var seen uint16
		for _, m := range r.mask(k) {
			seen |= m
		}
		if seen&^r.FullMask(k) != 0 {
			return fmt.Errorf("run of %s boards has cells outside the board", r.Size)
		}
	}
	return nil
}

// mask returns mask k of all boards.
func (r Run) mask(k int) []uint16 { return r.Masks[k*r.Count : (k+1)*r.Count] }

// at returns the index into Masks and the bit of a cell.
func (r Run) at(i, row, col int) (int, uint16) {
	if r.Transposed() {
		row, col = col, row
	}
	k := row*r.LineMasks() + col/maskBits
	return k*r.Count + i, 1 << (r.MaskWidth(k) - 1 - col%maskBits)
}

// Cell reports whether a cell of board i is 1.
func (r Run) Cell(i, row, col int) bool {
	k, bit := r.at(i, row, col)
	return r.Masks[k]&bit != 0
}

// SetCell sets a cell of board i to 1.
func (r Run) SetCell(i, row, col int) {
	k, bit := r.at(i, row, col)
	r.Masks[k] |= bit
}

// AppendText appends the text form of board i to dst: rows*cols characters.
func (r Run) AppendText(dst []byte, i int) []byte {
	if r.Transposed() {
		for row := range r.Rows {
			for col := range r.Cols {
				k, bit := r.at(i, row, col)
				cell := byte('0')
				if r.Masks[k]&bit != 0 {
					cell = '1'
				}
				dst = append(dst, cell)
			}
		}
		return dst
	}
	const room = 16 // a mask is stored as 8 or 16 bytes, of which the next one overwrites what is too many
	n := len(dst)
	dst = slices.Grow(dst, r.Rows*r.Cols+room)[:n+r.Rows*r.Cols+room]
	if r.Cols <= 8 {
		for row := range r.Rows {
			mask := r.Masks[row*r.Count+i] << (8 - r.Cols)
			binary.LittleEndian.PutUint64(dst[n:], spread(byte(mask)))
			n += r.Cols
		}
		return dst[:n]
	}
	masks := r.LineMasks()
	last := r.MaskWidth(masks - 1)
	k, unused := i, maskBits-last
	for range r.Rows {
		for range masks - 1 {
			binary.LittleEndian.PutUint64(dst[n:], spread(byte(r.Masks[k]>>8)))
			binary.LittleEndian.PutUint64(dst[n+8:], spread(byte(r.Masks[k])))
			n += maskBits
			k += r.Count
		}
		mask := r.Masks[k] << (unused & 15)
		binary.LittleEndian.PutUint64(dst[n:], spread(byte(mask>>8)))
		binary.LittleEndian.PutUint64(dst[n+8:], spread(byte(mask)))
		n += last
		k += r.Count
	}
	return dst[:n]
}

// spread turns the 8 bits of b, highest first, into 8 characters '0' or '1',
// first character in the lowest byte. Each byte of the product is b; the mask
// keeps one bit per byte, the addition carries it to the byte's top.
func spread(b byte) uint64 {
	bits := uint64(b) * 0x0101010101010101 & 0x0102040810204080
	return (bits+0x7f7f7f7f7f7f7f7f)>>7&0x0101010101010101 | 0x3030303030303030
}

// AppendBits appends board i to dst as packed bits: row-major, most significant
// bit first, the last byte padded with 0.
func (r Run) AppendBits(dst []byte, i int) []byte {
	if r.Transposed() {
		var acc, n uint
		for row := range r.Rows {
			for col := range r.Cols {
				acc <<= 1
				if r.Cell(i, row, col) {
					acc |= 1
				}
				if n++; n == 8 {
					dst, acc, n = append(dst, byte(acc)), 0, 0
				}
			}
		}
		if n > 0 {
			dst = append(dst, byte(acc<<(8-n)))
		}
		return dst
	}
	var acc uint32
	n, k := 0, i
	for range r.Rows {
		for left := r.Cols; left > 0; left -= maskBits {
			width := min(left, maskBits)
			acc = acc<<width | uint32(r.Masks[k])
			for n += width; n >= 8; n -= 8 {
				dst = append(dst, byte(acc>>(n-8)))
			}
			k += r.Count
		}
	}
	if n > 0 {
		dst = append(dst, byte(acc<<(8-n)))
	}
	return dst
}

// ParseText reads a board's text form, rows*cols characters '0' or '1', as a
// run of one board.
func ParseText(size Size, text string) (Run, error) {
	if err := size.Validate(); err != nil {
		return Run{}, err
	}
	if len(text) != size.Cells() {
		return Run{}, fmt.Errorf("board of %s has %d cells, want %d", size, len(text), size.Cells())
	}
	r := NewRun(size, 1)
	for k := range len(text) {
		switch text[k] {
		case '1':
			r.SetCell(0, k/size.Cols, k%size.Cols)
		case '0':
		default:
			return Run{}, fmt.Errorf("cell %d of the board is %q, want 0 or 1", k, text[k])
		}
	}
	return r, nil
}

// Answers holds the answers to the boards of one run, in the run's order. The
// slices have one element per board.
type Answers struct {
	Nullity      int      // dimension of the quiet patterns: a solvable board has 2^Nullity solutions
	Status       []Status //
	MinMoves     []int32  // presses of the solution; a proved minimum only where Solved; 0 where Impossible
	OptimalCount []int64  // minimum solutions to Reached; 0 unless Solved
	Reached      []Target // Zero or One: what the solution reaches; Zero where Impossible
	Solutions    Run      // the least minimum solution; all 0 where Impossible
}

// Reset makes room for the answers to count boards of the given size, reusing
// memory. The values are not cleared.
func (a *Answers) Reset(size Size, count int) {
	a.Status = resize(a.Status, count)
	a.MinMoves = resize(a.MinMoves, count)
	a.OptimalCount = resize(a.OptimalCount, count)
	a.Reached = resize(a.Reached, count)
	a.Solutions.Reset(size, count)
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
