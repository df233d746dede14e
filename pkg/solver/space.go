package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

// Quiet returns a basis of the quiet patterns as a run of presses: of the least
// texts, the greatest first. None has a press where another begins, so the greater
// of two sums is the one that has the first pattern in which they differ.
func (s *Solver) Quiet() puzzle.Run {
	patterns, order := s.quietPatterns()
	run := puzzle.NewRun(s.size, len(patterns))
	for i, p := range patterns {
		for cell, position := range order {
			if bit(p, position) {
				run.SetCell(i, cell/s.size.Cols, cell%s.size.Cols)
			}
		}
	}
	return run
}

// quietPatterns returns the basis and the positions of its cells.
func (s *Solver) quietPatterns() (patterns [][]uint64, order []int) {
	switch {
	case s.fridge != nil:
		return s.fridge.quietPatterns()
	case s.chase != nil:
		return s.chase.quiet.basis, s.chase.quiet.order
	case s.sweep != nil:
		return s.sweep.quiet.basis, s.sweep.quiet.order
	default:
		return s.linear.quiet.basis, s.linear.quiet.order
	}
}

// quietPatterns is as of Solver. Where rows have an odd number of cells, each row,
// pressed as a whole, inverts the board, so two rows are a quiet pattern; the same
// is true of columns.
func (f *fridge) quietPatterns() (patterns [][]uint64, order []int) {
	n := f.size.Cells()
	var vectors []vector
	pair := func(in func(cell int) int, i int) {
		v := vector{cells: make([]uint64, (n+63)/64)}
		for cell := range n {
			if of := in(cell); of == i || of == i+1 {
				toggle(v.cells, cell)
			}
		}
		vectors = append(vectors, v)
	}
	if f.size.Cols%2 == 1 {
		for i := range f.size.Rows - 1 {
			pair(func(cell int) int { return cell / f.size.Cols }, i)
		}
	}
	if f.size.Rows%2 == 1 {
		for i := range f.size.Cols - 1 {
			pair(func(cell int) int { return cell % f.size.Cols }, i)
		}
	}
	for cell := range n {
		order = append(order, cell)
	}
	eliminate(vectors, order)
	for _, v := range vectors {
		patterns = append(patterns, v.cells)
	}
	return patterns, order
}
