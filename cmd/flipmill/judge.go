package main

import (
	"fmt"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// judgeOutput appends the answer to one puzzle as a judge expects it.
type judgeOutput func(dst []byte, a *puzzle.Answers) []byte

// judgeOutputs has the output of each preset's problem.
func judgeOutputs() map[string]judgeOutput {
	return map[string]judgeOutput{
		"flip-game": appendFlipGame,
		"fridge":    appendFridge,
		"fliptile":  appendFliptile,
	}
}

// appendFlipGame writes POJ 1753's answer: the number of presses.
func appendFlipGame(dst []byte, a *puzzle.Answers) []byte {
	if a.Status[0] == puzzle.Impossible {
		return append(dst, "Impossible\n"...)
	}
	return fmt.Appendf(dst, "%d\n", a.MinMoves[0])
}

// appendFridge writes POJ 2965's answer: the number of presses, then the row
// and column of each, 1-based, in row-major order.
func appendFridge(dst []byte, a *puzzle.Answers) []byte {
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
func appendFliptile(dst []byte, a *puzzle.Answers) []byte {
	if a.Status[0] == puzzle.Impossible {
		return append(dst, "IMPOSSIBLE\n"...)
	}
	return appendMatrix(dst, a.Solutions, " ")
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
