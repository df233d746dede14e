package solver

import (
	"iter"
	"math/big"
	"math/bits"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Cells that are in the same quiet patterns make a class. How many presses a board's
// shortest solution has depends only on how many any of its solutions has in each
// class; how many solutions have as many there is a product of binomials.

// maxPatterns is the most patterns in a basis whose sums are gone through.
const maxPatterns = 20

// combinations goes through the numbers of presses in each class.
type combinations struct {
	classes  [][]int // cells, counted row by row, in the order of their first ones
	patterns []int   // that each class is in, a bit for each
	free     []int   // cells that are in none
	joined   bool    // one of the patterns turns a solution for one target into one for the other

	presses []int // in each class
	moves   []int // of a solution with these presses, without the free cells, by the patterns that are added to it
}

// combinations returns those for a target, or nil if there are too many patterns.
func (s *Solver) combinations(target puzzle.Target) *combinations {
	quiet, toOne := s.Quiet(), s.toOne()
	m := &combinations{joined: target == puzzle.Either && toOne.Count > 0}
	patterns := quiet.Count
	if m.joined { // a solution for one target plus toOne is one for the other
		patterns++
	}
	if patterns > maxPatterns {
		return nil
	}
	for cell := range s.size.Cells() {
		in, row, col := 0, cell/s.size.Cols, cell%s.size.Cols
		for i := range quiet.Count {
			if quiet.Cell(i, row, col) {
				in |= 1 << i
			}
		}
		if m.joined && toOne.Cell(0, row, col) {
			in |= 1 << quiet.Count
		}
		m.add(cell, in)
	}
	m.presses, m.moves = make([]int, len(m.classes)), make([]int, 1<<patterns)
	return m
}

// add adds a cell that is in some patterns to its class.
func (m *combinations) add(cell, patterns int) {
	if patterns == 0 {
		m.free = append(m.free, cell)
		return
	}
	class := slices.Index(m.patterns, patterns)
	if class < 0 {
		class = len(m.classes)
		m.classes, m.patterns = append(m.classes, nil), append(m.patterns, patterns)
	}
	m.classes[class] = append(m.classes[class], cell)
}

// each goes through the combinations of this class and those behind it, in
// lexicographic order. It enters each class, and behind the last one each combination,
// with the number of solutions that have what is chosen before it, without the free
// cells; or goes no further if enter says so.
func (m *combinations) each(class int, ways *big.Int, enter func(class int, ways *big.Int) bool) {
	if !enter(class, ways) || class == len(m.classes) {
		return
	}
	n := len(m.classes[class])
	m.change(class, 0, n)
	for k, binomial := range binomials(n) {
		m.presses[class] = k
		m.each(class+1, new(big.Int).Mul(ways, binomial), enter)
		m.change(class, 1, -1)
	}
	m.change(class, -n-1, 1)
}

// change adds presses to the moves: where a class is as it is, and where the added
// patterns invert it.
func (m *combinations) change(class, as, inverted int) {
	for added := range m.moves {
		if bits.OnesCount(uint(added&m.patterns[class]))%2 == 0 {
			m.moves[added] += as
		} else {
			m.moves[added] += inverted
		}
	}
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
