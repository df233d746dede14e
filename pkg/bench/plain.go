package bench

import (
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// The plain ways to find the fewest presses, which know nothing of linear algebra.
// They are what the solver is compared with, in speed and, in the tests, in what it
// says.

// plainRows tries all first rows of a board of the rule plus. Each decides all rows
// below, because only the cell below can still clear a cell. It returns the fewest
// presses that clear the board, -1 where none do.
func plainRows(size puzzle.Size, board []uint16) int {
	full := uint16(1)<<size.Cols - 1
	least := -1
	for first := range 1 << size.Cols {
		above, press, presses := uint16(0), uint16(first), 0
		for row := range size.Rows {
			presses += bits.OnesCount16(press)
			left := board[row] ^ press ^ press<<1&full ^ press>>1 ^ above
			above, press = press, left
		}
		if press == 0 && (least < 0 || presses < least) {
			least = presses
		}
	}
	return least
}

// plainSets tries all sets of presses on a board of at most 16 cells, one press
// more or less at a time. toggles says what a press at each cell does.
func plainSets(toggles []uint16, board uint16) int {
	least := -1
	for set := range 1 << len(toggles) {
		if set > 0 {
			board ^= toggles[bits.TrailingZeros(uint(set))]
		}
		if presses := bits.OnesCount(uint(set ^ set>>1)); board == 0 && (least < 0 || presses < least) {
			least = presses
		}
	}
	return least
}

// togglesOf returns what a press at each cell of a board of at most 16 toggles.
func togglesOf(rule puzzle.Rule, size puzzle.Size) []uint16 {
	toggles := make([]uint16, size.Cells())
	for cell := range toggles {
		board, press := puzzle.NewRun(size, 1), puzzle.NewRun(size, 1)
		press.SetCell(0, cell/size.Cols, cell%size.Cols)
		rule.Press(board, press)
		toggles[cell] = packed(board, 0)
	}
	return toggles
}

// packed returns board i of a run of at most 16 cells in one word, cell 0 the
// lowest bit.
func packed(boards puzzle.Run, i int) (word uint16) {
	for cell := range boards.Cells() {
		if boards.Cell(i, cell/boards.Cols, cell%boards.Cols) {
			word |= 1 << cell
		}
	}
	return word
}
