package solver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"flag"
	"fmt"
	"hash"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// all makes TestSpaces go through every space that testdata describes up to
// maxCellsAll cells, which takes a minute or two; otherwise it stops at
// maxCellsQuick. Run it with go test ./pkg/solver -all.
var all = flag.Bool("all", false, "solve every board of the large spaces too")

const (
	maxCellsQuick = 20
	maxCellsAll   = 25
)

// table reads a file of testdata: one map from column to field for each row.
func table(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	var rows []map[string]string
	for _, record := range records[1:] {
		row := make(map[string]string)
		for i, field := range record {
			row[records[0][i]] = field
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustRule(t testing.TB, name string) puzzle.Rule {
	t.Helper()
	rule, err := puzzle.ParseRule(name)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func mustSolver(t testing.TB, rule string, size puzzle.Size) *Solver {
	t.Helper()
	s, err := New(mustRule(t, rule), size, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// space is all boards of one rule and size.
type space struct {
	rule string
	size puzzle.Size
}

// facts are what testdata says about a space: each list may be empty.
type facts struct {
	digest      map[string]string
	moves       []map[string]string // rows of dist_min_moves.csv
	eitherMoves []map[string]string // rows of dist_either_colour.csv
}

// TestSpaces solves every board of a space for zero and for either, checks
// every solution, and compares digests and histograms with those of a different
// program.
func TestSpaces(t *testing.T) {
	spaces := make(map[space]*facts)
	at := func(row map[string]string) *facts {
		s := space{row["rule"], puzzle.Size{Rows: number(t, row["rows"]), Cols: number(t, row["cols"])}}
		if spaces[s] == nil {
			spaces[s] = new(facts)
		}
		return spaces[s]
	}
	for _, row := range table(t, "digests_all_boards.csv") {
		at(row).digest = row
	}
	for _, row := range table(t, "dist_min_moves.csv") {
		at(row).moves = append(at(row).moves, row)
	}
	for _, row := range table(t, "dist_either_colour.csv") {
		at(row).eitherMoves = append(at(row).eitherMoves, row)
	}
	limit := maxCellsQuick
	if *all {
		limit = maxCellsAll
	}
	for s, f := range spaces {
		if s.size.Cells() > limit {
			continue
		}
		t.Run(fmt.Sprintf("%s %s", s.rule, s.size), func(t *testing.T) {
			t.Parallel()
			newCensus(t, s).compare(t, f)
		})
	}
}

// outcome counts boards with one minimum.
type outcome struct {
	boards, unique, optima int64
}

// census is what is found in a space. Histograms are indexed by presses; -1 is
// impossible.
type census struct {
	nullity           int
	zero, either      map[int]outcome
	minBytes          hash.Hash
	solutions         hash.Hash
	eitherBytes       hash.Hash
	scratchMin        []byte
	scratchSolution   []byte
	scratchEitherMins []byte
}

func newCensus(t *testing.T, s space) *census {
	solver := mustSolver(t, s.rule, s.size)
	c := &census{nullity: solver.Nullity(), zero: make(map[int]outcome), either: make(map[int]outcome),
		minBytes: sha256.New(), solutions: sha256.New(), eitherBytes: sha256.New()}
	var zero, either puzzle.Answers
	var boards, scratch puzzle.Run
	total := 1 << s.size.Cells()
	count := min(total, 1<<14)
	boards.Reset(s.size, count)
	for first := 0; first < total; first += count {
		fillNumbered(boards, first)
		for target, answers := range map[puzzle.Target]*puzzle.Answers{puzzle.Zero: &zero, puzzle.Either: &either} {
			solver.Solve(answers, boards, target)
			if err := solver.Check(&scratch, boards, answers); err != nil {
				t.Fatal(err)
			}
		}
		c.add(&zero, &either)
	}
	return c
}

// fillNumbered sets the run's boards to the numbers from first on, whose highest
// bit is cell (0,0).
func fillNumbered(boards puzzle.Run, first int) {
	n, full := boards.Count, uint(1)<<boards.Cols-1
	for l := range boards.Rows {
		shift := (boards.Rows - 1 - l) * boards.Cols
		for i := range n {
			boards.Masks[l*n+i] = uint16(uint(first+i) >> shift & full)
		}
	}
}

func (c *census) add(zero, either *puzzle.Answers) {
	c.scratchMin = minima(c.scratchMin[:0], c.zero, zero)
	c.minBytes.Write(c.scratchMin)
	c.scratchEitherMins = minima(c.scratchEitherMins[:0], c.either, either)
	c.eitherBytes.Write(c.scratchEitherMins)
	c.scratchSolution = c.scratchSolution[:0]
	solutions := zero.Solutions
	for i, status := range zero.Status {
		number := uint32(0)
		for l := range solutions.Rows {
			number = number<<solutions.Cols | uint32(solutions.Masks[l*solutions.Count+i])
		}
		if status == puzzle.Impossible {
			number = ^number
		}
		c.scratchSolution = binary.BigEndian.AppendUint32(c.scratchSolution, number)
	}
	c.solutions.Write(c.scratchSolution)
}

// minima appends one byte a board to dst, and adds the boards to a histogram.
func minima(dst []byte, histogram map[int]outcome, answers *puzzle.Answers) []byte {
	var outcomes [256]outcome
	for i, status := range answers.Status {
		moves, optima := byte(answers.MinMoves[i]), answers.OptimalCount[i]
		if status == puzzle.Impossible {
			moves = 255
		}
		dst = append(dst, moves)
		outcomes[moves].boards++
		outcomes[moves].optima += optima
		if optima == 1 {
			outcomes[moves].unique++
		}
	}
	for moves, o := range outcomes {
		if o.boards == 0 {
			continue
		}
		if moves == 255 {
			moves = -1
		}
		h := histogram[moves]
		histogram[moves] = outcome{h.boards + o.boards, h.unique + o.unique, h.optima + o.optima}
	}
	return dst
}

func (c *census) compare(t *testing.T, f *facts) {
	if f.digest != nil {
		for column, sum := range map[string]hash.Hash{
			"sha256_min_bytes": c.minBytes, "sha256_sol_be32": c.solutions, "sha256_either_min_bytes": c.eitherBytes,
		} {
			if got := fmt.Sprintf("%x", sum.Sum(nil)); got != f.digest[column] {
				t.Errorf("%s = %s, want %s", column, got, f.digest[column])
			}
		}
	}
	solvable := int64(0)
	for _, row := range f.moves {
		moves := number(t, row["min_moves"])
		want := outcome{int64(number(t, row["boards"])), int64(number(t, row["boards_with_unique_optimum"])), int64(number(t, row["total_optimal_solutions"]))}
		if c.zero[moves] != want || c.nullity != number(t, row["nullity"]) {
			t.Errorf("zero, %d presses: nullity %d, %+v, want %v", moves, c.nullity, c.zero[moves], row)
		}
		solvable += want.boards
	}
	if f.moves != nil && solvable != c.solvable() {
		t.Errorf("%d boards are solvable, want %d", c.solvable(), solvable)
	}
	for _, row := range f.eitherMoves {
		moves := -1
		if text := row["min_moves_or_impossible"]; text != "impossible" {
			moves = number(t, text)
		}
		if got, want := c.either[moves].boards, int64(number(t, row["boards"])); got != want {
			t.Errorf("either, %d presses: %d boards, want %d", moves, got, want)
		}
	}
}

func (c *census) solvable() (n int64) {
	for moves, o := range c.zero {
		if moves >= 0 {
			n += o.boards
		}
	}
	return n
}

// TestNullity covers every size that the solver accepts and testdata lists.
func TestNullity(t *testing.T) {
	check := func(rule string, size puzzle.Size, want string) {
		if mustRule(t, rule).CheckSize(size) != nil {
			return
		}
		if got := mustSolver(t, rule, size).Nullity(); got != number(t, want) {
			t.Errorf("%s %s: nullity %d, want %s", rule, size, got, want)
		}
	}
	for _, row := range table(t, "nullity_rect_1_20.csv") {
		for _, rule := range []string{"plus", "plus-torus", "fridge", "king", "x"} {
			check(rule, puzzle.Size{Rows: number(t, row["rows"]), Cols: number(t, row["cols"])}, row[rule])
		}
	}
	columns := map[string]string{"plus": "plus", "plus-torus": "plus-torus", "fridge": "fridge", "king": "king", "king_torus": "king-torus",
		"x": "x", "x_torus": "x-torus", "ring4_noself": "stencil:010/101/010", "ring8_noself": "stencil:111/101/111"}
	for _, row := range table(t, "nullity_square_1_32.csv") {
		for column, rule := range columns {
			n := number(t, row["n"])
			check(rule, puzzle.Size{Rows: n, Cols: n}, row[column])
		}
	}
}

// TestSquares: of the squares of plus, those in the README are beyond the default
// search limit. Their nullities were found by chasing lights in a few lines of Python.
func TestSquares(t *testing.T) {
	large := map[int]int{39: 32, 47: 30, 59: 22, 61: 40, 62: 24, 64: 28}
	for n := 33; n <= 64; n++ {
		s := mustSolver(t, "plus", puzzle.Size{Rows: n, Cols: n})
		if nullity, unproven := large[n]; unproven == s.sweep.quiet.proven || unproven && s.Nullity() != nullity {
			t.Errorf("%d×%d: nullity %d, proved: %t", n, n, s.Nullity(), s.sweep.quiet.proven)
		}
	}
}

// TestAllOnes compares the all-1 square boards of plus with OEIS A075464.
func TestAllOnes(t *testing.T) {
	for _, row := range table(t, "allones_min_1_33.csv") {
		n := number(t, row["n"])
		solver := mustSolver(t, "plus", puzzle.Size{Rows: n, Cols: n})
		board := puzzle.NewRun(solver.Size(), 1)
		for k := range board.Masks {
			board.Masks[k] = board.FullMask(k)
		}
		var a puzzle.Answers
		solver.Solve(&a, board, puzzle.Zero)
		moves, optima := number(t, row["min_moves_all_ones"]), number(t, row["number_of_optimal_solutions"])
		if a.Status[0] != puzzle.Solved || int(a.MinMoves[0]) != moves || int(a.OptimalCount[0]) != optima {
			t.Errorf("%d×%d: %v, %d presses, %d optima, want %d and %d", n, n, a.Status[0], a.MinMoves[0], a.OptimalCount[0], moves, optima)
		}
		pressed := 0
		for _, m := range a.Solutions.Masks {
			pressed += bits.OnesCount16(m)
		}
		if pressed != moves {
			t.Errorf("%d×%d: solution has %d presses, want %d", n, n, pressed, moves)
		}
	}
}

// TestCases solves published samples and edge cases.
func TestCases(t *testing.T) {
	targets := map[string]puzzle.Target{"all0": puzzle.Zero, "all1": puzzle.One}
	for _, row := range table(t, "cases.csv") {
		size := puzzle.Size{Rows: number(t, row["rows"]), Cols: number(t, row["cols"])}
		board, err := puzzle.ParseText(size, strings.ReplaceAll(row["board_rows"], "/", ""))
		if err != nil {
			t.Fatal(err)
		}
		target, ok := targets[row["target"]]
		if !ok {
			t.Fatalf("%s: target %q", row["id"], row["target"])
		}
		var a puzzle.Answers
		mustSolver(t, row["rule"], size).Solve(&a, board, target)
		moves, solution := "", ""
		if a.Status[0] == puzzle.Solved {
			moves, solution = fmt.Sprint(a.MinMoves[0]), string(a.Solutions.AppendText(nil, 0))
		}
		if moves != row["min_moves_computed"] || solution != strings.ReplaceAll(row["lex_least_solution_computed"], "/", "") {
			t.Errorf("%s: %s presses %s, want %v", row["id"], moves, solution, row)
		}
		if want := row["optimal_solutions_computed"]; want != "" && fmt.Sprint(a.OptimalCount[0]) != want {
			t.Errorf("%s: %d optima, want %s", row["id"], a.OptimalCount[0], want)
		}
	}
}
