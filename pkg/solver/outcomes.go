package solver

import (
	"math/bits"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// outcomes are the searches of all boards, made beforehand. Cells that are in
// the same quiet patterns make a class, and the outcome of a search depends on
// the number of presses in each class only: the board's key.
type outcomes struct {
	// What each byte of a board adds to its key, a number in mixed radix with the
	// presses of each class as a digit; and from bit keyBits on to its presses.
	keys [outcomeCells / 8][256]uint32
	// By key: the number of the quiet pattern to add, from bit 8 on how many
	// solutions have as few presses, from bit 20 on how many fewer that makes.
	found [1 << keyBits]uint32
	quiet [1 << (laneBits + groupBits)]uint64 // quiet patterns by number
}

// keyBits and outcomeCells bound the size of outcomes, and the time to make it.
const (
	keyBits      = 12
	outcomeCells = 32
)

// newOutcomes returns nil where there are too many.
func newOutcomes(q *quiet) *outcomes {
	if q.nullity() == 0 || q.nullity() > laneBits+groupBits || !q.proven || q.lastBits() > outcomeCells {
		return nil
	}
	o := new(outcomes)
	for k, pattern := range q.sums(q.basis) {
		o.quiet[k] = pattern[0]
	}
	classes := q.classes()[1:] // what is in no pattern makes no difference
	for i := range classes {
		classes[i] = slices.DeleteFunc(classes[i], func(p int) bool { return slices.Contains(q.pivots, p) }) // least solutions do not press them
	}
	keys := 1
	for _, cells := range classes {
		for _, p := range cells {
			for v := range o.keys[p/8] {
				o.keys[p/8][v] += uint32(v >> (p % 8) & 1 * keys)
			}
		}
		if keys *= len(cells) + 1; keys > len(o.found) {
			return nil
		}
	}
	for byteOf := range o.keys {
		for v := range o.keys[byteOf] {
			o.keys[byteOf][v] += uint32(bits.OnesCount(uint(v)) << keyBits)
		}
	}
	var s scratch
	for key := range keys {
		var x uint64 // one of the boards with that key
		rest := key
		for _, cells := range classes {
			for _, p := range cells[:rest%(len(cells)+1)] {
				x |= 1 << p
			}
			rest /= len(cells) + 1
		}
		k, f := q.scan([]uint64{x}, &s)
		o.found[key] = uint32((bits.OnesCount64(x)-f.moves)<<20 | int(f.count)<<8 | q.number(k))
	}
	return o
}

// classes returns the positions of the cells in each class: class c is of those in
// the patterns that c chooses, the first for its highest bit.
func (q *quiet) classes() [][]int {
	classes := make([][]int, 1<<len(q.basis))
	for _, p := range q.order {
		class := 0
		for _, pattern := range q.basis {
			class <<= 1
			if bit(pattern, p) {
				class |= 1
			}
		}
		classes[class] = append(classes[class], p)
	}
	return classes
}

// choose is [linear.choose] for boards of the given number of cells.
func (o *outcomes) choose(x *column[uint64], to verdict, cells int) {
	const keyMask = 1<<keyBits - 1
	beyond := int64(1) << (cells & 63)
	status, moves, count := to.status, to.moves, to.count
	_, _, _, _ = x[0], status[0], moves[0], count[0] // so the loop need not check for nil
	for i := range x {
		look := x[i]
		solvable := (int64(look) - beyond) >> 63 // all ones or 0
		look &= uint64(solvable)
		key := o.keys[0][byte(look)] + o.keys[1][byte(look>>8)] + o.keys[2][byte(look>>16)] + o.keys[3][byte(look>>24)]
		found := o.found[key&keyMask]
		x[i] = look ^ o.quiet[byte(found)]
		status[i] = puzzle.Impossible &^ puzzle.Status(solvable)
		moves[i] = int32(key>>keyBits - found>>20)
		count[i] = int64(found>>8&(1<<12-1)) & solvable
	}
}
