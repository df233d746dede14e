package solver

import "math/bits"

// The search weighs 16 candidates at once: a table has, for each piece of a
// packed board and each of its values, how many presses that piece has in the
// sum with each of 16 quiet patterns, one byte each. So a look-up and two
// additions stand for 16 additions of patterns and countings of bits. Then the
// fewest presses are found four candidates at a time.
const (
	laneBits  = 4 // last basis patterns, whose sums are the 16 patterns
	groupBits = 4 // basis patterns before these, whose sums are added to the board first
	maxGroups = 1 << groupBits

	pieceBits   = 6
	wordPieces  = (wordCells + pieceBits - 1) / pieceBits
	shortPieces = 5
)

// stopCandidates is how many times all candidates of the tables are searched between
// two looks whether to stop: some milliseconds.
const stopCandidates = 1 << 12

// wordTable is for one word of a packed board.
type wordTable struct {
	// The presses of each piece by its value: byte 2i+j of half h is with pattern
	// 4i+2h+j, so that the patterns become lanes of words as least wants them.
	pieces   [wordPieces][2][1 << pieceBits]uint64
	patterns [1 << laneBits]uint64
	groups   [maxGroups]uint64 // what is added to the word for each group

	short bool   // the word has no more than shortPieces
	sum   uint64 // all ones or 0: whether the presses are added to those of the word before
	last  bool   // the bytes can take no more words, or there are none
	total uint64 // all ones or 0: then, whether they are added to those of words before
}

// scratch is the search's working memory.
type scratch struct {
	stop    <-chan struct{}      // closed when nobody wants the answers any more; may be nil
	sums    [maxGroups][2]uint64 // presses of each group's candidates, bytes as in wordTable
	weights [maxGroups][4]uint64 // the same: candidate 4i+w in lane i of word w
}

// found is the outcome of a search: the fewest presses, and how many solutions
// have as few.
type found struct {
	moves int
	count int64
}

// sums returns the sums of some patterns: sum k is of those that k chooses, the
// first for its highest bit.
func (q *quiet) sums(patterns [][]uint64) [][]uint64 {
	sums := make([][]uint64, 1<<len(patterns))
	for k := range sums {
		sums[k] = make([]uint64, q.words)
		for i, pattern := range patterns {
			if k>>(len(patterns)-1-i)&1 != 0 {
				add(sums[k], pattern)
			}
		}
	}
	return sums
}

// prepare makes the tables of the search, where there is any.
func (q *quiet) prepare() {
	if q.nullity() == 0 || !q.proven {
		return
	}
	const byteWords = 3 // words whose presses a byte can count: 192 at most
	q.lanes = min(len(q.basis), laneBits)
	others := q.basis[:len(q.basis)-q.lanes]
	groups := q.sums(others[max(0, len(others)-groupBits):])
	patterns := q.sums(q.basis[len(others):])
	q.groups, q.tables = len(groups), make([]wordTable, q.words)
	for w := range q.tables {
		t := &q.tables[w]
		t.fill(patterns, w)
		for g, pattern := range groups {
			t.groups[g] = pattern[w]
		}
		t.short = q.wordBits(w) <= shortPieces*pieceBits
		t.sum, t.total = filled(w%byteWords != 0), filled(w >= byteWords)
		t.last = w%byteWords == byteWords-1 || w == q.words-1
	}
}

// filled returns all ones, or 0.
func filled(ones bool) uint64 {
	if ones {
		return ^uint64(0)
	}
	return 0
}

// fill sets the pieces of word w. Where there are fewer patterns than lanes, they
// repeat.
func (t *wordTable) fill(patterns [][]uint64, w int) {
	for k := range t.patterns {
		t.patterns[k] = patterns[k%len(patterns)][w]
		position := k/4*16 + k%2*8
		for p := range t.pieces {
			cells := t.patterns[k] >> (p * pieceBits) & (1<<pieceBits - 1)
			table := &t.pieces[p][k/2%2]
			for v := range table {
				table[v] |= uint64(bits.OnesCount64(uint64(v)^cells)) << position
			}
		}
	}
}

// search replaces the solution x by the least one with the fewest presses.
// Where the search limit forbids that, x stays and the count is 0. x must be the
// least of all solutions.
//
// The tables and groups hold the candidates of the last few basis patterns; the
// others are counted through outside them. Time is 2^nullity × cells.
func (q *quiet) search(x []uint64, s *scratch) found {
	if !q.proven || q.nullity() == 0 {
		return found{weight(x), q.optima(1)}
	}
	if q.nullity() <= laneBits+groupBits {
		k, f := q.scan(x, s)
		for w := range x {
			t := &q.tables[w]
			x[w] ^= t.groups[k>>laneBits&(maxGroups-1)] ^ t.patterns[k&(1<<laneBits-1)]
		}
		return f
	}
	n := q.groups << q.lanes
	var best found
	bestK, last := 0, 1<<q.nullity()/n-1
	for high := 0; ; high++ {
		if high%stopCandidates == 0 && stopped(s.stop) {
			return best
		}
		k, low := q.scan(x, s)
		k = q.number(k)
		switch {
		case best.count == 0 || low.moves < best.moves:
			best, bestK = low, high*n+k
		case low.moves == best.moves:
			best.count += low.count
		}
		if high == last {
			q.apply(x, high*n^bestK)
			return best
		}
		q.apply(x, (high^(high+1))*n)
	}
}

// scan searches the candidates of the last basis patterns. It returns the first
// best one's group and pattern as one number.
func (q *quiet) scan(x []uint64, s *scratch) (int, found) {
	for w, word := range x {
		t := &q.tables[w]
		t.weigh(s.sums[:q.groups], word)
		if t.last {
			s.widen(q.groups, t.total)
		}
	}
	k, f := least(s.weights[:q.groups])
	f.count >>= laneBits - q.lanes // of those that repeat
	return k, f
}

// number returns which basis patterns a group and pattern stand for, see search.
func (q *quiet) number(k int) int { return k>>laneBits<<q.lanes | k&(1<<q.lanes-1) }

// weigh sets the sums to the presses of word x, or adds these.
func (t *wordTable) weigh(sums [][2]uint64, x uint64) {
	const mask = 1<<pieceBits - 1
	p := &t.pieces
	for g := range sums {
		sum := &sums[g]
		word := x ^ t.groups[g&(maxGroups-1)]
		low := sum[0]&t.sum + p[0][0][word&mask] + (p[1][0][word>>(1*pieceBits)&mask] + p[2][0][word>>(2*pieceBits)&mask]) + (p[3][0][word>>(3*pieceBits)&mask] + p[4][0][word>>(4*pieceBits)&mask])
		high := sum[1]&t.sum + p[0][1][word&mask] + (p[1][1][word>>(1*pieceBits)&mask] + p[2][1][word>>(2*pieceBits)&mask]) + (p[3][1][word>>(3*pieceBits)&mask] + p[4][1][word>>(4*pieceBits)&mask])
		if !t.short {
			low += (p[5][0][word>>(5*pieceBits)&mask] + p[6][0][word>>(6*pieceBits)&mask]) + (p[7][0][word>>(7*pieceBits)&mask] + p[8][0][word>>(8*pieceBits)&mask]) + (p[9][0][word>>(9*pieceBits)&mask] + p[10][0][word>>(10*pieceBits)&mask])
			high += (p[5][1][word>>(5*pieceBits)&mask] + p[6][1][word>>(6*pieceBits)&mask]) + (p[7][1][word>>(7*pieceBits)&mask] + p[8][1][word>>(8*pieceBits)&mask]) + (p[9][1][word>>(9*pieceBits)&mask] + p[10][1][word>>(10*pieceBits)&mask])
		}
		sum[0], sum[1] = low, high
	}
}

// widen sets the weights to the sums, or, where total is all ones, adds these.
func (s *scratch) widen(groups int, total uint64) {
	const even = 0x00ff_00ff_00ff_00ff
	for g := range s.sums[:groups] {
		low, high, out := s.sums[g][0], s.sums[g][1], &s.weights[g]
		out[0] = out[0]&total + low&even
		out[1] = out[1]&total + low>>8&even
		out[2] = out[2]&total + high&even
		out[3] = out[3]&total + high>>8&even
	}
}

// least returns the first candidate of all groups with the fewest presses, and
// what it says. There is one branch that depends on which that is, and none
// where there is one group. Weights are below 2^15.
func least(weights [][4]uint64) (int, found) {
	m := weights[0]
	for i := range weights[1:] {
		w := &weights[1+i]
		m[0], m[1], m[2], m[3] = smaller(m[0], w[0]), smaller(m[1], w[1]), smaller(m[2], w[2]), smaller(m[3], w[3])
	}
	all := smaller(smaller(m[0], m[1]), smaller(m[2], m[3]))
	moves := min(all&0xffff, all>>16&0xffff, all>>32&0xffff, all>>48)

	same, first := lanes(uint16(moves)), 0
	equal := equals(&weights[0], same)
	for equal == 0 {
		first++
		equal = equals(&weights[first], same)
	}
	bit := bits.TrailingZeros64(equal)
	count := bits.OnesCount64(equal)
	for i := range weights[first+1:] {
		count += bits.OnesCount64(equals(&weights[first+1+i], same))
	}
	return first<<laneBits | bit/16*4 + bit%16, found{moves: int(moves), count: int64(count)}
}

// equals returns which candidates of a group are the same: candidate 4i+w as bit
// 16i+w, so that their order is kept.
func equals(w *[4]uint64, same uint64) uint64 {
	const tops = 0x8000_8000_8000_8000
	return ^differ(w[0], same)&tops>>15 | ^differ(w[1], same)&tops>>14 | ^differ(w[2], same)&tops>>13 | ^differ(w[3], same)&tops>>12
}

// smaller returns the smaller of each two lanes.
func smaller(a, b uint64) uint64 {
	const tops = 0x8000_8000_8000_8000
	more := (a | tops - b) & tops // where b is not more than a
	return a ^ (a^b)&(more<<1-more>>15)
}

// differ has the top bit of each lane where a and b differ.
func differ(a, b uint64) uint64 { return a ^ b + 0x7fff_7fff_7fff_7fff }
