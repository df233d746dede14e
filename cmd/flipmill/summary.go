package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/view"
)

// summary is what a person wants to know of a finished dataset.
type summary struct {
	Job     string   `json:"job"`
	Dataset string   `json:"dataset"` // folder
	Files   []string `json:"files"`   // patterns of the data files
	Records int64    `json:"records"`
	dataset.Counts
	Query string `json:"query"` // a shell line that reads the results
}

func summarize(path string) (*summary, error) {
	m, err := dataset.ReadManifest(path)
	if err != nil {
		return nil, err
	}
	s := &summary{Job: m.Job, Dataset: path, Records: m.Input.Records, Counts: m.Counts}
	for _, table := range []string{"results", "rejects", "stats"} {
		s.Files = append(s.Files, path+"/"+table+"/*.parquet")
	}
	s.Query = duckdb("SELECT status, min_moves, count(*) AS boards FROM '%s' GROUP BY ALL ORDER BY ALL", s.Files[0])
	if len(m.Spec.Columns) == 0 {
		s.Query = duckdb("SELECT status, min_moves, sum(boards) AS boards FROM '%s' GROUP BY ALL ORDER BY ALL", s.Files[2])
	} else if !slices.Contains(m.Spec.Columns, "status") || !slices.Contains(m.Spec.Columns, "min_moves") {
		s.Query = duckdb("FROM '%s' LIMIT 10", s.Files[0])
	}
	return s, nil
}

// duckdb returns the command for a query of files, quoted for SQL and for the shell.
func duckdb(query, files string) string {
	query = fmt.Sprintf(query, strings.ReplaceAll(files, "'", "''"))
	return `duckdb -c "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(query) + `"`
}

// print writes the summary for people, or as JSON.
func (s *summary) print(w io.Writer, asJSON bool) error {
	var text []byte
	if asJSON {
		var err error
		if text, err = document(s); err != nil {
			return fmt.Errorf("write the summary: %w", err)
		}
	} else {
		text = s.text(lineWidth(w))
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return nil
}

func (s *summary) text(columns int) []byte {
	var b strings.Builder
	count := func(name string, n int64) {
		fmt.Fprintf(&b, "%-12s %15s", name, view.Thousands(n))
		if s.Records > 0 && name != "records" {
			fmt.Fprintf(&b, "  %6.2f%%", 100*float64(n)/float64(s.Records))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%-12s %15s\n", "job", s.Job)
	count("records", s.Records)
	count("solved", s.Solved)
	count("impossible", s.Impossible)
	if s.Unproven > 0 {
		count("unproven", s.Unproven)
	}
	count("rejected", s.Rejected)
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		fmt.Fprintf(&b, "  %-18s %7s\n", reason, view.Thousands(s.Reasons[reason]))
	}
	if s.Solved > 0 {
		b.WriteString("\nmin_moves          boards\n")
		s.bars(&b, columns)
	}
	fmt.Fprintf(&b, "\ndataset  %s\n", s.Dataset)
	for _, pattern := range s.Files {
		fmt.Fprintf(&b, "         %s\n", pattern)
	}
	fmt.Fprintf(&b, "query    %s\n", s.Query)
	return []byte(b.String())
}

// The length in characters of the histogram's longest bar where there is room for it,
// and how many bars there are at most: of wide boards there may be hundreds of minima.
const (
	barWidth = 40
	maxBars  = 40
)

// bar draws a number in the room that a line has for it; the longest bar is that of
// most, and the shortest still seen.
func bar(n, most int64, room int) string {
	length := int64(max(1, min(barWidth, room)))
	return strings.Repeat("█", int((n*length+most-1)/most))
}

// bars draws the min_moves histogram, several minima to a bar where there are many.
func (s *summary) bars(b *strings.Builder, columns int) {
	bars, width := fold(s.Histogram)
	most := slices.Max(bars)
	for i, boards := range bars {
		if boards == 0 {
			continue
		}
		moves := fmt.Sprint(i * width)
		if width > 1 {
			moves += fmt.Sprintf("-%d", (i+1)*width-1)
		}
		beside := fmt.Sprintf("%9s %15s  ", moves, view.Thousands(boards))
		fmt.Fprintf(b, "%s%s\n", beside, bar(boards, most, columns-len(beside)))
	}
}

// fold sums up a histogram in equal steps from 0 on, the smallest of 1, 2, 4, 8 and so
// on that leave few enough bars.
func fold(histogram []int64) (bars []int64, width int) {
	for width = 1; ; width *= 2 {
		bars = make([]int64, (len(histogram)+width-1)/width)
		for moves, boards := range histogram {
			bars[moves/width] += boards
		}
		if len(bars)-slices.IndexFunc(bars, func(n int64) bool { return n > 0 }) <= maxBars {
			return bars, width
		}
	}
}
