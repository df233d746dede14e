package solver

import (
	"fmt"
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Check applies every solution to its board by the definition of the rule,
// [puzzle.Rule.Press], which shares nothing with the solver, and compares the
// outcome with what the answer says it reaches and the presses with how many it
// says they are. An error means a bug in the solver or damaged memory. scratch
// is reset and overwritten; Check allocates nothing when it has room.
//
// It does not prove that there is no better solution.
func (s *Solver) Check(scratch *puzzle.Run, boards puzzle.Run, answers *puzzle.Answers) error {
	presses := answers.Solutions
	if presses.Size != boards.Size || presses.Count != boards.Count || len(answers.Status) != boards.Count {
		return fmt.Errorf("check answers: %d answers of %s for %d boards of %s", len(answers.Status), presses.Size, boards.Count, boards.Size)
	}
	scratch.Reset(boards.Size, boards.Count)
	copy(scratch.Masks, boards.Masks)
	s.rule.Press(*scratch, presses)
	for lo := 0; lo < boards.Count; lo += blockBoards {
		if i := firstWrong(*scratch, answers, lo, min(lo+blockBoards, boards.Count)); i >= 0 {
			return fmt.Errorf("check answers: board %d %s of the run: the %s solution %s with %d presses does not reach %s",
				i, boards.AppendText(nil, i), answers.Status[i], presses.AppendText(nil, i), answers.MinMoves[i], answers.Reached[i])
		}
	}
	return nil
}

// firstWrong returns the first of answers lo to hi-1 that is not confirmed by
// what pressing left, or -1.
func firstWrong(left puzzle.Run, answers *puzzle.Answers, lo, hi int) int {
	var want, care, wrong [blockBoards]uint16
	var moves [blockBoards]int32
	for i := lo; i < hi; i++ {
		want[i-lo] = -uint16(answers.Reached[i])
		if answers.Status[i] != puzzle.Impossible {
			care[i-lo] = ^uint16(0)
		}
	}
	for k := range left.BoardMasks() {
		full := left.FullMask(k)
		rest := left.Masks[k*left.Count+lo : k*left.Count+hi]
		presses := answers.Solutions.Masks[k*left.Count+lo : k*left.Count+hi]
		for i, m := range rest {
			wrong[i] |= (m ^ want[i]) & care[i] & full
			moves[i] += int32(bits.OnesCount16(presses[i]))
		}
	}
	for i := lo; i < hi; i++ {
		if wrong[i-lo] != 0 || moves[i-lo] != answers.MinMoves[i] || answers.Reached[i] > puzzle.One {
			return i
		}
	}
	return -1
}
