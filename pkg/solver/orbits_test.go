package solver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestOrbits goes through every board of a space: those that equal their least
// image are as many as orbits_d4.csv says that there are orbits with each minimum,
// and their orbits have all boards. With -all it does so for 5×5 too.
func TestOrbits(t *testing.T) {
	type orbits struct {
		rule   string
		target puzzle.Target
		size   puzzle.Size
	}
	want := make(map[orbits]map[string]int)
	for _, row := range table(t, "orbits_d4.csv") {
		o := orbits{rule: row["rule"], size: puzzle.Size{Rows: number(t, row["rows"]), Cols: number(t, row["cols"])}}
		if rule, either := strings.CutSuffix(o.rule, "_either"); either {
			o.rule, o.target = rule, puzzle.Either
		}
		if want[o] == nil {
			want[o] = make(map[string]int)
		}
		want[o][row["min_moves_or_impossible"]] = number(t, row["orbits"])
	}
	for o, want := range want {
		if o.size.Cells() > maxCellsQuick && !*all {
			continue
		}
		t.Run(fmt.Sprintf("%s %s %s", o.rule, o.target, o.size), func(t *testing.T) {
			t.Parallel()
			s, symmetries := mustSolver(t, o.rule, o.size), puzzle.NewSymmetries(mustRule(t, o.rule), o.target, o.size)
			got, inOrbits := make(map[string]int), 0
			var answers puzzle.Answers
			var text, least []byte
			total := 1 << o.size.Cells()
			boards := puzzle.NewRun(o.size, min(total, 1<<14))
			for first := 0; first < total; first += boards.Count {
				fillNumbered(boards, first)
				s.Solve(&answers, boards, o.target)
				for i, status := range answers.Status {
					text = boards.AppendText(text[:0], i)
					orbit := 0
					if least, orbit = symmetries.Canonical(least[:0], text); !bytes.Equal(least, text) {
						continue
					}
					inOrbits += orbit
					moves := "impossible"
					if status == puzzle.Solved {
						moves = fmt.Sprint(answers.MinMoves[i])
					}
					got[moves]++
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || inOrbits != total {
				t.Errorf("orbits by presses are %v with %d boards, want %v with %d", got, inOrbits, want, total)
			}
		})
	}
}
