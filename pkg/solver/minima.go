package solver

import (
	"iter"
	"math/big"
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Bounds of the work of Minima: combinations times patterns, and the cells, with
// whose cube it grows besides. That much takes less than a second.
const (
	maxMinima      = 1 << 22
	maxMinimaCells = 1 << 10
)

// Minima returns how many of all boards of the size need how many presses to reach
// the target: element m counts those that need m. It returns nil where that takes
// too long to find out. Up to 1,024 cells it never does at a nullity of 0 or 1, and
// seldom on small boards.
//
// Cells that are in the same quiet patterns make a class. How many presses a board's
// shortest solution has depends only on how many any of its solutions has in each
// class; how many solutions have as many there is a product of binomials.
func (s *Solver) Minima(target puzzle.Target) []*big.Int {
	quiet, toOne := s.Quiet(), s.toOne()
	patterns := quiet.Count
	joined := target == puzzle.Either && toOne.Count > 0
	if joined { // a solution for one target plus toOne is one for the other
		patterns++
	}
	if 1<<min(patterns, 62) > maxMinima || s.size.Cells() > maxMinimaCells {
		return nil
	}
	m := combinations{classes: make([]int, 1<<patterns), moves: make([]int, 1<<patterns)}
	for cell := range s.size.Cells() {
		class, row, col := 0, cell/s.size.Cols, cell%s.size.Cols
		for i := range quiet.Count {
			if quiet.Cell(i, row, col) {
				class |= 1 << i
			}
		}
		if joined && toOne.Cell(0, row, col) {
			class |= 1 << quiet.Count
		}
		m.classes[class]++
	}
	total := 1
	for _, n := range m.classes[1:] {
		if total *= n + 1; total<<patterns > maxMinima {
			return nil
		}
	}
	m.found = make([]*big.Int, s.size.Cells()+1)
	for moves := range m.found {
		m.found[moves] = new(big.Int)
	}
	m.combine(1, big.NewInt(1))
	boards := m.spread()
	for _, n := range boards {
		n.Rsh(n, uint(quiet.Count)) // each board was counted with all of its solutions
		if target == puzzle.Either && !joined {
			n.Lsh(n, 1) // there are as many again that reach one
		}
	}
	return boards
}

// toOne returns a solution of the all-1 board, if there is one: the presses that
// turn a solution for one target into one for the other.
func (s *Solver) toOne() puzzle.Run {
	var a puzzle.Answers
	if s.Solve(&a, s.ones(), puzzle.Zero); a.Status[0] == puzzle.Impossible {
		return puzzle.NewRun(s.size, 0)
	}
	return a.Solutions
}

// ones returns the all-1 board.
func (s *Solver) ones() puzzle.Run {
	board := puzzle.NewRun(s.size, 1)
	for cell := range s.size.Cells() {
		board.SetCell(0, cell/s.size.Cols, cell%s.size.Cols)
	}
	return board
}

// combinations are of how many presses each class has.
type combinations struct {
	classes []int      // cells by the patterns they are in, a bit for each
	moves   []int      // presses of a solution with the combination, by the patterns that are added to it
	found   []*big.Int // solutions by the fewest of these, without the cells that are in no pattern
}

// combine goes through the combinations of this class and those behind it. ways is
// how many solutions have what is chosen for those before it.
func (m *combinations) combine(class int, ways *big.Int) {
	for class < len(m.classes) && m.classes[class] == 0 {
		class++
	}
	if class == len(m.classes) {
		fewest := m.moves[0]
		for _, n := range m.moves {
			fewest = min(fewest, n)
		}
		m.found[fewest].Add(m.found[fewest], ways)
		return
	}
	n := m.classes[class]
	m.change(class, 0, n)
	for _, binomial := range binomials(n) {
		m.combine(class+1, new(big.Int).Mul(ways, binomial))
		m.change(class, 1, -1)
	}
	m.change(class, -n-1, 1)
}

// change adds presses to the moves: where a class is as it is, and where the added
// patterns invert it.
func (m *combinations) change(class, as, inverted int) {
	for added := range m.moves {
		if bits.OnesCount(uint(added&class))%2 == 0 {
			m.moves[added] += as
		} else {
			m.moves[added] += inverted
		}
	}
}

// spread returns what was found with the cells that are in no pattern: any of these
// may be pressed.
func (m *combinations) spread() []*big.Int {
	all := make([]*big.Int, len(m.found))
	for moves := range all {
		all[moves] = new(big.Int)
	}
	var product big.Int
	for free, ways := range binomials(m.classes[0]) {
		for moves, n := range m.found {
			if n.Sign() != 0 {
				all[moves+free].Add(all[moves+free], product.Mul(n, ways))
			}
		}
	}
	return all
}

// binomials yields in how many ways 0, 1 … n of n cells can be chosen. A number is
// valid until the next.
func binomials(n int) iter.Seq2[int, *big.Int] {
	return func(yield func(int, *big.Int) bool) {
		ways := big.NewInt(1)
		for k := range n + 1 {
			if !yield(k, ways) {
				return
			}
			ways.Mul(ways, big.NewInt(int64(n-k)))
			ways.Quo(ways, big.NewInt(int64(k+1)))
		}
	}
}
