package solver

import "github.com/flipmill/flipmill/pkg/puzzle"

// Longest finds how many presses the longest solutions of boards have. It keeps its
// memory: use one per goroutine.
//
// The presses that a solution leaves out solve the board that is left when all cells
// of this one are pressed. So its shortest solution leaves out the longest.
type Longest struct {
	solver    *Solver    // of the last boards
	effect    puzzle.Run // what pressing all cells toggles
	pressed   puzzle.Run
	zero, one puzzle.Answers
}

// Append appends the presses of each board's longest solution for what its answer
// reaches; 0 unless it is Solved. The answers are those of the solver.
func (l *Longest) Append(dst []int32, s *Solver, boards puzzle.Run, answers *puzzle.Answers) []int32 {
	if l.solver != s {
		l.solver, l.effect = s, puzzle.NewRun(s.size, 1)
		s.rule.Press(l.effect, s.ones())
	}
	n := boards.Count
	l.pressed.Reset(s.size, n)
	for k, toggled := range l.effect.Masks {
		for i, mask := range boards.Masks[k*n : (k+1)*n] {
			l.pressed.Masks[k*n+i] = mask ^ toggled
		}
	}
	var reached [2]bool // zero, one
	for i, status := range answers.Status {
		if status == puzzle.Solved {
			reached[answers.Reached[i]] = true
		}
	}
	if reached[puzzle.Zero] {
		s.Solve(&l.zero, l.pressed, puzzle.Zero)
	}
	if reached[puzzle.One] {
		s.Solve(&l.one, l.pressed, puzzle.One)
	}
	cells := int32(s.size.Cells())
	for i, status := range answers.Status {
		most := int32(0)
		switch {
		case status != puzzle.Solved:
		case answers.Reached[i] == puzzle.Zero:
			most = cells - l.zero.MinMoves[i]
		default:
			most = cells - l.one.MinMoves[i]
		}
		dst = append(dst, most)
	}
	return dst
}
