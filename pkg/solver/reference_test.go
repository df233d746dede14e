package solver

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// The references of the tests: slow, plain, and sharing nothing with the solver
// or with puzzle.Rule. Boards and presses are bytes 0 or 1, row-major, so that
// bytes.Compare orders them as text.

// optimum is what a reference finds; moves is -1 where there is no solution.
type optimum struct {
	moves int
	count int64
	least []byte
}

// offer tells of a solution.
func (o *optimum) offer(x []byte) {
	moves := bytes.Count(x, []byte{1})
	switch {
	case o.moves < 0 || moves < o.moves:
		*o = optimum{moves, 1, bytes.Clone(x)}
	case moves == o.moves:
		o.count++
		if bytes.Compare(x, o.least) < 0 {
			o.least = bytes.Clone(x)
		}
	}
}

// toggled returns what one press toggles, by the words of the rules' definition.
func toggled(rule string, size puzzle.Size, row, col int) []byte {
	cells := make([]byte, size.Cells())
	if rule == "fridge" {
		for r := range size.Rows {
			for c := range size.Cols {
				if r == row || c == col {
					cells[r*size.Cols+c] = 1
				}
			}
		}
		return cells
	}
	name, torus := strings.CutSuffix(rule, "-torus")
	pattern := map[string]string{"plus": "010/111/010", "king": "111/111/111", "x": "101/010/101"}[name]
	if pattern == "" {
		pattern = strings.TrimPrefix(name, "stencil:")
	}
	for i, line := range strings.Split(pattern, "/") {
		for j, cell := range line {
			r, c := row+i-1, col+j-1
			if torus {
				r, c = (r+size.Rows)%size.Rows, (c+size.Cols)%size.Cols
			}
			if cell == '1' && r >= 0 && r < size.Rows && c >= 0 && c < size.Cols {
				cells[r*size.Cols+c] ^= 1
			}
		}
	}
	return cells
}

// reference knows all solutions of every board of a rule and size, by textbook
// elimination.
type reference struct {
	cells, presses [][]byte // reduced vectors: what is toggled, by which presses
	pivots         []int
	quiet          [][]byte
}

func xor(x, y []byte) {
	for i := range x {
		x[i] ^= y[i]
	}
}

func newReference(rule string, size puzzle.Size) *reference {
	ref := new(reference)
	for i := range size.Cells() {
		cells, presses := toggled(rule, size, i/size.Cols, i%size.Cols), make([]byte, size.Cells())
		presses[i] = 1
		for j, p := range ref.pivots {
			if cells[p] == 1 {
				xor(cells, ref.cells[j])
				xor(presses, ref.presses[j])
			}
		}
		if p := bytes.IndexByte(cells, 1); p >= 0 {
			ref.cells, ref.presses, ref.pivots = append(ref.cells, cells), append(ref.presses, presses), append(ref.pivots, p)
		} else {
			ref.quiet = append(ref.quiet, presses)
		}
	}
	return ref
}

// solve tries all 2^nullity solutions that turn board into all cells equal to goal.
func (ref *reference) solve(board []byte, goal byte) optimum {
	rest, x := bytes.Clone(board), make([]byte, len(board))
	for i := range rest {
		rest[i] ^= goal
	}
	for j, p := range ref.pivots {
		if rest[p] == 1 {
			xor(rest, ref.cells[j])
			xor(x, ref.presses[j])
		}
	}
	best := optimum{moves: -1}
	if bytes.IndexByte(rest, 1) >= 0 {
		return best
	}
	best.offer(x)
	for k := 1; k < 1<<len(ref.quiet); k++ {
		xor(x, ref.quiet[bits.TrailingZeros(uint(k))]) // Gray code
		best.offer(x)
	}
	return best
}

// bruteForce tries every set of presses on the all-0 board: boards[b] is the
// optimum of the board whose text is b in binary.
func bruteForce(rule string, size puzzle.Size) (boards []optimum) {
	n := size.Cells()
	effects := make([]int, n)
	for i := range effects {
		for _, cell := range toggled(rule, size, i/size.Cols, i%size.Cols) {
			effects[i] = effects[i]<<1 | int(cell)
		}
	}
	boards = make([]optimum, 1<<n)
	for b := range boards {
		boards[b].moves = -1
	}
	least := make([]int, 1<<n)
	for presses := range 1 << n {
		board := 0
		for i := range n {
			if presses>>(n-1-i)&1 == 1 {
				board ^= effects[i]
			}
		}
		moves, o := bits.OnesCount(uint(presses)), &boards[board]
		switch {
		case o.moves < 0 || moves < o.moves:
			o.moves, o.count, least[board] = moves, 1, presses // later presses are greater texts
		case moves == o.moves:
			o.count++
		}
	}
	for b := range boards {
		if boards[b].moves >= 0 {
			for i := range n {
				boards[b].least = append(boards[b].least, byte(least[b]>>(n-1-i)&1))
			}
		}
	}
	return boards
}

// plainRows is the row enumeration as everyone writes it, for plus: each of the
// 2^width first rows forces all others. It returns the least solution with the
// fewest presses in solution, their number, and how many there are.
func plainRows(solution, board []uint16, width int) (moves int, count int64) {
	full := uint16(1)<<width - 1
	moves = -1
	x := make([]uint16, len(board))
	for first := range 1 << width {
		above, here, n := uint16(0), uint16(first), 0
		for l, m := range board {
			x[l] = here
			n += bits.OnesCount16(here)
			above, here = here, (m^here^here<<1^here>>1^above)&full
		}
		switch {
		case here != 0:
		case moves < 0 || n < moves:
			moves, count = n, 1
			copy(solution, x)
		case n == moves:
			count++
		}
	}
	return moves, count
}

// plainFridge solves an odd×odd fridge board, all of whose rows and columns have
// parity beta: it tries all column parities q and, row by row from the last,
// keeps for each parity of the row parities so far the fewest presses, their
// number and the least rows.
func plainFridge(board []uint16, width int, beta int) (best struct {
	moves int
	count int64
	least []uint16
}) {
	type state struct {
		moves int
		count int64
		rows  []uint16 // last row first
	}
	full := uint16(1)<<width - 1
	best.moves = -1
	for q := range uint16(1) << width {
		if bits.OnesCount16(q)&1 != beta {
			continue
		}
		states := [2]state{{count: 1}, {}}
		for l := len(board) - 1; l >= 0; l-- {
			var next [2]state
			for parity := range 2 {
				for p := range 2 { // the row's own parity; the row is least first
					from := states[parity^p]
					if from.count == 0 {
						continue
					}
					row := board[l] ^ q ^ full*uint16(p)
					moves := from.moves + bits.OnesCount16(row)
					to := &next[parity]
					switch {
					case to.count == 0 || moves < to.moves:
						*to = state{moves, from.count, append(slices.Clone(from.rows), row)}
					case moves == to.moves:
						to.count += from.count
						if row < to.rows[len(to.rows)-1] {
							to.rows = append(slices.Clone(from.rows), row)
						}
					}
				}
			}
			states = next
		}
		end := states[beta]
		slices.Reverse(end.rows)
		switch {
		case best.moves < 0 || end.moves < best.moves:
			best.moves, best.count, best.least = end.moves, end.count, end.rows
		case end.moves == best.moves:
			best.count += end.count
			if slices.Compare(end.rows, best.least) < 0 {
				best.least = end.rows
			}
		}
	}
	return best
}

// expect compares answer i with the optima for zero and one.
func expect(t *testing.T, a *puzzle.Answers, i int, target puzzle.Target, zero, one optimum) {
	t.Helper()
	want, reached := zero, puzzle.Zero
	if target == puzzle.One || target == puzzle.Either && one.moves >= 0 && (zero.moves < 0 || one.moves < zero.moves) {
		want, reached = one, puzzle.One
	}
	status := puzzle.Solved
	if want.moves < 0 {
		want, reached, status = optimum{least: make([]byte, a.Solutions.Cells())}, puzzle.Zero, puzzle.Impossible
	}
	solution := a.Solutions.AppendText(nil, i)
	for k := range solution {
		solution[k] -= '0'
	}
	if a.Status[i] != status || int(a.MinMoves[i]) != want.moves || a.OptimalCount[i] != want.count ||
		a.Reached[i] != reached || !bytes.Equal(solution, want.least) {
		t.Errorf("target %s, board %d of %s: %s, %d presses, %d optima, reaches %s, solution %d\nwant %s, %d, %d, %s, %d", target, i, a.Solutions.Size,
			a.Status[i], a.MinMoves[i], a.OptimalCount[i], a.Reached[i], solution, status, want.moves, want.count, reached, want.least)
	}
}
