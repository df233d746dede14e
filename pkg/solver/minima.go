package solver

import (
	"math/big"
	"slices"

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
func (s *Solver) Minima(target puzzle.Target) []*big.Int {
	if s.size.Cells() > maxMinimaCells {
		return nil
	}
	m := s.combinations(target)
	if m == nil {
		return nil
	}
	total := len(m.moves)
	for _, cells := range m.classes {
		if total *= len(cells) + 1; total > maxMinima {
			return nil
		}
	}
	found := make([]*big.Int, s.size.Cells()+1) // solutions, without the cells that are in no pattern
	for moves := range found {
		found[moves] = new(big.Int)
	}
	m.each(0, big.NewInt(1), func(class int, ways *big.Int) bool {
		if class == len(m.classes) {
			fewest := found[slices.Min(m.moves)]
			fewest.Add(fewest, ways)
		}
		return true
	})
	boards := spread(found, len(m.free))
	for _, n := range boards {
		n.Rsh(n, uint(s.Nullity())) // each board was counted with all of its solutions
		if target == puzzle.Either && !m.joined {
			n.Lsh(n, 1) // there are as many again that reach one
		}
	}
	return boards
}

// spread returns what was found with some free cells: any of these may be pressed.
func spread(found []*big.Int, free int) []*big.Int {
	all := make([]*big.Int, len(found))
	for moves := range all {
		all[moves] = new(big.Int)
	}
	var product big.Int
	for pressed, ways := range binomials(free) {
		for moves, n := range found {
			if n.Sign() != 0 {
				all[moves+pressed].Add(all[moves+pressed], product.Mul(n, ways))
			}
		}
	}
	return all
}
