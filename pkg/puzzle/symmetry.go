package puzzle

import (
	"bytes"
	"iter"
	"maps"
)

// Symmetries are the ways to turn and mirror boards of one size that keep a
// rule: a press at the image of a cell toggles the images of what a press at the
// cell toggles. Where the rule is a torus, boards are shifted around their edges
// too, and where the target is either, their 0 and 1 are exchanged. So all images
// of a board need equally many presses, and have as many solutions.
//
// What the fridge rule keeps besides, any order of the rows and of the columns,
// is not among them.
//
// Symmetries have memory to work in: use them in one goroutine at a time.
type Symmetries struct {
	size   Size
	turns  [][]int32 // an image has at cell k the board's cell turns[i][k]; the first turn leaves all in place
	shifts bool
	swaps  []byte // what is added to all cells: 0, and 1 where they are exchanged

	twice []byte
}

// NewSymmetries returns the symmetries of boards of a valid size.
func NewSymmetries(rule Rule, target Target, size Size) *Symmetries {
	s := &Symmetries{size: size, shifts: rule.torus, swaps: []byte{0}}
	if target == Either {
		s.swaps = append(s.swaps, 1)
	}
	for i := range 8 {
		t := turn{upsideDown: i&1 != 0, leftRight: i&2 != 0, transposed: i&4 != 0}
		if t.transposed && size.Rows != size.Cols || !rule.keptBy(t, size) {
			continue
		}
		cells := make([]int32, 0, size.Cells())
		for row := range size.Rows {
			for col := range size.Cols {
				r, c := t.cell(row, col, size.Rows-1, size.Cols-1)
				cells = append(cells, int32(r*size.Cols+c))
			}
		}
		s.turns = append(s.turns, cells)
	}
	return s
}

// Canonical appends the least image of a board to dst, both in text form. It
// returns too how many different images there are, the board itself included.
func (s *Symmetries) Canonical(dst, board []byte) (least []byte, orbit int) {
	from := len(dst)
	dst = append(dst, board...)
	o := orbits{best: dst[from:]}
	for _, swap := range s.swaps {
		for _, turn := range s.turns {
			if s.shifts {
				s.offerShifts(&o, board, turn, swap)
			} else {
				o.offer(board, turn, swap)
			}
		}
	}
	return dst, o.images / o.same
}

// All yields every symmetry once for each way to get to it: the cell of the board
// that each cell of the image shows, and whether 0 and 1 are exchanged there.
func (s *Symmetries) All() iter.Seq2[[]int32, bool] {
	rows, cols := s.size.Rows, s.size.Cols
	downs, rights := 1, 1
	if s.shifts {
		downs, rights = rows, cols
	}
	return func(yield func([]int32, bool) bool) {
		for i := range len(s.swaps) * len(s.turns) * downs * rights {
			right, i := i%rights, i/rights
			down, i := i%downs, i/downs
			turn, swap := s.turns[i%len(s.turns)], s.swaps[i/len(s.turns)]
			cells := make([]int32, len(turn))
			for k := range cells {
				cells[k] = turn[(k/cols+down)%rows*cols+(k%cols+right)%cols]
			}
			if !yield(cells, swap == 1) {
				return
			}
		}
	}
}

// orbits goes through the images of a board. Each image comes equally often.
type orbits struct {
	best         []byte // the least so far
	images, same int    // how many there were, and how many of them are the best
}

// offer offers an image. Most differ from the best in one of their first cells,
// so none is made that is not better.
func (o *orbits) offer(board []byte, turn []int32, swap byte) {
	o.images++
	for k, from := range turn {
		cell := board[from] ^ swap
		if cell > o.best[k] {
			return
		}
		if cell < o.best[k] {
			for ; k < len(turn); k++ {
				o.best[k] = board[turn[k]] ^ swap
			}
			o.same = 0
			break
		}
	}
	o.same++
}

// offerShifts offers all shifts of an image.
func (s *Symmetries) offerShifts(o *orbits, board []byte, turn []int32, swap byte) {
	rows, cols := s.size.Rows, s.size.Cols
	s.twice = s.twice[:0]
	for row := range rows { // each twice, and all of them twice, so that what a shift makes of one is a piece
		for _, from := range turn[row*cols : (row+1)*cols] {
			s.twice = append(s.twice, board[from]^swap)
		}
		s.twice = append(s.twice, s.twice[len(s.twice)-cols:]...)
	}
	s.twice = append(s.twice, s.twice...)
	for down := range rows {
		for right := range cols {
			line := func(row int) []byte { return s.twice[(row+down)*2*cols+right:][:cols] }
			o.images++
			order := 0
			for row := 0; row < rows && order == 0; row++ {
				order = bytes.Compare(line(row), o.best[row*cols:(row+1)*cols])
			}
			if order < 0 {
				for row := range rows {
					copy(o.best[row*cols:], line(row))
				}
				o.same = 0
			}
			if order <= 0 {
				o.same++
			}
		}
	}
}

// turn is a way to lay a board on itself: its image has in each cell what it has
// in the cell counted from the other end of the columns or rows, and then,
// transposed, with row and column exchanged.
type turn struct {
	upsideDown, leftRight, transposed bool
}

// cell returns the cell of the board that is at a cell of the image, given the
// sums of the two that are counted from either end.
func (t turn) cell(row, col, rows, cols int) (int, int) {
	if t.upsideDown {
		row = rows - row
	}
	if t.leftRight {
		col = cols - col
	}
	if t.transposed {
		return col, row
	}
	return row, col
}

// keptBy reports whether turned boards of the size have the same rule.
func (r Rule) keptBy(t turn, size Size) bool {
	reach, turned := map[[2]int]bool{}, map[[2]int]bool{}
	toggle := func(cells map[[2]int]bool, row, col int) {
		if r.torus {
			row, col = (row+size.Rows)%size.Rows, (col+size.Cols)%size.Cols
		} else if max(row, -row) >= size.Rows || max(col, -col) >= size.Cols {
			return // a press has no such cell beside it
		}
		if at := [2]int{row, col}; cells[at] {
			delete(cells, at)
		} else {
			cells[at] = true
		}
	}
	for i, line := range r.stencil {
		for j := range 3 {
			if line>>(2-j)&1 != 0 {
				toggle(reach, i-1, j-1)
				row, col := t.cell(i-1, j-1, 0, 0)
				toggle(turned, row, col)
			}
		}
	}
	return maps.Equal(reach, turned)
}
