package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/view"
)

func newStats() *cobra.Command {
	return newDatasetVerb(&cobra.Command{
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
	}, func(cmd *cobra.Command, c *config.Config, path string) error {
		m, counts, err := dataset.ReadTally(path)
		if err != nil {
			return err
		}
		text, err := statsText(m, counts, c, lineWidth(cmd.OutOrStdout()))
		if err != nil {
			return err
		}
		if _, err := cmd.OutOrStdout().Write(text); err != nil {
			return fmt.Errorf("write the statistics: %w", err)
		}
		return nil
	})
}

// statsText renders statistics as the flags want them.
func statsText(m *dataset.Manifest, counts *tally.Tally, c *config.Config, columns int) ([]byte, error) {
	switch {
	case c.JSON && c.CSV:
		return nil, withCode(exitUsage, fmt.Errorf("--json and --csv: want one of them"))
	case c.CSV:
		return statsCSV(m, counts)
	}
	spec, err := m.Spec.ParseSpec()
	if err != nil {
		return nil, err
	}
	s, err := view.NewStatistics(m.Job, spec, counts)
	if err != nil {
		return nil, err
	}
	if !c.JSON {
		return statisticsText(s, columns), nil
	}
	return document(s)
}

// statisticsText is the statistics for people, with bars that lines of so many columns
// have room for.
func statisticsText(s *view.Statistics, columns int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "job       %s\nrule      %s\ntarget    %s\nrecords   %s\nrejected  %s\n",
		s.Job, s.Rule, s.Target, view.Thousands(s.Records), view.Thousands(s.Rejected))
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		beside := fmt.Sprintf("  %-15s %9s  ", reason, view.Thousands(s.Reasons[reason]))
		fmt.Fprintf(&b, "%s%s\n", beside, bar(s.Reasons[reason], s.Rejected, columns-len(beside)))
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
			unique, optima = view.Percent(view.Share(z.Unique, z.Solved)), fmt.Sprintf("%.2f", view.Share(z.Optimal, z.Solved))
		}
		fmt.Fprintf(w, "%dx%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", z.Rows, z.Cols, z.Nullity,
			view.Thousands(z.Boards), view.Thousands(z.Solved), view.Thousands(z.Impossible), view.Thousands(z.Unproven),
			view.Percent(z.Solvable), view.Percent(z.Random), unique, optima)
	}
	w.Flush() // into memory
	for _, z := range s.Sizes {
		sizeBars(&b, z, columns)
	}
	return b.Bytes()
}

// sizeBars draws the min_moves histogram of a size.
func sizeBars(b *bytes.Buffer, s *view.SizeStats, columns int) {
	if len(s.Moves) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-6s min_moves          boards   unique\n", fmt.Sprintf("%dx%d", s.Rows, s.Cols))
	most := slices.MaxFunc(s.Moves, func(a, b view.Moves) int { return int(min(1, max(-1, a.Boards-b.Boards))) }).Boards
	for _, m := range s.Moves {
		beside := fmt.Sprintf("%16d %15s  %7s  ", m.MinMoves, view.Thousands(m.Boards), view.Percent(view.Share(m.Unique, m.Boards)))
		fmt.Fprintf(b, "%s%s\n", beside, bar(m.Boards, most, columns-len(beside)))
	}
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
