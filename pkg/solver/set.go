package solver

import (
	"sync"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Set holds the solvers of one rule, one for each size that it was asked for,
// for corpora that mix sizes. It is safe for concurrent use.
type Set struct {
	rule puzzle.Rule
	opts Options

	mu      sync.Mutex
	solvers map[puzzle.Size]*member
	sizes   []puzzle.Size // in the order they came
	cells   int           // sum of the sizes' tabled cells
}

// member is a solver that may still be in the making.
type member struct {
	once   sync.Once
	solver *Solver
	err    error
}

// maxSetCells bounds a Set: solvers are dropped, oldest first, while their sizes
// have more tabled cells in total. Tables take at most 4 KB a cell, so this is 64 MB in
// the worst case, and 300 KB for each of the 50 sizes up to 16 cells; plus needs
// a tenth of that.
const maxSetCells = 1 << 14

// tabled returns the number of cells that a solver's tables are large for. Those of
// sweep, where lines have more than 16, are large for 16 of them.
func tabled(size puzzle.Size) int { return size.Lines() * min(size.Width(), maxWidth) }

// NewSet returns an empty set.
func NewSet(rule puzzle.Rule, opts Options) *Set {
	return &Set{rule: rule, opts: opts, solvers: make(map[puzzle.Size]*member)}
}

// For returns the solver for a size. It is made on first use; others asking for
// the same size meanwhile wait for it.
func (s *Set) For(size puzzle.Size) (*Solver, error) {
	m := s.member(size)
	m.once.Do(func() { m.solver, m.err = New(s.rule, size, s.opts) })
	return m.solver, m.err
}

func (s *Set) member(size puzzle.Size) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.solvers[size]; ok {
		return m
	}
	if s.rule.CheckSize(size) != nil {
		return new(member) // New says why; nothing to keep
	}
	m := new(member)
	s.solvers[size] = m
	s.sizes = append(s.sizes, size)
	s.cells += tabled(size)
	for s.cells > maxSetCells {
		delete(s.solvers, s.sizes[0])
		s.cells -= tabled(s.sizes[0])
		s.sizes = s.sizes[1:]
	}
	return m
}
