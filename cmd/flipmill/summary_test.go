package main

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/view"
)

// TestBars: whatever the minima of a corpus are, the summary draws few bars, each board
// is in one of them, and a minimum has a bar of its own where there is room.
func TestBars(t *testing.T) {
	for name, test := range map[string]struct {
		from, to int // minima, all of them
		lines    int
		first    string
	}{
		"one":              {0, 0, 1, "0"},
		"small boards":     {3, 15, 13, "3"},
		"as many as drawn": {1900, 1939, 40, "1900"},
		"one more":         {1900, 1940, 21, "1900-1901"},
		"64x64":            {1840, 2099, 33, "1840-1847"},
		"all":              {0, 16384, 33, "0-511"},
	} {
		histogram := make([]int64, test.to+1)
		for moves := test.from; moves <= test.to; moves++ {
			histogram[moves] = int64(moves + 1)
		}
		before := slices.Clone(histogram)
		var b strings.Builder
		(&summary{Counts: dataset.Counts{Histogram: histogram}}).bars(&b, 100)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != test.lines || strings.Fields(lines[0])[0] != test.first || !slices.Equal(histogram, before) {
			t.Errorf("%s: %d lines, of which the first is %s", name, len(lines), lines[0])
		}
		bars, _ := fold(histogram)
		var all, want int64
		for _, n := range bars {
			all += n
		}
		for _, n := range before {
			want += n
		}
		if all != want {
			t.Errorf("%s: %d boards, want %d", name, all, want)
		}
	}
}

// TestBarsFitTerminal: a bar is as long as its line has room for, 40 characters at most,
// and the longest is as long as that.
func TestBarsFitTerminal(t *testing.T) {
	histogram := []int64{1, 0, 1_234_567}
	statistics := &view.Statistics{Rejected: 7, Reasons: map[puzzle.Reason]int64{puzzle.UnknownSymbol: 7}, Sizes: []*view.SizeStats{{
		Rows: 3, Cols: 3, Solved: 1, Boards: 1, Moves: []view.Moves{{MinMoves: 5, Boards: 1, Unique: 1}, {MinMoves: 6, Boards: 1_234_567}},
	}}}
	for _, columns := range []int{50, 66, 80, 100, 300} {
		var b strings.Builder
		(&summary{Counts: dataset.Counts{Histogram: histogram}}).bars(&b, columns)
		for name, text := range map[string]string{"run": b.String(), "stats": string(statisticsText(statistics, columns))} {
			bars, longest := 0, 0
			for line := range strings.Lines(text) {
				length := strings.Count(line, "█")
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > 0 && n > columns {
					t.Errorf("%s: %d columns, %d in %q", name, columns, n, line)
				}
				bars += min(length, 1)
				longest = max(longest, length)
			}
			if room := columns - len("               6       1,234,567    0.00%  "); bars < 2 || longest < min(40, room) || longest > 40 {
				t.Errorf("%s: %d columns, %d bars, the longest of %d in\n%s", name, columns, bars, longest, text)
			}
		}
	}
}
