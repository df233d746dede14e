package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

// Boards are solved in blocks. A run's lines are Count masks apart, which for
// large runs is a power of two more often than not, so that all lines of a board
// fall into the same few cache sets; a block is a copy of some boards with their
// lines close together. It lives on the stack of Solve.
const (
	blockBoards = 64   // most boards in a block; 128 bytes of every line
	blockMasks  = 4096 // masks in a block: all 64 boards up to 64 lines, 16 boards at 256
	maxWords    = 64   // words of the largest packed board, see layout
	lowPatterns = 256  // quiet patterns in the search's table, see quiet
)

// blockStride returns how many boards of a size make a block: a multiple of 4,
// so that four boards can be handled as one word.
func blockStride(size puzzle.Size) int {
	return min(blockBoards, blockMasks/size.Lines()&^3)
}

// column holds one value for each board of a block. Its length is fixed, so that
// loops over it need no checks.
type column[T any] = [blockBoards]T

// block is the working memory for some consecutive boards of a run.
type block struct {
	stride int                // masks from one line to the next
	n      int                // boards in the block, at most stride
	masks  [blockMasks]uint16 // line l of board i at l*stride+i: the boards, then in place their solutions

	// The block's part of the Answers.
	verdict
	reached *column[puzzle.Target]

	fail    column[uint16]      // chase: not 0 where the board has no solution
	x, y    [maxWords]uint64    // packed boards
	weights [lowPatterns]uint16 // the search's
	words   words
}

// tail takes the place of Answers that end before the block does.
type tail struct {
	status  column[puzzle.Status]
	moves   column[int32]
	count   column[int64]
	reached column[puzzle.Target]
}

// store copies n answers to dst, from lo on.
func (t *tail) store(dst *puzzle.Answers, lo, n int) {
	copy(dst.Status[lo:lo+n], t.status[:])
	copy(dst.MinMoves[lo:lo+n], t.moves[:])
	copy(dst.OptimalCount[lo:lo+n], t.count[:])
	copy(dst.Reached[lo:lo+n], t.reached[:])
}

// verdict is what is found for the boards of a block, but for their solutions.
type verdict struct {
	status *column[puzzle.Status]
	moves  *column[int32]
	count  *column[int64]
}

// load fills the block with the boards from lo on.
func (b *block) load(boards puzzle.Run, lo int) {
	for l := range boards.Lines() {
		copy(b.masks[l*b.stride:], boards.Masks[l*boards.Count+lo:l*boards.Count+lo+b.n])
	}
}

// reset makes all boards of the block impossible as yet.
func (b *block) reset() {
	clear(b.moves[:])
	clear(b.count[:])
	clear(b.reached[:])
	for i := range b.status {
		b.status[i] = puzzle.Impossible
	}
}

// store copies the block's solutions to out, from lo on.
func (b *block) store(out puzzle.Run, lo int) {
	for l := range out.Lines() {
		copy(out.Masks[l*out.Count+lo:], b.masks[l*b.stride:l*b.stride+b.n])
	}
}

// answer records how board i was answered, all but the solution.
func (b *block) answer(i int, status puzzle.Status, f found, reached puzzle.Target) {
	b.status[i], b.moves[i], b.count[i], b.reached[i] = status, int32(f.moves), f.count, reached
}

// blank sets all cells of board i to 0, the solution of impossible boards.
func (b *block) blank(i, lines int) {
	for k := i; k < lines*b.stride; k += b.stride {
		b.masks[k] = 0
	}
}

// fill sets the cells of all boards to 1.
func (b *block) fill(lines, width int) {
	for k := range b.masks[:lines*b.stride] {
		b.masks[k] = 1<<width - 1
	}
}

// four returns masks k to k+3 as one word, the first lowest.
func (b *block) four(k int) uint64 { return four(b.masks[k:]) }

// setFour is the inverse of four.
func (b *block) setFour(k int, x uint64) { setFour(b.masks[k:], x) }

// four returns the first four masks as one word, the first lowest. The compiler
// makes one load of it.
func four(m []uint16) uint64 {
	m = m[:4]
	return uint64(m[0]) | uint64(m[1])<<16 | uint64(m[2])<<32 | uint64(m[3])<<48
}

// setFour is the inverse of four.
func setFour(m []uint16, x uint64) {
	m = m[:4]
	m[0], m[1], m[2], m[3] = uint16(x), uint16(x>>16), uint16(x>>32), uint16(x>>48)
}

// lanes returns four copies of m.
func lanes(m uint16) uint64 { return uint64(m) * 0x0001_0001_0001_0001 }

// weigh sets moves to the number of presses in every board of the block, after
// toggling the given lines. Four boards at a time: the usual halving sums of
// bits within bytes (Hacker's Delight, section 5-1), stopped at bytes, whose
// sums over 31 lines still fit.
func (b *block) weigh(moves []int32, toggled []uint16) {
	const bytesMax = 31 // lines of at most 8 presses a byte below 256
	for i := 0; i < len(moves); i += 4 {
		var sums uint64 // four lanes of 16 bits
		k := i
		for rest := toggled; len(rest) > 0; rest = rest[min(bytesMax, len(rest)):] {
			var bytes uint64
			for _, t := range rest[:min(bytesMax, len(rest))] {
				x := b.four(k) ^ lanes(t)
				x -= x >> 1 & 0x5555_5555_5555_5555
				x = x&0x3333_3333_3333_3333 + x>>2&0x3333_3333_3333_3333
				bytes += (x + x>>4) & 0x0f0f_0f0f_0f0f_0f0f
				k += b.stride
			}
			sums += bytes&0x00ff_00ff_00ff_00ff + bytes>>8&0x00ff_00ff_00ff_00ff
		}
		for j := range moves[i:min(i+4, len(moves))] {
			moves[i+j] = int32(uint16(sums >> (16 * j)))
		}
	}
}
