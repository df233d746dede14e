package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/solver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The loops take turns, as often as it takes to fill one, and each has as many.
func TestLoopsTakeTurns(t *testing.T) {
	t.Parallel()
	var order []int
	loop := func(i int) Loop {
		return Loop{Units: 1 + i, Do: func() error { order = append(order, i); return nil }}
	}
	all, err := takeTurns(t.Context(), []Loop{loop(0), loop(1)}, Options{Rounds: 3}, true)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 0, 1, 0, 1, 0, 1}; !slices.Equal(order, want) { // the first two warm up
		t.Errorf("order %v, want %v", order, want)
	}
	if len(all) != 2 || len(all[0]) != 3 || len(all[1]) != 3 {
		t.Errorf("turns %v", all)
	}

	order = nil
	const turn = 2 * time.Millisecond
	if all, err = takeTurns(t.Context(), []Loop{loop(0)}, Options{Rounds: 1, Turn: turn}, false); err != nil {
		t.Fatal(err)
	}
	// Whatever the machine does meanwhile, a loop that does next to nothing went
	// round often.
	if len(order) < 10 || all[0][0].wall <= 0 {
		t.Errorf("%d times, %v", len(order), all)
	}
}

// What goes wrong, or the end of the context, is the end of a measurement.
func TestMeasureEnds(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	closed := 0
	c := Case{Subject: Solver, Name: "case", prepare: func(context.Context, Options) (*bench, error) {
		return &bench{
			loop:  Loop{Units: 1, Do: func() error { return wrong }},
			close: func() error { closed++; return nil },
		}, nil
	}}
	if _, err := c.Measure(t.Context(), Options{Rounds: 1}); !errors.Is(err, wrong) {
		t.Errorf("error %v, want %v", err, wrong)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Measure(ctx, Options{Rounds: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if closed != 2 {
		t.Errorf("closed %d times, want 2", closed)
	}
}

// A corpus in which something is missing is not as fast as one that is whole.
func TestParseCounts(t *testing.T) {
	t.Parallel()
	size := puzzle.Size{Rows: 2, Cols: 2}
	if err := parse([]byte("0110\n1111\n"), "lines", size, 2); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"0110\n", "0110\n1111\n0000\n", "0110\n11x1\n"} {
		if err := parse([]byte(text), "lines", size, 2); err == nil {
			t.Errorf("%q is read as two boards", text)
		}
	}
}

// The plain ways agree with each other and with the solver.
func TestPlainWaysAgree(t *testing.T) {
	t.Parallel()
	size := puzzle.Size{Rows: 3, Cols: 4}
	for _, name := range []string{"plus", "king", "fridge"} {
		spec, err := specOf(name, size)
		if err != nil {
			t.Fatal(err)
		}
		boards, err := makeBoards(spec, "random", 300)
		if err != nil {
			t.Fatal(err)
		}
		s, err := solver.New(spec.Rule, size, solver.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var a puzzle.Answers
		s.Solve(&a, boards, puzzle.Zero)
		sets, rows := togglesOf(spec.Rule, size), plainOf(spec.Rule, boards)
		for i := range boards.Count {
			least, said := plainSets(sets, packed(boards, i)), int(a.MinMoves[i])
			if a.Status[i] == puzzle.Impossible {
				said = -1
			}
			if by := rows(i); by != least || said != least {
				t.Errorf("%s %s: %d presses the plain way, %d says the solver, want %d", name, boards.AppendText(nil, i), by, said, least)
			}
		}
	}
}

// TestWorkersOfBenchDie: when what answers the tasks is gone, the measurement ends and
// says why, instead of waiting for results.
func TestWorkersOfBenchDie(t *testing.T) {
	t.Parallel()
	w := &way{
		traffic: traffic{part: 2, workers: 1, server: queue.ServerOptions{StoreDir: t.TempDir(), Listen: "127.0.0.1:0", Fresh: true}},
		data:    []byte("a chunk"),
	}
	if err := errors.Join(w.open(t.Context()), w.carry(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.conns[1].Close() // the worker's
	if err := w.carry(t.Context()); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("error %v, want %v", err, queue.ErrClosed)
	}
	if err := w.close(); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("at the end error %v, want %v", err, queue.ErrClosed)
	}
}
