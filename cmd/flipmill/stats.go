package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/tally"
)

func newStats() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats DATASET",
		Short: "Show what the boards of a dataset are like",
		Long: `Shows for each size of board how many are solved, how many have exactly one
minimum solution, how many presses they need, and why records were rejected.

SOLVABLE is the share of boards that have a solution, RANDOM what it is among all
boards of that size. UNIQUE is the share of solved boards with exactly one minimum
solution, OPTIMA the average number of minimum solutions of a solved board.

It reads the dataset's statistics, not its boards, so it takes no time.
--csv prints the rows of stats/stats.parquet.`,
		Example: `  flipmill stats out/job=boards-5x5
  flipmill stats out/job=boards-5x5 --csv > stats.csv`,
		Args: wantArgs(1, 1, "one DATASET folder, such as out/job=boards-5x5"),

		ValidArgsFunction: completeDatasets,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			m, counts, err := dataset.ReadTally(args[0])
			if err != nil {
				return err
			}
			text, err := statsText(m, counts, c)
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(text); err != nil {
				return fmt.Errorf("write the statistics: %w", err)
			}
			return nil
		},
	}
	config.Flags(cmd)
	return cmd
}

// statsText renders statistics as the flags want them.
func statsText(m *dataset.Manifest, counts *tally.Tally, c *config.Config) ([]byte, error) {
	switch {
	case c.JSON && c.CSV:
		return nil, withCode(exitUsage, fmt.Errorf("--json and --csv: want one of them"))
	case c.CSV:
		return statsCSV(m, counts)
	}
	s, err := newStatistics(m, counts)
	if err != nil {
		return nil, err
	}
	if !c.JSON {
		return s.text(), nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// statistics is what flipmill stats tells.
type statistics struct {
	Job      string                  `json:"job"`
	Rule     string                  `json:"rule"`
	Target   string                  `json:"target"`
	Records  int64                   `json:"records"`
	Rejected int64                   `json:"rejected"`
	Reasons  map[puzzle.Reason]int64 `json:"reasons"`
	Sizes    []*sizeStats            `json:"sizes"` // by rows, then columns
}

// sizeStats is about the boards of one size.
type sizeStats struct {
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
	Moves      []moves `json:"min_moves"` // ascending
}

// moves is about the solved boards that need the same number of presses.
type moves struct {
	MinMoves int   `json:"min_moves"`
	Boards   int64 `json:"boards"`
	Unique   int64 `json:"unique_optimal_boards"`
}

func newStatistics(m *dataset.Manifest, counts *tally.Tally) (*statistics, error) {
	s := &statistics{
		Job: m.Job, Rule: m.Spec.Rule, Target: m.Spec.Target,
		Records: m.Input.Records, Rejected: m.Counts.Rejected, Reasons: m.Counts.Reasons, Sizes: []*sizeStats{},
	}
	var last *sizeStats
	for _, row := range counts.Rows() { // sorted by size
		if last == nil || last.Rows != row.Rows || last.Cols != row.Cols {
			last = &sizeStats{Rows: row.Rows, Cols: row.Cols, Nullity: row.Nullity, Moves: []moves{}}
			s.Sizes = append(s.Sizes, last)
		}
		last.add(row)
	}
	spec, err := m.Spec.ParseSpec()
	if err != nil {
		return nil, err
	}
	for _, size := range s.Sizes {
		size.Solvable = share(size.Solved+size.Unproven, size.Boards)
		if size.Random, err = randomShare(spec, puzzle.Size{Rows: size.Rows, Cols: size.Cols}, size.Nullity); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sizeStats) add(row tally.Row) {
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
		s.Moves = append(s.Moves, moves{row.MinMoves, row.Boards, row.UniqueOptimal})
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

func share(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func percentage(x float64) string { return fmt.Sprintf("%.2f%%", 100*x) }

// text is the statistics for people.
func (s *statistics) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "job       %s\nrule      %s\ntarget    %s\nrecords   %s\nrejected  %s\n",
		s.Job, s.Rule, s.Target, thousands(s.Records), thousands(s.Rejected))
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		fmt.Fprintf(&b, "  %-15s %9s  %s\n", reason, thousands(s.Reasons[reason]), bar(s.Reasons[reason], s.Rejected))
	}
	if len(s.Sizes) == 0 {
		return b.Bytes()
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "SIZE\tNULLITY\tBOARDS\tSOLVED\tIMPOSSIBLE\tUNPROVEN\tSOLVABLE\tRANDOM\tUNIQUE\tOPTIMA\t")
	for _, z := range s.Sizes {
		unique, optima := "-", "-"
		if z.Solved > 0 {
			unique, optima = percentage(share(z.Unique, z.Solved)), fmt.Sprintf("%.2f", share(z.Optimal, z.Solved))
		}
		fmt.Fprintf(w, "%dx%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", z.Rows, z.Cols, z.Nullity,
			thousands(z.Boards), thousands(z.Solved), thousands(z.Impossible), thousands(z.Unproven),
			percentage(z.Solvable), percentage(z.Random), unique, optima)
	}
	w.Flush() // into memory
	for _, z := range s.Sizes {
		z.bars(&b)
	}
	return b.Bytes()
}

// bars draws the min_moves histogram of a size.
func (s *sizeStats) bars(b *bytes.Buffer) {
	if len(s.Moves) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-6s min_moves          boards   unique\n", fmt.Sprintf("%dx%d", s.Rows, s.Cols))
	most := slices.MaxFunc(s.Moves, func(a, b moves) int { return int(min(1, max(-1, a.Boards-b.Boards))) }).Boards
	for _, m := range s.Moves {
		fmt.Fprintf(b, "%16d %15s  %7s  %s\n", m.MinMoves, thousands(m.Boards), percentage(share(m.Unique, m.Boards)), bar(m.Boards, most))
	}
}

// bar draws a number; the longest bar is that of most.
func bar(n, most int64) string {
	return strings.Repeat("█", int(math.Ceil(share(n, most)*barWidth)))
}

// statsCSV writes the table of statistics as the dataset has it.
func statsCSV(m *dataset.Manifest, counts *tally.Tally) ([]byte, error) {
	var b bytes.Buffer
	if err := writeStatsCSV(&b, m, counts.Rows()); err != nil {
		return nil, fmt.Errorf("write CSV: %w", err)
	}
	return b.Bytes(), nil
}

// statsHeader names the columns of the table of statistics.
func statsHeader() []string {
	return []string{"rule", "target", "rows", "cols", "nullity", "status", "min_moves", "boards", "unique_optimal_boards", "optimal_solutions"}
}

func writeStatsCSV(to io.Writer, m *dataset.Manifest, rows []tally.Row) error {
	w := csv.NewWriter(to)
	if err := w.Write(statsHeader()); err != nil {
		return err
	}
	for _, r := range rows {
		least := ""
		if r.Status == puzzle.Solved {
			least = strconv.Itoa(r.MinMoves)
		}
		fields := []string{m.Spec.Rule, m.Spec.Target, strconv.Itoa(r.Rows), strconv.Itoa(r.Cols), strconv.Itoa(r.Nullity), r.Status.String(), least}
		for _, n := range [...]int64{r.Boards, r.UniqueOptimal, r.OptimalSolutions} {
			fields = append(fields, strconv.FormatInt(n, 10))
		}
		if err := w.Write(fields); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
