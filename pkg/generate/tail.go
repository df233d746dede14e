package generate

import (
	"fmt"
	"math/big"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// Boards near the most presses that any board needs are few, and what makes them is
// rare among all sets of so many presses. There tries are drawn among those sets alone
// of which no fewer presses do the same: first how many presses each class of cells
// has, then cells of each class. All else is as for other numbers of presses: what w
// sets make still comes w times as often, and stays with a chance of one in w.

// tail draws sets of presses of which no fewer do the same.
type tail struct {
	sets  *solver.Shortest
	words int // random words that choose between the combinations
}

// setTail has the tries drawn from the tail, if it is known and there is one.
func (g *Generator) setTail() error {
	sets := g.solver.Shortest(g.target, g.what.Presses)
	if sets == nil {
		return fmt.Errorf("generate %s: no board of %s was found that needs %d presses: %d that are so many from the target need fewer, and there are too many combinations of presses to go through them all", g.what, g.size, g.what.Presses, mostTries)
	}
	if sets.Count.Sign() == 0 {
		return fmt.Errorf("generate %s: no board of %s needs %d presses%s", g.what, g.size, g.what.Presses, g.most())
	}
	// One word more than a number of a set has makes sets equally likely but for 2^-64.
	g.tail = &tail{sets, (sets.Count.BitLen()+wordCells-1)/wordCells + 1}
	g.words += g.tail.words
	return nil
}

// most returns words that name the most presses that any board needs, if it is known
// and less than what is wanted.
func (g *Generator) most() string {
	for moves := g.what.Presses - 1; ; moves-- {
		if sets := g.solver.Shortest(g.target, moves); sets == nil {
			return ""
		} else if sets.Count.Sign() > 0 {
			return fmt.Sprintf(", the most is %d", moves)
		}
	}
}

// chooseInTail sets the presses of try i, all 0 before, by the words of a seed from
// number at on: as many as there are presses, which choose cells, then the lot, then
// those that choose a combination.
func (g *Generator) chooseInTail(run puzzle.Run, i int, seed, at uint64) {
	x := new(big.Int)
	for k := range g.tail.words {
		x.Lsh(x, wordCells)
		x.Or(x, new(big.Int).SetUint64(word(seed, at+uint64(g.what.Presses+1+k))))
	}
	x.Mul(x, g.tail.sets.Count)
	x.Rsh(x, uint(g.tail.words*wordCells))
	for class, presses := range g.tail.sets.Combination(x) {
		g.choose(run, i, g.tail.sets.Classes[class], presses, seed, at)
		at += uint64(presses)
	}
}
