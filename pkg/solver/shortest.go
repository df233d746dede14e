package solver

import (
	"math/big"
	"math/bits"
	"slices"
	"sort"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// maxShortest bounds the work of Shortest: classes entered, times patterns. That much
// takes about a second.
const maxShortest = 1 << 26

// Shortest are the sets of so many presses of which no fewer do the same: the
// shortest solutions of all boards that need so many. For the target either no fewer
// make the inverse board, too.
type Shortest struct {
	// Classes are of the cells that are in the same patterns, counted row by row: in
	// the order of their first cells, and at last those that are in none.
	Classes [][]int
	Count   *big.Int // sets

	presses [][]int    // in each class: the combinations of such sets, in lexicographic order
	sums    []*big.Int // sets that have this combination or one before
}

// Combination returns how many presses set number i, from 0 to Count-1, has in each
// class. Sets that have as many everywhere are neighbours.
func (s *Shortest) Combination(i *big.Int) []int {
	return s.presses[sort.Search(len(s.sums), func(k int) bool { return s.sums[k].Cmp(i) > 0 })]
}

// Shortest returns the sets of so many presses. It returns nil where it takes too
// long to find them. Near the most presses that any board needs it seldom does at a
// nullity of up to 3, or 4 on small boards.
func (s *Solver) Shortest(target puzzle.Target, moves int) *Shortest {
	m := s.combinations(target)
	if m == nil {
		return nil
	}
	free := len(m.free)
	all := &Shortest{Classes: append(m.classes, m.free), Count: new(big.Int)}
	bound, left := m.bound(moves), maxShortest/len(m.moves)
	var ways big.Int
	m.each(0, big.NewInt(1), func(class int, before *big.Int) bool {
		left--
		rest := moves - m.moves[0]
		if left < 0 || rest < 0 || !bound.open(class) {
			return false
		}
		if class == len(m.classes) && rest <= free {
			ways.Binomial(int64(free), int64(rest))
			all.Count = new(big.Int).Add(all.Count, ways.Mul(&ways, before))
			all.presses = append(all.presses, append(slices.Clone(m.presses), rest))
			all.sums = append(all.sums, all.Count)
		}
		return true
	})
	if left < 0 {
		return nil
	}
	return all
}

// bound tells what no combination behind what is chosen can mend. A pattern's slack is
// how many presses more a solution has when it is added; in shortest ones none is
// negative. A press, in a class that half of all sums of patterns invert, takes one
// off the slack of each, and so the sum of all is known from the number of presses.
type bound struct {
	*combinations
	behind [][]int // cells of this class and those behind it, by the patterns that invert them
	slack  int     // of all patterns together, at most
}

func (m *combinations) bound(moves int) bound {
	b := bound{m, make([][]int, len(m.classes)+1), 0}
	b.behind[len(m.classes)] = make([]int, len(m.moves))
	cells := 0
	for class := len(m.classes) - 1; class >= 0; class-- {
		cells += len(m.classes[class])
		b.behind[class] = slices.Clone(b.behind[class+1])
		for added := range m.moves {
			if bits.OnesCount(uint(added&m.patterns[class]))%2 == 1 {
				b.behind[class][added] += len(m.classes[class])
			}
		}
	}
	b.slack = (cells - 2*(moves-len(m.free))) * len(m.moves) / 2
	return b
}

// open reports whether there may be shortest solutions with what is chosen in the
// classes before this one.
func (b bound) open(class int) bool {
	sum := 0
	for added, behind := range b.behind[class] {
		slack := b.moves[added] - b.moves[0]
		if slack+behind < 0 {
			return false
		}
		sum += max(0, slack-behind)
	}
	return sum <= b.slack
}
