package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
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
		(&summary{Counts: dataset.Counts{Histogram: histogram}}).bars(&b)
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
