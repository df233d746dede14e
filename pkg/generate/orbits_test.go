package generate_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// solverOf returns what answers the boards of a spec.
func solverOf(spec puzzle.Spec) *solver.Set {
	return solver.NewSet(spec.Rule, solver.Options{SearchLimit: spec.SearchLimit})
}

// table returns the rows of a file of published figures, without the header.
func table(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open("../solver/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 50 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[1:]
}

// TestOrbitFacts solves a board of each orbit, and finds as many orbits for each number
// of presses as were counted elsewhere, by looking at all boards.
func TestOrbitFacts(t *testing.T) {
	want := map[string]map[string]int64{}
	for _, row := range table(t, "orbits_d4.csv") {
		target := map[string]string{"plus": "zero", "fridge": "zero", "plus_either": "either"}[row[0]]
		rule := map[string]string{"plus": "plus", "fridge": "fridge", "plus_either": "plus"}[row[0]]
		key := fmt.Sprintf("%sx%s %s %s", row[1], row[2], rule, target)
		n, err := strconv.ParseInt(row[5], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if want[key] == nil {
			want[key] = map[string]int64{}
		}
		want[key][row[4]] += n
	}
	for key, moves := range want {
		g := newGenerator(t, "orbits,seed=3 "+key)
		total := int64(0)
		for _, n := range moves {
			total += n
		}
		if g.Count() != total {
			t.Errorf("%s: %d orbits, want %d", key, g.Count(), total)
		}
		if total > 1<<20 { // their number has to do
			continue
		}
		spec := newSpec(t, "orbits "+key)
		s, err := solverOf(spec).For(spec.Size)
		if err != nil {
			t.Fatal(err)
		}
		var run puzzle.Run
		var answers puzzle.Answers
		g.Fill(&run, 0, int(g.Count()))
		s.Solve(&answers, run, spec.Target)
		for i, status := range answers.Status {
			name := fmt.Sprint(answers.MinMoves[i])
			if status == puzzle.Impossible {
				name = "impossible"
			}
			moves[name]--
		}
		for name, n := range moves {
			if n != 0 {
				t.Errorf("%s: %d orbits too few for %s presses", key, n, name)
			}
		}
	}
}

// TestEveryOrbit compares with the least images of all boards: each of them comes
// once, in an order that the seed chooses.
func TestEveryOrbit(t *testing.T) {
	for _, text := range []string{
		"1x1 plus zero", "1x1 plus either", "1x13 plus either", "13x1 king zero", "2x6 x either", "3x4 plus zero", "3x3 fridge either",
		"4x3 fridge one", "3x3 king-torus zero", "3x4 plus-torus either", "2x2 plus-torus either", "4x4 stencil:110/011/010 zero",
		"3x3 stencil:010/010/000 zero", "3x3 stencil:010/010/000 either", "3x4 stencil:110/010/000-torus either", "3x5 stencil:100/010/001 either",
	} {
		spec := newSpec(t, "all "+text)
		symmetries := puzzle.NewSymmetries(spec.Rule, spec.Target, spec.Size)
		least := map[string]bool{}
		cells := spec.Size.Cells()
		for i := range 1 << cells {
			image, _ := symmetries.Canonical(nil, fmt.Appendf(nil, "%0*b", cells, i))
			least[string(image)] = true
		}
		var orders [2][]string
		for seed := range orders {
			g := newGenerator(t, fmt.Sprintf("orbits,seed=%d %s", seed, text))
			made := boards(g, 0, int(g.Count()))
			orders[seed] = slices.Clone(made)
			slices.Sort(made)
			if made = slices.Compact(made); len(made) != int(g.Count()) || len(made) != len(least) {
				t.Errorf("%s: %d boards, %d of them different; there are %d orbits", text, g.Count(), len(made), len(least))
			}
			for _, board := range made {
				if !least[board] {
					t.Errorf("%s: %s is not the least of its images", text, board)
				}
			}
		}
		if len(least) > 20 && slices.Equal(orders[0], orders[1]) {
			t.Errorf("%s: one order for two seeds", text)
		}
	}
}
