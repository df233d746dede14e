package solver

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// classes is the search of boards with at most 16 quiet patterns, four boards at a
// time.
//
// Cells that are in the same quiet patterns make a class; adding a pattern toggles a
// class as a whole or not at all. So the numbers of presses in the classes, n, say
// what each candidate k weighs: with N cells in a class, the sum of n over the classes
// that k leaves alone and of N-n over those that it toggles. Class c is toggled where
// c and k have an odd number of bits in common, hence all 16 sums are one Hadamard
// transform, of 64 additions. The n of a board are fields of one word, its key, a sum
// of look-ups; then lane i of a word is of board i.
//
// Preconditions: see newClasses. The block must hold least solutions.
type classes struct {
	tables   [2][]lineTable // of each line, for targets zero and one
	fields   []field
	constant [1 << laneBits]uint64   // what the transform is given besides the fields
	patterns [2 << laneBits][]uint16 // what to add for candidate k: lines; from 16 on with the solution of the all-1 board
	repeats  int                     // each candidate is there 2^repeats times
}

// lineTable has what the lower and the upper cells of a line add to the board's key.
type lineTable [2][1 << classBits]uint64

// field is where the key has the presses of a class.
type field struct {
	class       int
	word, shift int    // which 16 bits of the key, and the first of them
	mask        uint64 // in each lane
}

const (
	classBits   = 7  // cells in half a line
	chunkBits   = 16 // no field crosses a multiple of these
	weightShift = 5  // the transform gives weight<<weightShift | candidate<<1
)

// newClasses returns nil for boards that the search is not for: those without quiet
// patterns or with more than 16, with lines that are too long, with so many cells that
// their presses do not fit, or beyond the search limit.
func newClasses(q *quiet) *classes {
	d := q.nullity()
	if d == 0 || d > laneBits || !q.proven || q.width > 2*classBits || len(q.order) >= 1<<(15-weightShift) {
		return nil
	}
	c := &classes{repeats: laneBits - d}
	cells := q.classes()
	if !c.place(cells) {
		return nil
	}
	c.setConstant(cells, d)
	for one := range c.tables {
		c.tables[one] = c.newTables(q, cells, one)
	}
	c.setPatterns(q)
	return c
}

// place finds the fields of the key. It reports whether there is room.
func (c *classes) place(cells [][]int) bool {
	var used [64 / chunkBits]int
	for class := range cells {
		if len(cells[class]) > 0 {
			c.fields = append(c.fields, field{class: class, mask: lanes(1<<bits.Len(uint(len(cells[class]))) - 1)})
		}
	}
	slices.SortStableFunc(c.fields, func(f, g field) int { return cmp.Compare(g.mask, f.mask) }) // the widest first
	for i := range c.fields {
		f := &c.fields[i]
		width := bits.OnesCount16(uint16(f.mask))
		f.word = slices.IndexFunc(used[:], func(n int) bool { return n+width <= chunkBits })
		if f.word < 0 {
			return false
		}
		f.shift = used[f.word]
		used[f.word] += width
	}
	return true
}

// setConstant makes the transform of constant[c] + n(c)<<weightShift what it is to be.
// The transform adds entry c to sum k, or, where c and k have an odd number of bits in
// common, subtracts it. So the weights, each twice, are the sums of all N and of 2n-N,
// where N is 0 for class 0; and the candidates, each twice, are those of 2^j-1 bits.
func (c *classes) setConstant(cells [][]int, nullity int) {
	var constant [1 << laneBits]int
	for class, cells := range cells[1:] {
		constant[1+class] -= len(cells) << (weightShift - 1)
		constant[0] += len(cells) << (weightShift - 1)
	}
	for j := range nullity {
		constant[1<<j] -= 1 << j
		constant[0] += 1 << j
	}
	for class, n := range constant {
		c.constant[class] = uint64(n) * lanes(1) // lanes may be negative until all is summed up
	}
}

// newTables makes the tables for boards that go to zero, or, their solutions turned
// into those for one, to one.
func (c *classes) newTables(q *quiet, cells [][]int, one int) []lineTable {
	single := make([]uint64, q.words*64) // by position: what a press adds to the key
	for _, f := range c.fields {
		for _, p := range cells[f.class] {
			single[p] = 1 << (f.word*chunkBits + f.shift)
		}
	}
	tables := make([]lineTable, q.lines)
	for l := range tables {
		lowest := q.position(l, q.width-1)
		for half := range tables[l] {
			first := half * classBits
			toggled := int(q.onesLines[l]) >> first & (1<<classBits - 1) * one
			for v := range 1 << min(classBits, max(0, q.width-first)) {
				for presses := v ^ toggled; presses != 0; presses &= presses - 1 {
					tables[l][half][v] += single[lowest+first+trailing(presses)]
				}
			}
		}
	}
	return tables
}

func (c *classes) setPatterns(q *quiet) {
	b := block{masks: make([]uint16, q.lines*blockBoards)}
	for k, pattern := range q.sums(q.basis) {
		for one := range 2 {
			if one == 1 {
				add(pattern, q.ones)
			}
			q.unpack(&b, 0, pattern)
			lines := make([]uint16, q.lines)
			for l := range lines {
				lines[l] = b.line(l)[0]
			}
			c.patterns[one<<laneBits|k] = lines
		}
	}
}

// solve answers the boards of the block, which holds their least solutions, and b.fail
// where there is none.
func (c *classes) solve(b *block, target puzzle.Target, onesFail uint16) {
	var chosen column[uint8] // pattern of each board that has a solution
	if target != puzzle.One {
		c.search(b, &chosen, 0, 0)
	}
	if target != puzzle.Zero {
		c.search(b, &chosen, 1, onesFail)
	}
	for i := range b.n {
		if b.status[i] != puzzle.Impossible {
			toggleLines(b.masks, i, c.patterns[chosen[i]&(2<<laneBits-1)])
		}
	}
}

// toggleLines adds lines to board i of a block.
func toggleLines(masks []uint16, i int, lines []uint16) {
	for _, line := range lines {
		masks[i] ^= line
		i += blockBoards
	}
}

// search answers those boards of the block that fail as told, where that takes fewer
// presses than what is known.
func (c *classes) search(b *block, chosen *column[uint8], one int, fail uint16) {
	var list [blockBoards + 4]uint8
	n := 0
	for i, f := range b.fail[:b.n] {
		list[n] = uint8(i)
		if f == fail {
			n++
		}
	}
	for i := 0; i < n; i += 4 {
		at := (*[4]uint8)(list[i:])
		for j := n; j < i+4; j++ {
			at[j-i] = at[0] // it takes no fewer presses the second time
		}
		best, others := c.least(c.keys(b.masks, one, at))
		for j, i := range at {
			best, others := best>>(16*j)&0xffff, others>>(16*j)&0xffff
			i &= blockBoards - 1
			moves := int32(best >> weightShift)
			if b.status[i] != puzzle.Impossible && moves >= b.moves[i] {
				continue
			}
			count := (1<<laneBits - others) >> (c.repeats & 63)
			b.answer(int(i), puzzle.Solved, found{int(moves), int64(count)}, puzzle.Target(one))
			chosen[i] = uint8(one<<laneBits) | uint8(best>>1)&(1<<laneBits-1)
		}
	}
}

// keys returns the keys of four boards of a block.
func (c *classes) keys(masks []uint16, one int, at *[4]uint8) (keys [4]uint64) {
	const low = 1<<classBits - 1
	i0, i1, i2, i3 := at[0]&(blockBoards-1), at[1]&(blockBoards-1), at[2]&(blockBoards-1), at[3]&(blockBoards-1)
	var k0, k1, k2, k3 uint64
	tables := c.tables[one]
	for l := range tables {
		t, line := &tables[l], (*column[uint16])(masks[l*blockBoards:])
		m0, m1, m2, m3 := line[i0], line[i1], line[i2], line[i3]
		k0 += t[0][m0&low] + t[1][m0>>classBits&low]
		k1 += t[0][m1&low] + t[1][m1>>classBits&low]
		k2 += t[0][m2&low] + t[1][m2>>classBits&low]
		k3 += t[0][m3&low] + t[1][m3>>classBits&low]
	}
	return [4]uint64{k0, k1, k2, k3}
}

// least returns the first candidate with the fewest presses, as told at weightShift,
// and how many have more.
func (c *classes) least(keys [4]uint64) (best, others uint64) {
	chunks := transpose(keys)
	v := c.constant
	for i := range c.fields {
		f := &c.fields[i]
		v[f.class&15] += chunks[f.word&3] >> (f.shift & 63) & f.mask << weightShift
	}
	for i := 0; i < 16; i += 4 {
		hadamard(&v[i], &v[i+1], &v[i+2], &v[i+3])
	}
	best = lanes(0x7fff)
	for i := range 4 {
		hadamard(&v[i], &v[i+4], &v[i+8], &v[i+12])
		best = smaller(best, smaller(smaller(v[i], v[i+4]), smaller(v[i+8], v[i+12])))
	}
	// The top bit of x+limit says whether x is more than the best and its like.
	limit := lanes(1<<15-1<<weightShift) - best&lanes(1<<15-1<<weightShift)
	for _, x := range v {
		others += (x + limit) >> 15 & lanes(1)
	}
	return best, others
}

// hadamard replaces four numbers by their sums with each choice of signs that has
// an even number of minus signs.
func hadamard(a, b, c, d *uint64) {
	ab, ba, cd, dc := *a+*b, *a-*b, *c+*d, *c-*d
	*a, *b, *c, *d = ab+cd, ba+dc, ab-cd, ba-dc
}

// transpose returns as lane i of word j what is lane j of word i.
func transpose(x [4]uint64) [4]uint64 {
	const even, low = 0x0000_ffff_0000_ffff, 0x0000_0000_ffff_ffff
	a, b := x[0]&even|x[1]&even<<16, x[0]>>16&even|x[1]&^even
	c, d := x[2]&even|x[3]&even<<16, x[2]>>16&even|x[3]&^even
	return [4]uint64{a&low | c<<32, b&low | d<<32, a>>32 | c&^low, b>>32 | d&^low}
}
