package solver

import (
	"math"
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// This file is the linear kernel once more, for boards that fit one word
// together with their checks: up to 8×8, and so most corpora. Each step is done
// for all boards of the block before the next, in plain loops.

// solveWords answers the boards of the block where k.row is 1. They have few
// lines, so it reads them, from lo on, and writes their solutions where they
// are, without a copy in the block.
func (k *linear) solveWords(b *block, solutions, boards puzzle.Run, lo int, target puzzle.Target) {
	var words [blockBoards]uint64
	x := words[:b.n]
	k.lookUpAll(x, boards, lo)
	q, ones, checks := k.quiet, k.onesTail[0], k.quiet.lastBits()
	status := q.status()
	for i, zero := range x {
		x[i] = 0
		best := found{moves: math.MaxInt}
		if target != puzzle.One && zero>>checks == 0 {
			x[i], best = q.searchWord(zero)
			b.answer(i, status, best, puzzle.Zero)
		}
		if one := zero ^ ones; target != puzzle.Zero && one>>checks == 0 {
			if solution, f := q.searchWord(one); f.moves < best.moves {
				x[i] = solution
				b.answer(i, status, f, puzzle.One)
			}
		}
	}
	k.quiet.unpackAll(solutions, lo, x)
}

// lookUpAll sets x to the presses and failing checks of the boards from lo on.
func (k *linear) lookUpAll(x []uint64, boards puzzle.Run, lo int) {
	for p, at := range k.pieces {
		table := (*[1 << smallBits]uint64)(k.table[p<<smallBits:])
		shift := at.shift & 15
		line := boards.Masks[at.line*boards.Count+lo:][:len(x)]
		for i, m := range line {
			x[i] ^= table[byte(m>>shift)]
		}
	}
}

// searchWord is search for boards of one word that are the least solution
// already.
func (q *quiet) searchWord(x uint64) (uint64, found) {
	if !q.proven || q.nullity() == 0 {
		return x, found{bits.OnesCount64(x), q.optima(1)}
	}
	n := len(q.low[0])
	best, solution := found{moves: math.MaxInt}, x
	last := 1<<q.nullity()/n - 1
	for high := 0; ; high++ {
		k, f := leastWord(x, q.low[0])
		switch {
		case f.moves < best.moves:
			best, solution = f, x^q.low[0][k]
		case f.moves == best.moves:
			best.count += f.count
		}
		if high == last {
			return solution, best
		}
		for k := (high ^ (high + 1)) * n; k != 0; k &= k - 1 {
			x ^= q.basis[len(q.basis)-1-trailing(k)][0]
		}
	}
}

// leastWord is weigh and least for one word.
func leastWord(x uint64, low []uint64) (int, found) {
	even, odd := 1<<32, 1<<32 // weights above indices
	for k := 0; k+1 < len(low); k += 2 {
		even = min(even, bits.OnesCount64(x^low[k])<<16|k)
		odd = min(odd, bits.OnesCount64(x^low[k+1])<<16|(k+1))
	}
	best := min(even, odd)
	f := found{moves: best >> 16}
	for _, pattern := range low {
		if bits.OnesCount64(x^pattern) == f.moves {
			f.count++
		}
	}
	return best & 0xffff, f
}

// unpackAll sets the boards from lo on to x, where they are one word each.
func (y *layout) unpackAll(boards puzzle.Run, lo int, x []uint64) {
	full := uint64(1)<<y.width - 1
	for l := range y.lines {
		shift := (y.lines - 1 - l) * y.width & 63
		line := boards.Masks[l*boards.Count+lo:][:len(x)]
		for i := range line {
			line[i] = uint16(x[i] >> shift & full)
		}
	}
}
