package solver

import (
	"bytes"
	"math/big"
	"strconv"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestQuiet: the patterns toggle nothing, pressed cell by cell; they begin later one
// after the other; and none has a press where another begins. So they are a basis,
// as there are as many as the nullity, and the one that is asked for.
func TestQuiet(t *testing.T) {
	all := samples
	for _, rule := range []string{"plus", "fridge", "king-torus", "stencil:010/011/100", "stencil:110/000/011-torus"} {
		for _, size := range []puzzle.Size{{Rows: 1, Cols: 5}, {Rows: 4, Cols: 4}, {Rows: 5, Cols: 5}, {Rows: 6, Cols: 3}, {Rows: 2, Cols: 17}} {
			all = append(all, struct {
				rule string
				size puzzle.Size
			}{rule, size})
		}
	}
	for _, c := range all {
		s := mustSolver(t, c.rule, c.size)
		quiet := s.Quiet()
		if quiet.Count != s.Nullity() {
			t.Errorf("%s %s: %d patterns, nullity %d", c.rule, c.size, quiet.Count, s.Nullity())
		}
		var begins []int
		for i := range quiet.Count {
			text := quiet.AppendText(nil, i)
			begins = append(begins, bytes.IndexByte(text, '1'))
			cells := make([]byte, len(text))
			for k, press := range text {
				if press == '1' {
					xor(cells, toggled(c.rule, c.size, k/c.size.Cols, k%c.size.Cols))
				}
			}
			if bytes.IndexByte(cells, 1) >= 0 || i > 0 && begins[i] <= begins[i-1] {
				t.Errorf("%s %s: pattern %d is %s, which toggles %d", c.rule, c.size, i, text, cells)
			}
		}
		for i := range quiet.Count {
			for j, k := range begins {
				if pressed := quiet.Cell(i, k/c.size.Cols, k%c.size.Cols); pressed != (i == j) {
					t.Errorf("%s %s: pattern %d pressed where %d begins: %t", c.rule, c.size, i, j, pressed)
				}
			}
		}
	}
}

// TestLongest tries every set of presses on small boards.
func TestLongest(t *testing.T) {
	var l Longest
	for _, c := range []struct {
		rule string
		size puzzle.Size
	}{
		{"plus", puzzle.Size{Rows: 4, Cols: 4}}, {"plus", puzzle.Size{Rows: 2, Cols: 5}}, {"fridge", puzzle.Size{Rows: 3, Cols: 3}},
		{"fridge", puzzle.Size{Rows: 4, Cols: 3}}, {"king-torus", puzzle.Size{Rows: 3, Cols: 4}}, {"stencil:010/011/100", puzzle.Size{Rows: 3, Cols: 4}},
	} {
		n := c.size.Cells()
		most := make(map[string]int) // presses of the longest solution for zero
		for presses := range 1 << n {
			cells, moves := make([]byte, n), 0
			for k := range n {
				if presses>>k&1 != 0 {
					xor(cells, toggled(c.rule, c.size, k/c.size.Cols, k%c.size.Cols))
					moves++
				}
			}
			most[string(cells)] = max(most[string(cells)], moves)
		}
		s, boards := mustSolver(t, c.rule, c.size), allBoards(c.size)
		for _, target := range targets {
			a := solve(t, s, boards, target)
			got := l.Append([]int32{-7}, s, boards, a)[1:]
			for i, status := range a.Status {
				text := boards.AppendText(nil, i)
				for k := range text {
					text[k] -= '0' + byte(a.Reached[i]) // the cells to change, as 1 or, for one, also as 255
					text[k] &= 1
				}
				want := 0
				if status == puzzle.Solved {
					want = most[string(text)]
				}
				if int(got[i]) != want {
					t.Fatalf("%s %s to %s, board %s: %d presses, want %d", c.rule, c.size, target, boards.AppendText(nil, i), got[i], want)
				}
			}
		}
	}
}

// TestLongestOfAllOnes compares the all-1 square boards of plus with a published table.
func TestLongestOfAllOnes(t *testing.T) {
	for _, row := range table(t, "allones_min_1_33.csv") {
		n := number(t, row["n"])
		if n > 16 {
			continue
		}
		s := mustSolver(t, "plus", puzzle.Size{Rows: n, Cols: n})
		got := new(Longest).Append(nil, s, s.ones(), solve(t, s, s.ones(), puzzle.Zero))
		if want := number(t, row["max_moves_over_all_solutions"]); int(got[0]) != want {
			t.Errorf("%d×%d: %d presses, want %d", n, n, got[0], want)
		}
	}
}

// TestMinima compares with published histograms of all boards.
func TestMinima(t *testing.T) {
	type space struct {
		rule   string
		size   puzzle.Size
		target puzzle.Target
	}
	want := make(map[space]map[int]int)
	read := func(file, column string, target puzzle.Target) {
		for _, row := range table(t, file) {
			s := space{row["rule"], puzzle.Size{Rows: number(t, row["rows"]), Cols: number(t, row["cols"])}, target}
			if want[s] == nil {
				want[s] = make(map[int]int)
			}
			if row[column] != "impossible" {
				want[s][number(t, row[column])] = number(t, row["boards"])
			}
		}
	}
	read("dist_min_moves.csv", "min_moves", puzzle.Zero)
	read("dist_either_colour.csv", "min_moves_or_impossible", puzzle.Either)
	known := 0
	for space, want := range want {
		s := mustSolver(t, space.rule, space.size)
		got := s.Minima(space.target)
		if got == nil {
			if s.Nullity() <= 1 {
				t.Errorf("%s %s to %s: not known", space.rule, space.size, space.target)
			}
			continue
		}
		known++
		for moves, n := range got {
			if n.Cmp(big.NewInt(int64(want[moves]))) != 0 {
				t.Errorf("%s %s to %s, %d presses: %s boards, want %d", space.rule, space.size, space.target, moves, n, want[moves])
			}
		}
	}
	if known < 100 {
		t.Errorf("%d of %d histograms are known", known, len(want))
	}
	for _, size := range []puzzle.Size{{Rows: 9, Cols: 9}, {Rows: 256, Cols: 15}} {
		if mustSolver(t, "plus", size).Minima(puzzle.Either) != nil {
			t.Errorf("the boards of %s were gone through", size)
		}
	}
}

// TestShortest compares the number of shortest solutions with published ones, and looks
// at the combinations of the smallest: each set of presses that has one is shortest.
func TestShortest(t *testing.T) {
	known, sizes := 0, make(map[string]*Solver)
	for _, row := range table(t, "dist_min_moves.csv") {
		moves, err := strconv.Atoi(row["min_moves"])
		if err != nil {
			continue // impossible
		}
		key := row["rule"] + row["rows"] + "x" + row["cols"]
		if sizes[key] == nil {
			sizes[key] = mustSolver(t, row["rule"], puzzle.Size{Rows: number(t, row["rows"]), Cols: number(t, row["cols"])})
		}
		s := sizes[key]
		if s.Nullity() > 4 || s.Nullity() == 4 && moves > 7 && moves < 19 {
			continue // takes too long
		}
		all := s.Shortest(puzzle.Zero, moves)
		if all == nil {
			t.Errorf("%s, %d presses: not known", key, moves)
			continue
		}
		if known++; all.Count.String() != row["total_optimal_solutions"] {
			t.Errorf("%s, %d presses: %s shortest solutions, want %s", key, moves, all.Count, row["total_optimal_solutions"])
		}
		if more := s.Shortest(puzzle.Zero, moves+1); moves == 0 || more != nil && more.Count.Sign() > 0 {
			continue
		}
		for _, i := range []*big.Int{new(big.Int), new(big.Int).Sub(all.Count, big.NewInt(1))} {
			presses := puzzle.NewRun(s.size, 1)
			for class, n := range all.Combination(i) {
				for _, cell := range all.Classes[class][:n] {
					presses.SetCell(0, cell/s.size.Cols, cell%s.size.Cols)
				}
			}
			board := puzzle.NewRun(s.size, 1)
			s.rule.Press(board, presses)
			if a := solve(t, s, board, puzzle.Zero); int(a.MinMoves[0]) != moves {
				t.Errorf("%s: %d presses of set %s do what %d do", key, moves, i, a.MinMoves[0])
			}
		}
	}
	if known < 300 {
		t.Errorf("%d figures are known", known)
	}
}

// TestMinimaOfRulesThatSplit counts all boards of rules that reach either target
// from different boards, as no published histogram does.
func TestMinimaOfRulesThatSplit(t *testing.T) {
	for _, rule := range []string{"stencil:110/000/011-torus", "stencil:010/001/000", "stencil:011/100/000"} {
		size := puzzle.Size{Rows: 3, Cols: 4}
		s, boards := mustSolver(t, rule, size), allBoards(size)
		for _, target := range targets {
			a := solve(t, s, boards, target)
			want := make([]int, size.Cells()+1)
			for i, status := range a.Status {
				if status == puzzle.Solved {
					want[a.MinMoves[i]]++
				}
			}
			for moves, n := range s.Minima(target) {
				if n.Cmp(big.NewInt(int64(want[moves]))) != 0 {
					t.Errorf("%s to %s, %d presses: %s boards, want %d", rule, target, moves, n, want[moves])
				}
			}
		}
	}
}
