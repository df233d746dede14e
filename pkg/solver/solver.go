// Package solver finds, for every board of a run, the fewest presses that reach
// the target, the least solution with that many presses, and how many such
// solutions there are.
//
// Terms. A quiet pattern is a set of presses that changes nothing; the nullity
// is the dimension of their space over GF(2), so a solvable board has exactly
// 2^nullity solutions: any one of them plus every quiet pattern. The least of
// some solutions is the one whose row-major text comes first. A kernel is a way
// to get from boards to answers; there are five:
//
//	chase    row-chasing stencils, such as plus: two passes over the lines
//	linear   any rule, through tables of the inverse (small boards, king, x, tori)
//	sweep    any stencil, on boards with more than 16 cells on the shorter side
//	fridge   exact at every size without walking over the quiet patterns
//	tiny     a table of all boards (up to 16 cells), made with one of the others
//
// Usage:
//
//	s, err := solver.New(rule, size, solver.Options{})
//	...
//	s.Solve(&answers, run, puzzle.Zero)
//	err = s.Check(&scratch, run, &answers)
//
// A Solver never changes after New and may be used by many goroutines at once,
// each with its own Answers. Solve allocates nothing when the Answers have room.
//
// Invariants. Answers are a function of rule, size, board, target and search
// limit only: not of the other boards of the run, nor of the kernel. Solved means
// proved; where the proof would take more candidates than Options.SearchLimit
// the status is Unproven. Boards are never modified.
package solver

import (
	"fmt"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// DefaultSearchLimit is the search limit where Options does not name one: about
// ten milliseconds for one board.
const DefaultSearchLimit = 1 << 20

// Options tunes a Solver. The zero value is ready to use.
type Options struct {
	// SearchLimit is the most candidate solutions enumerated for one board and
	// one target; 0 means DefaultSearchLimit. The fridge rule never needs it.
	SearchLimit int64
}

// Solver solves the boards of one rule and size.
type Solver struct {
	rule    puzzle.Rule
	size    puzzle.Size
	nullity int

	// The kernel: exactly one is set, but for tiny. They are not behind an interface
	// because that would move every block from the stack to the heap.
	chase  *chase
	linear *linear
	sweep  *sweep
	fridge *fridge
	tiny   *tiny // set as well where it can take the other's place
}

// New prepares a solver. It takes about a millisecond for small boards and
// row-chasing rules, up to about a second for other rules at 256×16.
func New(rule puzzle.Rule, size puzzle.Size, opts Options) (*Solver, error) {
	if err := rule.CheckSize(size); err != nil {
		return nil, err
	}
	if !rule.Fridge() && rule.Stencil() == [3]uint8{} {
		return nil, fmt.Errorf("solver for rule %q: the rule toggles nothing", rule)
	}
	limit := opts.SearchLimit
	switch {
	case limit == 0:
		limit = DefaultSearchLimit
	case limit < 0:
		return nil, fmt.Errorf("search limit %d: want 0 for the default, or a positive number", limit)
	}
	s := &Solver{rule: rule, size: size}
	switch {
	case rule.Fridge() && !smallFridge(size):
		s.fridge = newFridge(size)
		s.nullity = s.fridge.nullity
	case size.Width() > maxWidth:
		s.sweep = newSweep(rule, size, limit)
		s.nullity = s.sweep.quiet.nullity()
	case chasable(rule, size) && size.Cells() > wordCells:
		s.chase = newChase(rule, size, limit)
		s.nullity = s.chase.quiet.nullity()
	default:
		s.linear = newLinear(rule, size, limit)
		s.nullity = s.linear.quiet.nullity()
	}
	s.tiny = newTiny(s)
	return s, nil
}

// Nullity returns the dimension of the quiet patterns.
func (s *Solver) Nullity() int { return s.nullity }

// Size returns the size of the boards that s solves.
func (s *Solver) Size() puzzle.Size { return s.size }

// Solve answers every board of the run, whose size must be the solver's. dst is
// reset to the run.
func (s *Solver) Solve(dst *puzzle.Answers, boards puzzle.Run, target puzzle.Target) {
	s.SolveUntil(nil, dst, boards, target)
}

// SolveUntil is Solve, unless stop is closed before it has come to the end: then it
// ends within some ten milliseconds and reports false, and what dst has is of no use.
func (s *Solver) SolveUntil(stop <-chan struct{}, dst *puzzle.Answers, boards puzzle.Run, target puzzle.Target) bool {
	if boards.Size != s.size || target > puzzle.Either {
		panic(fmt.Sprintf("BUG: solver: boards of %s for target %s, solver is for %s", boards.Size, target, s.size))
	}
	dst.Reset(boards.Size, boards.Count)
	dst.Nullity = s.nullity
	if s.size.Lines() <= lowLines || s.sweep != nil {
		var masks [lowLines * blockBoards]uint16
		return s.solveRun(stop, masks[:], dst, boards, target)
	}
	var masks [puzzle.MaxLines * blockBoards]uint16
	return s.solveRun(stop, masks[:], dst, boards, target)
}

// solveRun answers the boards block by block, with room for a block's masks.
func (s *Solver) solveRun(stop <-chan struct{}, masks []uint16, dst *puzzle.Answers, boards puzzle.Run, target puzzle.Target) bool {
	b := block{masks: masks, scratch: scratch{stop: stop}}
	var rest tail
	for lo := 0; lo < boards.Count; lo += blockBoards {
		if stopped(stop) {
			return false
		}
		b.n = min(blockBoards, boards.Count-lo)
		if b.n == blockBoards {
			b.verdict = verdict{(*column[puzzle.Status])(dst.Status[lo:]), (*column[int32])(dst.MinMoves[lo:]), (*column[int64])(dst.OptimalCount[lo:])}
			b.reached = (*column[puzzle.Target])(dst.Reached[lo:])
		} else {
			b.verdict, b.reached = verdict{&rest.status, &rest.moves, &rest.count}, &rest.reached
		}
		if b.n == blockBoards && s.small() {
			s.solveSmall(&b, dst.Solutions.Masks[lo:], boards.Masks[lo:], boards.Count, target)
		} else if s.sweep != nil {
			s.sweep.solve(&b, dst.Solutions.Masks[lo:], boards.Masks[lo:], boards.Count, target)
		} else {
			b.load(boards, lo)
			s.solve(&b, target)
			b.store(dst.Solutions, lo)
		}
		if b.n < blockBoards {
			rest.store(dst, lo, b.n)
		}
	}
	return !stopped(stop)
}

func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// solve answers the boards of the block in their place.
func (s *Solver) solve(b *block, target puzzle.Target) {
	switch {
	case s.small():
		s.solveSmall(b, b.masks, b.masks, blockBoards, target)
	case s.chase != nil:
		s.chase.solve(b, target)
	case s.linear != nil:
		s.linear.solve(b, target)
	default:
		s.fridge.solve(b, target)
	}
}

// small reports whether boards have so few lines that they need not be copied
// to a block.
func (s *Solver) small() bool { return s.tiny != nil || s.linear != nil && s.linear.row == 1 }

// solveSmall answers the boards of the block. It reads their lines from in and
// writes those of the solutions to out, stride masks apart.
func (s *Solver) solveSmall(b *block, out, in []uint16, stride int, target puzzle.Target) {
	if s.tiny != nil {
		s.tiny.solve(b, out, in, stride, target)
	} else {
		s.linear.solveWords(b, out, in, stride, target)
	}
}
