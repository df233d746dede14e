package solver

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestClasses compares the search by classes with the one that weighs candidates, for
// all sizes that it is for, up to the most cells.
func TestClasses(t *testing.T) {
	rng := seeded(t)
	var nullities [laneBits + 1]int
	compare := func(rule string, size puzzle.Size) {
		k := newChase(mustRule(t, rule), size, DefaultSearchLimit)
		if k.classes == nil {
			return
		}
		nullities[k.quiet.nullity()]++
		plain := *k
		plain.classes = nil
		boards := randomRun(t, rng, rule, size, 9)
		for i := range boards.Masks {
			if i%boards.Count == 0 { // all presses of a class, and all cells
				boards.Masks[i] = 1<<size.Width() - 1
			}
		}
		classes := &Solver{rule: mustRule(t, rule), size: size, nullity: k.quiet.nullity(), chase: k}
		search := &Solver{rule: classes.rule, size: size, nullity: classes.nullity, chase: &plain}
		for _, target := range targets {
			if a, b := solve(t, classes, boards, target), solve(t, search, boards, target); !equalAnswers(a, b) {
				t.Fatalf("%s %s to %s: other answers than those of the search", rule, size, target)
			}
		}
	}
	for cols := 1; cols <= 2*classBits; cols++ {
		for rows := cols; rows*cols < 1<<10 && rows <= puzzle.MaxLines; rows += 1 + rows/8 {
			compare("plus", puzzle.Size{Rows: rows, Cols: cols})
			compare("stencil:010/000/111", puzzle.Size{Rows: rows, Cols: cols})
			compare("stencil:010/101/010", puzzle.Size{Rows: rows, Cols: cols})
		}
	}
	compare("plus", puzzle.Size{Rows: 14, Cols: 14})
	compare("plus", puzzle.Size{Rows: 73, Cols: 14})
	for nullity, n := range nullities {
		t.Logf("nullity %d: %d", nullity, n)
		if nullity > 0 && n == 0 {
			t.Errorf("no rule and size with nullity %d", nullity)
		}
	}
}
