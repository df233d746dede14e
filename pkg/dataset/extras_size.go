package dataset

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// sizeFacts is what the extra columns need of a size.
type sizeFacts struct {
	symmetries *puzzle.Symmetries
	solver     *solver.Solver // nil, as are the next, where no column needs it
	proofs     *solver.Proofs
	easier     []float64 // by min_moves, the percentage of solvable boards that need fewer; nil where it is not known
}

// maxFactCells bounds the sizes whose facts are kept: they are forgotten, all at
// once, when these have more cells in total.
const maxFactCells = 1 << 15

func (x *extras) factsOf(size puzzle.Size) (*sizeFacts, error) {
	if f := x.sizes[size]; f != nil {
		return f, nil
	}
	f, err := x.newFacts(size)
	if err != nil {
		return nil, fmt.Errorf("boards of %s: %w", size, err)
	}
	if x.cells += size.Cells(); x.sizes == nil || x.cells > maxFactCells {
		x.sizes, x.cells = map[puzzle.Size]*sizeFacts{}, size.Cells()
	}
	x.sizes[size] = f
	return f, nil
}

func (x *extras) newFacts(size puzzle.Size) (f *sizeFacts, err error) {
	f = &sizeFacts{}
	if x.orbits {
		f.symmetries = puzzle.NewSymmetries(x.spec.Rule, x.spec.Target, size)
	}
	wants := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return x.columns[name] != nil })
	}
	if !wants(colMaxMoves, colDifficulty, colWitness) {
		return f, nil
	}
	if f.solver, err = x.solvers.For(size); err != nil {
		return nil, err
	}
	if wants(colWitness) {
		f.proofs = f.solver.Proofs(x.spec.Target)
	}
	if wants(colDifficulty) {
		f.easier = percentages(f.solver.Minima(x.spec.Target))
	}
	return f, nil
}

// percentages returns what percentage of some counts come before each.
func percentages(counts []*big.Int) []float64 {
	total := new(big.Int)
	for _, n := range counts {
		total.Add(total, n)
	}
	var shares []float64
	before := new(big.Int)
	for _, n := range counts {
		percent := new(big.Rat).SetFrac(new(big.Int).Mul(before, big.NewInt(100)), total)
		share, _ := percent.Float64()
		shares = append(shares, share)
		before.Add(before, n)
	}
	return shares
}
