package main

import (
	"fmt"
	"math"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// answered is a puzzle with its answer.
type answered struct {
	*puzzle.Answers
	number int    // of the puzzle in its file, from 1
	id     []byte // the corpus's own; empty for none
}

// judgeOutput appends the answer to one puzzle as a judge expects it. It appends
// nothing where the problem has no word for such an answer.
type judgeOutput func(dst []byte, a answered) []byte

// judgeOutputs has the output of each preset's problem.
func judgeOutputs() map[string]judgeOutput {
	return map[string]judgeOutput{
		"flip-game":           appendFlipGame,
		"fridge":              appendFridge,
		"fliptile":            appendFliptile,
		"extended-lights-out": appendExtendedLightsOut,
		"painter":             appendPainter,
		"water-bowls":         appendWaterBowls,
		"lights-off":          appendLightsOff,
		"six-steps":           appendSixSteps,
		"zero-matrix":         appendZeroMatrix,
	}
}

// appendFlipGame writes POJ 1753's answer: the number of presses.
func appendFlipGame(dst []byte, a answered) []byte {
	if a.Status[0] == puzzle.Impossible {
		return append(dst, "Impossible\n"...)
	}
	return fmt.Appendf(dst, "%d\n", a.MinMoves[0])
}

// appendFridge writes POJ 2965's answer: the number of presses, then the row
// and column of each, 1-based, in row-major order.
func appendFridge(dst []byte, a answered) []byte {
	dst = appendFlipGame(dst, a)
	for row := range a.Solutions.Rows {
		for col := range a.Solutions.Cols {
			if a.Solutions.Cell(0, row, col) {
				dst = fmt.Appendf(dst, "%d %d\n", row+1, col+1)
			}
		}
	}
	return dst
}

// appendFliptile writes POJ 3279's answer: the solution as a matrix.
func appendFliptile(dst []byte, a answered) []byte {
	if a.Status[0] == puzzle.Impossible {
		return append(dst, "IMPOSSIBLE\n"...)
	}
	return appendMatrix(dst, a.Solutions, " ")
}

// appendExtendedLightsOut writes POJ 1222's answer: a numbered head and the
// solution, which on this size is the only one.
func appendExtendedLightsOut(dst []byte, a answered) []byte {
	if a.Status[0] == puzzle.Impossible {
		return dst
	}
	return appendMatrix(fmt.Appendf(dst, "PUZZLE #%d\n", a.number), a.Solutions, " ")
}

// appendPainter writes POJ 1681's answer: the number of presses.
func appendPainter(dst []byte, a answered) []byte {
	if a.Status[0] == puzzle.Impossible {
		return append(dst, "inf\n"...)
	}
	return fmt.Appendf(dst, "%d\n", a.MinMoves[0])
}

// appendWaterBowls writes POJ 3185's answer: the number of presses.
func appendWaterBowls(dst []byte, a answered) []byte {
	if a.Status[0] == puzzle.Impossible {
		return dst
	}
	return fmt.Appendf(dst, "%d\n", a.MinMoves[0])
}

// appendLightsOff writes UVa 10309's answer: the name and the number of presses.
// It never exceeds the problem's limit of 100, the number of cells.
func appendLightsOff(dst []byte, a answered) []byte {
	return appendAtMost(fmt.Appendf(dst, "%s ", a.id), a, 100)
}

// appendSixSteps writes Vijos 1197's answer: the number of presses, if 6 are
// enough.
func appendSixSteps(dst []byte, a answered) []byte { return appendAtMost(dst, a, 6) }

// appendZeroMatrix writes LeetCode 1284's answer: the number of presses, or -1.
func appendZeroMatrix(dst []byte, a answered) []byte { return appendAtMost(dst, a, math.MaxInt32) }

// appendAtMost writes the number of presses, or -1 where there is none up to most.
func appendAtMost(dst []byte, a answered, most int32) []byte {
	if a.Status[0] == puzzle.Impossible || a.MinMoves[0] > most {
		return append(dst, "-1\n"...)
	}
	return fmt.Appendf(dst, "%d\n", a.MinMoves[0])
}

// appendMatrix writes a board of one-board run as lines of cells.
func appendMatrix(dst []byte, board puzzle.Run, separator string) []byte {
	text := board.AppendText(nil, 0)
	for k, cell := range text {
		dst = append(dst, cell)
		if (k+1)%board.Cols == 0 {
			dst = append(dst, '\n')
		} else {
			dst = append(dst, separator...)
		}
	}
	return dst
}
