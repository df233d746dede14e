package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

// Boards are solved in blocks. A run's lines are Count masks apart, which for
// large runs is a power of two more often than not, so that all lines of a board
// fall into the same few cache sets; a block is a copy of some boards with their
// lines close together. It lives on the stack of Solve.
const (
	blockBoards = 64 // boards in a block; 128 bytes of every line
	maxWidth    = 16 // cells in the lines of the boards that are solved in blocks
	maxWords    = 64 // words of the largest packed board of that width, see layout
	lowLines    = 16 // lines of most boards; more take longer to provide for
)

// column holds one value for each board of a block. Its length is fixed, so that
// loops over it need no checks.
type column[T any] = [blockBoards]T

// block is the working memory for some consecutive boards of a run.
type block struct {
	n     int      // boards in the block; what follows them is of no matter
	masks []uint16 // line l of board i at l*blockBoards+i: the boards, then in place their solutions

	// The block's part of the Answers.
	verdict
	reached *column[puzzle.Target]

	none, above, here column[uint16]   // chase: no presses, those of the line before, of this line
	fail              column[uint16]   // chase: not 0 where the board has no solution
	x, y              [maxWords]uint64 // packed boards
	scratch           scratch          // the search's
	words             words
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
		copy(b.line(l)[:], boards.Masks[l*boards.Count+lo:l*boards.Count+lo+b.n])
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
		copy(out.Masks[l*out.Count+lo:], b.line(l)[:b.n])
	}
}

// answer records how board i was answered, all but the solution.
func (b *block) answer(i int, status puzzle.Status, f found, reached puzzle.Target) {
	b.status[i], b.moves[i], b.count[i], b.reached[i] = status, int32(f.moves), f.count, reached
}

// blank sets all cells of board i to 0, the solution of impossible boards.
func (b *block) blank(i, lines int) {
	for l := range lines {
		b.line(l)[i] = 0
	}
}

// fill sets the cells of all boards to 1.
func (b *block) fill(lines, width int) {
	for k := range b.masks[:lines*blockBoards] {
		b.masks[k] = 1<<width - 1
	}
}

// line returns line l of all boards.
func (b *block) line(l int) *column[uint16] { return (*column[uint16])(b.masks[l*blockBoards:]) }

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

// and keeps in line what mask has.
func and(line, mask *column[uint16]) {
	_, _ = line[0], mask[0] // so the loop need not check for nil
	for i := 0; i < len(line); i += 4 {
		setFour(line[i:i+4], four(line[i:i+4])&four(mask[i:i+4]))
	}
}

// lanes returns four copies of m.
func lanes(m uint16) uint64 { return uint64(m) * 0x0001_0001_0001_0001 }

// weigh sets moves to the number of presses in every board of the block, after
// toggling the given lines. It goes three lines at a time.
func (b *block) weigh(moves *column[int32], toggled []uint64) {
	var sums column[uint16]
	for l := 0; l < len(toggled); l += 3 {
		lines := [3]*column[uint16]{&b.none, &b.none, &b.none}
		var t [3]uint64
		for j := range toggled[l:min(l+3, len(toggled))] {
			lines[j], t[j] = b.line(l+j), toggled[l+j]
		}
		weighThree(&sums, lines[0], lines[1], lines[2], t[0], t[1], t[2])
	}
	for i, sum := range sums {
		moves[i] = int32(sum)
	}
}

// weighThree adds the presses of three lines to sums. Four boards at a time: the
// three bits of each cell are added to a number of two bits, then the usual
// halving sums (Hacker's Delight, section 5-1).
func weighThree(sums, u, v, w *column[uint16], tu, tv, tw uint64) {
	_, _, _, _ = sums[0], u[0], v[0], w[0] // so the loop need not check for nil
	const pairs, nibbles, bytes, half = 0x5555_5555_5555_5555, 0x3333_3333_3333_3333, 0x0f0f_0f0f_0f0f_0f0f, 0x00ff_00ff_00ff_00ff
	for i := 0; i < len(sums); i += 4 {
		a, b, c := four(u[i:i+4])^tu, four(v[i:i+4])^tv, four(w[i:i+4])^tw
		differ := a ^ b
		ones, twos := differ^c, a&b|differ&c
		ones -= ones >> 1 & pairs
		twos -= twos >> 1 & pairs
		sum := ones&nibbles + ones>>2&nibbles + (twos&nibbles+twos>>2&nibbles)<<1
		sum = sum&bytes + sum>>4&bytes
		setFour(sums[i:i+4], four(sums[i:i+4])+sum&half+sum>>8&half)
	}
}
