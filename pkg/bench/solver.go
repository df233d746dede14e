package bench

import (
	"context"
	"fmt"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// solverCase is boards of a kind and a number that one Do solves.
type solverCase struct {
	rule          string
	n             int
	kind          string
	boards, plain int // plain: how many the baseline solves
}

// solverCases are where the solver does different things. Boards that solvable
// makes have the whole search before them; of random ones only few have.
func solverCases() (cases []Case) {
	const chunk, few = 1 << 16, 1 << 13
	for _, c := range []solverCase{
		{"plus", 4, "random", chunk, 1024}, {"plus", 5, "random", chunk, 1024}, {"plus", 8, "random", chunk, 256},
		{"plus", 9, "solvable", few, 128}, {"plus", 14, "solvable", few, 4}, {"plus", 15, "random", few, 2}, {"plus", 16, "solvable", few, 1},
		{"king", 4, "random", chunk, 16}, {"king", 5, "solvable", few, 0},
		{"fridge", 4, "random", chunk, 16}, {"fridge", 15, "solvable", 256, 0},
	} {
		size := puzzle.Size{Rows: c.n, Cols: c.n}
		baseline := "all first rows tried"
		switch {
		case c.plain == 0: // it would take years
			baseline = ""
		case c.rule != "plus":
			baseline = "all sets of presses tried"
		}
		cases = append(cases, Case{
			Subject: Solver, Name: fmt.Sprintf("%s/%s/%s", c.rule, size, c.kind), Unit: "board", Baseline: baseline,
			prepare: func(context.Context, Options) (*bench, error) { return c.prepare(size) },
		})
	}
	return cases
}

func (c solverCase) prepare(size puzzle.Size) (*bench, error) {
	spec, err := specOf(c.rule, size)
	if err != nil {
		return nil, err
	}
	boards, err := makeBoards(spec, c.kind, c.boards)
	if err != nil {
		return nil, err
	}
	s, err := solver.New(spec.Rule, size, solver.Options{})
	if err != nil {
		return nil, err
	}
	var answers puzzle.Answers
	b := &bench{loop: Loop{Units: c.boards, Do: func() error {
		s.Solve(&answers, boards, puzzle.Zero)
		return nil
	}}}
	if c.plain > 0 {
		solve := plainOf(spec.Rule, boards)
		least := 0
		b.baseline = Loop{Units: c.plain, Do: func() error {
			for i := range c.plain {
				least += solve(i)
			}
			return nil
		}}
	}
	return b, nil
}

// plainOf returns the plain way to find the fewest presses for board i.
func plainOf(rule puzzle.Rule, boards puzzle.Run) func(i int) int {
	if rule.String() == "plus" {
		board := make([]uint16, boards.Rows)
		return func(i int) int {
			for row := range board {
				board[row] = boards.Masks[row*boards.Count+i]
			}
			return plainRows(boards.Size, board)
		}
	}
	toggles := togglesOf(rule, boards.Size)
	return func(i int) int { return plainSets(toggles, packed(boards, i)) }
}

// specOf returns the defaults of flipmill run with a rule and a size.
func specOf(rule string, size puzzle.Size) (spec puzzle.Spec, err error) {
	spec = puzzle.Spec{Target: puzzle.Zero, Size: size, SearchLimit: solver.DefaultSearchLimit}
	spec.Rule, err = puzzle.ParseRule(rule)
	return spec, err
}

// makeBoards makes boards of a kind that pkg/generate knows.
func makeBoards(spec puzzle.Spec, kind string, count int) (boards puzzle.Run, err error) {
	if spec.Generate, err = puzzle.ParseGenerate(fmt.Sprintf("%s,count=%d,seed=1", kind, count)); err != nil {
		return boards, err
	}
	g, err := generate.New(spec, nil)
	if err != nil {
		return boards, err
	}
	g.Fill(&boards, 0, count)
	return boards, nil
}
