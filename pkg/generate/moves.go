package generate

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// Boards that need so many presses. Each board has a seed of its own, which makes a
// sequence of tries: that many presses on the target, each set of them equally
// likely. The first try that needs no fewer is the board. What w sets of presses make
// comes w times as often as what one makes, so of those each stays with a chance of
// one in w: then all boards are equally likely. It is rejection sampling
// (von Neumann, 1951).

// mostTries is how many tries there are to find the first board of a corpus. Where
// it is found others are found, too, and the search for them needs no bound. Where it
// is not the boards are drawn from the tail.
const mostTries = 1 << 16

// triesAtOnce is how many tries are solved at a time.
const triesAtOnce = 1024

// setMoves gets the solver and finds out whether there are such boards.
func (g *Generator) setMoves(solvers *solver.Set) (err error) {
	if solvers == nil {
		return fmt.Errorf("generate %s: there is nothing to solve boards with", g.what)
	}
	if g.solver, err = solvers.For(g.size); err != nil {
		return err
	}
	t := tries{g: g}
	first := []*search{{seed: word(g.what.Seed, 0)}}
	for first[0].next < mostTries {
		t.make(first, 64)
		if first[0].found {
			return nil
		}
		if t.unproven {
			return fmt.Errorf("generate %s: the fewest presses of boards of %s are not proved within the search limit", g.what, g.size)
		}
	}
	return g.setTail()
}

// chooseByMoves fills the run with the boards from number from on.
func (g *Generator) chooseByMoves(run puzzle.Run, from uint64) {
	t := tries{g: g}
	var open []*search
	for lo := 0; lo < run.Count; lo += triesAtOnce {
		for i := lo; i < min(lo+triesAtOnce, run.Count); i++ {
			open = append(open, &search{at: i, seed: word(g.what.Seed, from+uint64(i))})
		}
		for len(open) > 0 {
			t.make(open, triesAtOnce/len(open))
			open = slices.DeleteFunc(open, func(s *search) bool {
				for k := 0; s.found && k < run.BoardMasks(); k++ {
					run.Masks[k*run.Count+s.at] = t.boards.Masks[k*t.boards.Count+s.try]
				}
				return s.found
			})
		}
	}
}

// search is the search for one board.
type search struct {
	at    int    // place of the board in its run
	seed  uint64 // of its tries
	next  uint64 // number of the next try
	found bool
	try   int // that is the board, among those that were made last
}

// tries makes tries, in memory of its own.
type tries struct {
	g               *Generator
	boards, presses puzzle.Run
	answers         [2]puzzle.Answers // for the targets of all 0 and all 1
	unproven        bool              // the solver proves nothing about this size
}

// make makes some tries for each search, which then knows whether it has found its
// board.
func (t *tries) make(searches []*search, each int) {
	g := t.g
	t.boards.Reset(g.size, len(searches)*each)
	t.presses.Reset(g.size, t.boards.Count)
	clear(t.presses.Masks)
	// at returns the seed of a try and the number there of its first word.
	at := func(i int) (seed, word uint64) {
		s := searches[i/each]
		return s.seed, (s.next + uint64(i%each)) * uint64(g.words)
	}
	for i := range t.boards.Count {
		seed, first := at(i)
		if g.tail != nil {
			g.chooseInTail(t.presses, i, seed, first)
		} else {
			g.choose(t.presses, i, g.all, g.what.Presses, seed, first)
		}
	}
	g.press(t.boards, t.presses, func(i int) bool {
		seed, first := at(i)
		return word(seed, first+uint64(g.words)-1)>>(wordCells-1) == 1
	})
	for _, target := range g.targets() {
		g.solver.Solve(&t.answers[target], t.boards, target)
	}
	for k, s := range searches {
		for i := k * each; i < (k+1)*each && !s.found; i++ {
			seed, first := at(i)
			lot, _ := bits.Mul64(word(seed, first+uint64(g.what.Presses)), t.ways(i))
			s.found, s.try = t.ways(i) > 0 && lot == 0, i
		}
		s.next += uint64(each)
	}
}

// ways returns how many sets of the wanted number of presses make a board; none if
// fewer presses do.
func (t *tries) ways(i int) (ways uint64) {
	for _, target := range t.g.targets() {
		a := &t.answers[target]
		moves := int(a.MinMoves[i])
		switch {
		case a.Status[i] == puzzle.Unproven:
			t.unproven = true
			return 0
		case a.Status[i] == puzzle.Impossible:
		case moves < t.g.what.Presses:
			return 0
		case moves == t.g.what.Presses:
			ways += uint64(a.OptimalCount[i])
		}
	}
	return ways
}

// targets returns the boards to reach, one or both.
func (g *Generator) targets() []puzzle.Target {
	if g.target == puzzle.Either {
		return []puzzle.Target{puzzle.Zero, puzzle.One}
	}
	return []puzzle.Target{g.target}
}
