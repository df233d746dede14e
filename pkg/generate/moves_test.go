package generate_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/generate"
)

// TestMovesFacts draws boards until all that need so many presses should have come,
// and finds as many as were counted elsewhere, by looking at all boards. Where more
// presses are wanted than any board needs, it is told that there are none.
func TestMovesFacts(t *testing.T) {
	most := map[string]int{} // presses, by size and rule
	drawn := 0
	for _, row := range table(t, "dist_min_moves.csv") {
		key := fmt.Sprintf("%sx%s %s zero", row[1], row[2], row[0])
		moves, err := strconv.Atoi(row[4])
		if err != nil {
			continue // impossible
		}
		most[key] = max(most[key], moves)
		there, err := strconv.Atoi(row[5])
		if err != nil {
			t.Fatal(err)
		}
		if spec := newSpec(t, "all "+key); there == 0 || there > 600 || spec.Size.Cells() > 20 {
			continue
		}
		count := 20 * there // one board is left out with a probability of e^-20
		found := map[string]bool{}
		for _, board := range boards(newGenerator(t, fmt.Sprintf("moves=%d,count=%d %s", moves, count, key)), 0, count) {
			found[board] = true
		}
		if drawn++; len(found) != there {
			t.Errorf("moves=%d %s: %d different boards, there are %d", moves, key, len(found), there)
		}
	}
	if drawn < 100 {
		t.Errorf("only %d figures were compared", drawn)
	}
	refused := 0
	for key, moves := range most {
		spec := newSpec(t, fmt.Sprintf("moves=%d,count=1 %s", moves+1, key))
		if cells := spec.Size.Cells(); cells > 16 || moves+1 > cells {
			continue
		}
		want := fmt.Sprintf("no board of %s needs %d presses, the most is %d", spec.Size, moves+1, moves)
		if g, err := generate.New(spec, solverOf(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want %q", key, g, err, want)
		}
		refused++
	}
	if refused < 10 {
		t.Errorf("only %d of %d were refused", refused, len(most))
	}
}

// What the solver does not prove cannot be chosen by it, and nor can anything without
// a solver.
func TestMovesUnproven(t *testing.T) {
	spec := newSpec(t, "moves=3,count=1 5x5 plus zero") // nullity 2
	spec.SearchLimit = 3
	if g, err := generate.New(spec, solverOf(spec)); err == nil || !strings.Contains(err.Error(), "not proved within the search limit") {
		t.Errorf("got %v, %v", g, err)
	}
	spec.SearchLimit = 4
	if _, err := generate.New(spec, solverOf(spec)); err != nil {
		t.Error(err)
	}
	if g, err := generate.New(spec, nil); err == nil || !strings.Contains(err.Error(), "nothing to solve boards with") {
		t.Errorf("without a solver: %v, %v", g, err)
	}
}
