package draw

import (
	"html/template"
	"strconv"
	"strings"
)

// Board is a board on the way to its target, with the presses that lead there. The
// presses are made one after the other, row by row.
type Board struct {
	Name       string // for those who do not see it; empty where it is described beside
	Rows, Cols int
	Cells      string // rows*cols characters 0 and 1, as the board is now
	Presses    string // in the same form; empty for none
	Made       int    // presses that have been made
	Next       bool   // whether the one after them stands out
}

const (
	cellSize = 10.0 // from one cell to the next
	cellGap  = 1.0  // between two cells
)

// mostNumbers is the most presses that are numbered. If there are more, none is: the
// numbers would not fit into their cells.
const mostNumbers = 99

// Numbered reports whether a board is so small that the numbers of its presses can be
// read in a list of boards.
func Numbered(rows, cols int) bool { return max(rows, cols) <= 10 }

// SVG draws the board.
func (b Board) SVG() template.HTML {
	var s svg
	class := "board"
	if !Numbered(b.Rows, b.Cols) {
		class += " large"
	}
	s.open(class, b.Name, float64(b.Cols)*cellSize+cellGap, float64(b.Rows)*cellSize+cellGap)
	for _, kind := range [...]struct {
		class string
		cell  byte
	}{{"off", '0'}, {"on", '1'}} {
		s.WriteString(`<path class="` + kind.class + `" d="`)
		for i := range len(b.Cells) {
			if b.Cells[i] == kind.cell {
				s.square(b.corner(i))
			}
		}
		s.WriteString(`"/>`)
	}
	made, numbered := 0, strings.Count(b.Presses, "1") <= mostNumbers
	for i := range len(b.Presses) {
		if b.Presses[i] != '1' {
			continue
		}
		class := "press"
		switch {
		case made < b.Made:
			class = "press made"
		case made == b.Made && b.Next:
			class = "press next"
		}
		made++
		b.press(&s, class, i, made, numbered)
	}
	return s.close()
}

// corner returns the upper left corner of a cell.
func (b Board) corner(cell int) (x, y float64) {
	return float64(cell%b.Cols)*cellSize + cellGap, float64(cell/b.Cols)*cellSize + cellGap
}

// square adds a cell to a path.
func (s *svg) square(x, y float64) {
	const round = "1.2"
	const side = "6.6" // without the round corners
	s.WriteString("M" + number(x+1.2) + " " + number(y) +
		"h" + side + "a" + round + " " + round + " 0 0 1 " + round + " " + round +
		"v" + side + "a" + round + " " + round + " 0 0 1-" + round + " " + round +
		"h-" + side + "a" + round + " " + round + " 0 0 1-" + round + "-" + round +
		"v-" + side + "a" + round + " " + round + " 0 0 1 " + round + "-" + round + "z")
}

// press marks a press, with its number if they have any.
func (b Board) press(s *svg, class string, cell, nth int, numbered bool) {
	x, y := b.corner(cell)
	x, y = x+(cellSize-cellGap)/2, y+(cellSize-cellGap)/2
	s.WriteString(`<circle class="` + class + `" cx="` + number(x) + `" cy="` + number(y) + `" r="3"/>`)
	if numbered {
		s.text(class+" number", x, y, strconv.Itoa(nth))
	}
}
