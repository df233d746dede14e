package generate_test

import (
	"bufio"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// newSpec returns the spec of "SPEC ROWSxCOLS RULE TARGET".
func newSpec(t testing.TB, text string) (spec puzzle.Spec) {
	t.Helper()
	var errs [4]error
	words := strings.Fields(text)
	spec.Generate, errs[0] = puzzle.ParseGenerate(words[0])
	spec.Size, errs[1] = puzzle.ParseSize(words[1])
	spec.Rule, errs[2] = puzzle.ParseRule(words[2])
	spec.Target, errs[3] = puzzle.ParseTarget(words[3])
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return spec
}

func newGenerator(t testing.TB, text string) *generate.Generator {
	t.Helper()
	spec := newSpec(t, text)
	g, err := generate.New(spec, solverOf(spec))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// boards returns the texts of some boards.
func boards(g *generate.Generator, first int64, count int) (texts []string) {
	var run puzzle.Run
	g.Fill(&run, first, count)
	for i := range count {
		texts = append(texts, string(run.AppendText(nil, i)))
	}
	return texts
}

// facts returns the lines of a file of boards that another program has made.
func facts(t testing.TB, file string) (lines [][]string) {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if !strings.HasPrefix(in.Text(), "#") {
			lines = append(lines, strings.Fields(in.Text()))
		}
	}
	if len(lines) < 15 {
		t.Fatalf("only %d facts", len(lines))
	}
	return lines
}

// TestFacts compares with what the program in docs/generate.md makes.
func TestFacts(t *testing.T) {
	for _, words := range facts(t, "boards.txt") {
		name, want := strings.Join(words[:4], " "), words[4:]
		if got := boards(newGenerator(t, name), 0, len(want)); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
	}
}

// Any boards of a corpus are the same, whoever makes which of them together.
func TestSlices(t *testing.T) {
	const count = 400 // more than are made at a time
	for _, words := range facts(t, "boards.txt") {
		kind, _, _ := strings.Cut(words[0], ",")
		rest := strings.Join(words[1:4], " ")
		if kind == puzzle.GenerateOrbits && newGenerator(t, kind+" "+rest).Count() < count {
			continue // TestEveryOrbit has them all
		}
		whole := boards(newGenerator(t, fmt.Sprintf("%s,count=%d %s", kind, count, rest)), 0, count)
		for _, cut := range [][2]int{{0, 1}, {399, 1}, {13, 270}, {255, 2}} {
			first, n := cut[0], cut[1]
			part := boards(newGenerator(t, fmt.Sprintf("%s,count=%d %s", kind, count, rest)), int64(first), n)
			slice := boards(newGenerator(t, fmt.Sprintf("%s,count=%d,first=%d %s", kind, n, first, rest)), 0, n)
			if want := whole[first : first+n]; !slices.Equal(part, want) || !slices.Equal(slice, want) {
				t.Errorf("%s %s: boards %d to %d are others when they are made alone", kind, rest, first, first+n-1)
			}
		}
	}
}

// TestEvery makes all boards of small sizes: all is in order, and distinct has
// each of them once, in an order that the seed chooses.
func TestEvery(t *testing.T) {
	for _, size := range []string{"1x1", "1x2", "3x1", "2x2", "1x5", "2x3", "7x1", "2x4", "3x3", "1x17", "4x4", "13x1"} {
		var counted []string
		cells := newSpec(t, "all "+size+" plus zero").Size.Cells()
		for i := range 1 << cells {
			counted = append(counted, fmt.Sprintf("%0*b", cells, i))
		}
		g := newGenerator(t, "all "+size+" plus zero")
		if g.Count() != 1<<cells || !slices.Equal(boards(g, 0, 1<<cells), counted) {
			t.Errorf("all of %s: not every board, counted up", size)
		}
		orders, seeds := map[string]bool{}, 8
		if cells > 12 {
			seeds = 2
		}
		for seed := range seeds {
			g := newGenerator(t, fmt.Sprintf("distinct,seed=%d %s plus zero", seed, size))
			made := boards(g, 0, int(g.Count()))
			orders[strings.Join(made, " ")] = true
			slices.Sort(made)
			if !slices.Equal(made, counted) {
				t.Errorf("distinct of %s, seed %d: not every board once", size, seed)
			}
		}
		if cells >= 5 && len(orders) != seeds {
			t.Errorf("distinct of %s: %d orders for %d seeds", size, len(orders), seeds)
		}
	}
}

// reached returns every board that some presses make of a target, with the number
// of ways, and for each number of presses. It knows nothing but the definition of
// the rule.
func reached(spec puzzle.Spec) (ways map[string]int, byPresses []map[string]int) {
	cells := spec.Size.Cells()
	byPresses = make([]map[string]int, cells+1)
	for k := range byPresses {
		byPresses[k] = map[string]int{}
	}
	ways = map[string]int{}
	for x := range 1 << cells {
		presses, err := puzzle.ParseText(spec.Size, fmt.Sprintf("%0*b", cells, x))
		if err != nil {
			panic(err)
		}
		for _, target := range []puzzle.Target{puzzle.Zero, puzzle.One} {
			if spec.Target != puzzle.Either && spec.Target != target {
				continue
			}
			text := strings.Repeat("0", cells)
			if target == puzzle.One {
				text = strings.Repeat("1", cells)
			}
			board, err := puzzle.ParseText(spec.Size, text)
			if err != nil {
				panic(err)
			}
			spec.Rule.Press(board, presses)
			text = string(board.AppendText(nil, 0))
			ways[text]++
			byPresses[bits.OnesCount(uint(x))][text]++
		}
	}
	return ways, byPresses
}

// byFewest returns, for each number of presses of which there are some, the boards
// that need no fewer.
func byFewest(byPresses []map[string]int) map[int]map[string]int {
	done, least := map[string]bool{}, map[int]map[string]int{}
	for k, boards := range byPresses {
		for board := range boards {
			if done[board] {
				continue
			}
			if least[k] == nil {
				least[k] = map[string]int{}
			}
			done[board], least[k][board] = true, 1
		}
	}
	return least
}

// TestUniform counts how often each board comes. Of independent draws the sum of
// squared errors is known; five of its standard deviations off is no accident, and
// the seeds are fixed.
func TestUniform(t *testing.T) {
	const draws = 20_000
	for _, text := range []string{
		"3x3 plus zero", "3x3 plus either", "2x4 king zero", "2x4 king one", "2x4 king either", "3x3 fridge either", "2x3 x-torus either", "4x2 x one",
	} {
		size, _, _ := strings.Cut(text, " ")
		spec := newSpec(t, "all "+text)
		all, _ := reached(newSpec(t, "all "+size+" stencil:000/010/000 zero"))
		solvable, byPresses := reached(spec)
		kinds := map[string]map[string]int{"random": all, "solvable": solvable, "presses=1": byPresses[1], "presses=3": byPresses[3]}
		for k, boards := range byFewest(byPresses) {
			kinds[fmt.Sprintf("moves=%d", k)] = boards
		}
		for kind, weights := range kinds {
			name := fmt.Sprintf("%s,count=%d,seed=5 %s", kind, draws, text)
			compareCounts(t, name, boards(newGenerator(t, name), 0, draws), weights)
		}
	}
}

// compareCounts tests whether boards were drawn as often as their weights say.
func compareCounts(t *testing.T, name string, drawn []string, weights map[string]int) {
	t.Helper()
	seen := map[string]int{}
	for _, board := range drawn {
		seen[board]++
	}
	total := 0
	for _, w := range weights {
		total += w
	}
	sum := 0.0
	for board, w := range weights {
		expected := float64(w) * float64(len(drawn)) / float64(total)
		sum += (float64(seen[board]) - expected) * (float64(seen[board]) - expected) / expected
		delete(seen, board)
	}
	if len(seen) > 0 {
		t.Errorf("%s: %d boards that are none of these", name, len(seen))
	}
	if free := float64(len(weights) - 1); math.Abs(sum-free) > 5*math.Sqrt(2*free)+1e-6 {
		t.Errorf("%s: %.1f off, want about %.0f", name, sum, free)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"all 8x8 plus zero":                           "boards of 8x8 cannot be counted, which takes at most 62 cells",
		"all,count=5 8x8 plus zero":                   "boards of 8x8 cannot be counted",
		"distinct 7x9 plus zero":                      "boards of 7x9 cannot be counted",
		"all,first=16 2x2 plus zero":                  "there are 16 boards of 2x2",
		"all,count=16,first=1 2x2 plus zero":          "there are 16 boards of 2x2",
		"distinct,count=17 2x2 plus zero":             "there are 16 boards of 2x2",
		"random,count=4611686018427387904 2x2 x zero": "there are 281474976710656 boards",
		"presses=5,count=1 2x2 plus zero":             "5 presses at different cells: a board of 2x2 has 4",
		"moves=5,count=1 2x2 plus zero":               "5 presses at different cells: a board of 2x2 has 4",
		"orbits 7x9 plus zero":                        "boards of 7x9 cannot be counted, which takes at most 62 cells",
		"orbits,first=102 3x3 plus zero":              "there are 102 boards of 3x3",
		"orbits 5x6 plus-torus zero":                  "symmetries of plus-torus take 30 cells of 5x6 to each other, want at most 25",
	} {
		spec := newSpec(t, text)
		if g, err := generate.New(spec, solverOf(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want %q", text, g, err, want)
		}
	}
	spec := newSpec(t, "all 2x2 plus zero")
	spec.Size = puzzle.Size{}
	if _, err := generate.New(spec, nil); err == nil {
		t.Error("no size is a size")
	}
}

// A corpus has one name, and corpora of other boards have others.
func TestString(t *testing.T) {
	for text, want := range map[string]string{
		"all,count=3 2x2 plus one":              "all,count=3 2x2",
		"random,seed=3,count=9 2x2 king one":    "random,count=9,seed=3 2x2",
		"solvable,first=1,count=9 2x2 king one": "solvable,count=9,first=1 2x2 king one",
		"presses=2,count=9 2x2 x either":        "presses=2,count=9 2x2 x either",
		"moves=1,seed=4,count=9 2x2 x either":   "moves=1,count=9,seed=4 2x2 x either",
		"orbits,seed=4 2x2 x either":            "orbits,seed=4 2x2 x either",
	} {
		if got := newGenerator(t, text).String(); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
