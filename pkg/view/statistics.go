package view

import (
	"fmt"
	"math"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/tally"
)

// Statistics is what the boards of a dataset are like.
type Statistics struct {
	Job      string                  `json:"job"`
	Rule     string                  `json:"rule"`
	Target   string                  `json:"target"`
	Records  int64                   `json:"records"`
	Rejected int64                   `json:"rejected"`
	Reasons  map[puzzle.Reason]int64 `json:"reasons"`
	Sizes    []*SizeStats            `json:"sizes"` // by rows, then columns
}

// SizeStats is about the boards of one size.
type SizeStats struct {
	Rows       int     `json:"rows"`
	Cols       int     `json:"cols"`
	Nullity    int     `json:"nullity"`
	Boards     int64   `json:"boards"`
	Solved     int64   `json:"solved"`
	Impossible int64   `json:"impossible"`
	Unproven   int64   `json:"unproven"`
	Solvable   float64 `json:"solvable_share"` // of the boards
	Random     float64 `json:"random_share"`   // of all boards that there are
	Unique     int64   `json:"unique_optimal_boards"`
	Optimal    int64   `json:"optimal_solutions"`
	Moves      []Moves `json:"min_moves"` // ascending
}

// Moves is about the solved boards that need the same number of presses.
type Moves struct {
	MinMoves int   `json:"min_moves"`
	Boards   int64 `json:"boards"`
	Unique   int64 `json:"unique_optimal_boards"`
}

// NewStatistics says what a job's boards and rejects are like that have been counted.
func NewStatistics(job string, spec puzzle.Spec, counts *tally.Tally) (*Statistics, error) {
	s := &Statistics{
		Job: job, Rule: spec.Rule.String(), Target: spec.Target.String(),
		Records: counts.Boards() + counts.Rejected(), Rejected: counts.Rejected(), Reasons: map[puzzle.Reason]int64{}, Sizes: []*SizeStats{},
	}
	for _, r := range counts.Rejects() {
		s.Reasons[r.Reason] = r.Records
	}
	var last *SizeStats
	for _, row := range counts.Rows() { // sorted by size
		if last == nil || last.Rows != row.Rows || last.Cols != row.Cols {
			last = &SizeStats{Rows: row.Rows, Cols: row.Cols, Nullity: row.Nullity, Moves: []Moves{}}
			s.Sizes = append(s.Sizes, last)
		}
		last.add(row)
	}
	for _, size := range s.Sizes {
		var err error
		size.Solvable = Share(size.Solved+size.Unproven, size.Boards)
		if size.Random, err = randomShare(spec, puzzle.Size{Rows: size.Rows, Cols: size.Cols}, size.Nullity); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *SizeStats) add(row tally.Row) {
	s.Boards += row.Boards
	switch row.Status {
	case puzzle.Impossible:
		s.Impossible += row.Boards
	case puzzle.Unproven:
		s.Unproven += row.Boards
	default:
		s.Solved += row.Boards
		s.Unique += row.UniqueOptimal
		s.Optimal += row.OptimalSolutions
		s.Moves = append(s.Moves, Moves{row.MinMoves, row.Boards, row.UniqueOptimal})
	}
}

// randomShare is the share of all boards of a size that have a solution:
// 2^-nullity for one target. Those that reach either of two targets are the same
// boards if presses lead from one to the other, and otherwise twice as many.
func randomShare(spec puzzle.Spec, size puzzle.Size, nullity int) (float64, error) {
	one := math.Ldexp(1, -nullity)
	if spec.Target != puzzle.Either {
		return one, nil
	}
	s, err := solver.NewSet(spec.Rule, solver.Options{SearchLimit: 1}).For(size) // any solution will do
	if err != nil {
		return 0, fmt.Errorf("solve a full board of %s: %w", size, err)
	}
	full := puzzle.NewRun(size, 1)
	for cell := range size.Cells() {
		full.SetCell(0, cell/size.Cols, cell%size.Cols)
	}
	var answers puzzle.Answers
	if s.Solve(&answers, full, puzzle.Zero); answers.Status[0] == puzzle.Impossible {
		return 2 * one, nil
	}
	return one, nil
}
