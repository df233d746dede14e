// Package puzzle defines the puzzles: boards, the rules that say what a press
// toggles, the targets to reach, and what an answer consists of.
//
// A board is rows × cols cells; 1 means "to be cleared". Its text form is
// rows*cols characters '0' or '1', row-major, no separators. A solution is the
// set of cells to press and has the same form.
//
// In memory boards travel in runs: consecutive boards of one size, kept as
// uint16 masks with the same mask of all boards side by side (see [Run]). Column 0
// is the highest bit of a line, so comparing masks as numbers compares boards as
// text.
//
// The package imports nothing of ours and has no state. Values are plain data;
// methods that write into a Run are safe for concurrent use on disjoint runs.
package puzzle

import (
	"fmt"
	"strconv"
	"strings"
)

// A board fits when its shorter side has at most MaxWidth cells and its longer side
// at most MaxLines.
const (
	MaxWidth = 64
	MaxLines = 256
)

// maskBits is the number of cells that fit a mask.
const maskBits = 16

// Size is a board's number of rows and columns.
type Size struct {
	Rows, Cols int
}

// ParseSize reads the form "RxC", such as "5x6".
func ParseSize(text string) (Size, error) {
	rows, cols, _ := strings.Cut(text, "x")
	r, errRows := strconv.ParseUint(rows, 10, 31)
	c, errCols := strconv.ParseUint(cols, 10, 31)
	if errRows != nil || errCols != nil {
		return Size{}, fmt.Errorf("size %q: want ROWSxCOLS, such as 5x6", text)
	}
	s := Size{Rows: int(r), Cols: int(c)}
	return s, s.Validate()
}

// Validate reports a size that no board has. See also [Rule.CheckSize].
func (s Size) Validate() error {
	switch {
	case s.Rows < 1 || s.Cols < 1:
		return fmt.Errorf("size %s: a board has at least 1 row and 1 column", s)
	case min(s.Rows, s.Cols) > MaxWidth || max(s.Rows, s.Cols) > MaxLines:
		return fmt.Errorf("size %s: the shorter side may have at most %d cells and the longer at most %d", s, MaxWidth, MaxLines)
	}
	return nil
}

// String returns the form that ParseSize reads.
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }

// Cells returns the number of cells of a board.
func (s Size) Cells() int { return s.Rows * s.Cols }

// Transposed reports whether boards of this size are stored by columns: these take
// fewer masks each than the rows do.
func (s Size) Transposed() bool { return masksFor(s.Cols) > masksFor(s.Rows) }

func masksFor(cells int) int { return int(uint(cells+maskBits-1) / maskBits) }

// Lines returns the number of lines of a board: its rows, or its columns where the
// size is Transposed.
func (s Size) Lines() int {
	if s.Transposed() {
		return s.Cols
	}
	return s.Rows
}

// Width returns the number of cells in a line.
func (s Size) Width() int {
	if s.Transposed() {
		return s.Rows
	}
	return s.Cols
}

// LineMasks returns the number of masks in a line: 1 up to a Width of 16.
func (s Size) LineMasks() int { return masksFor(s.Width()) }

// BoardMasks returns the number of masks of a board.
func (s Size) BoardMasks() int { return s.Lines() * s.LineMasks() }

// MaskWidth returns the number of cells in mask k of a board: 16 but for the last
// mask of each line, which has the rest.
func (s Size) MaskWidth(k int) int {
	width, masks := s.Width(), s.LineMasks()
	if k%masks < masks-1 {
		return maskBits
	}
	return width - (masks-1)*maskBits
}

// FullMask returns mask k of a board whose cells are all 1.
func (s Size) FullMask(k int) uint16 { return 1<<s.MaskWidth(k) - 1 }

// Status says how far an answer got.
type Status uint8

// The statuses of an answer.
const (
	Solved     Status = iota // a solution, proved to have the fewest presses
	Impossible               // proved to have no solution
	Unproven                 // a solution, not claimed to have the fewest presses
)

var statusNames = [...]string{Solved: "solved", Impossible: "impossible", Unproven: "unproven"}

// String returns the status as the dataset spells it.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// ParseStatus reads what Status.String writes.
func ParseStatus(text string) (Status, error) {
	for s, name := range statusNames {
		if name == text {
			return Status(s), nil
		}
	}
	return 0, fmt.Errorf("status %q: want solved, impossible or unproven", text)
}

// Target is the board, or the choice of boards, to reach.
type Target uint8

// The targets.
const (
	Zero   Target = iota // all cells 0
	One                  // all cells 1
	Either               // Zero or One, whichever needs fewer presses; Zero on a tie
)

var targetNames = [...]string{Zero: "zero", One: "one", Either: "either"}

// ParseTarget reads a target's name.
func ParseTarget(text string) (Target, error) {
	for t, name := range targetNames {
		if name == text {
			return Target(t), nil
		}
	}
	return 0, fmt.Errorf("target %q: want zero, one or either", text)
}

// String returns the name that ParseTarget reads.
func (t Target) String() string {
	if int(t) < len(targetNames) {
		return targetNames[t]
	}
	return fmt.Sprintf("Target(%d)", uint8(t))
}
