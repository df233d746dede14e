//go:build browser && cluster

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/view"
)

// chart is what a chart of a page shows, as testdata/browser/browser.mjs reads it.
type chart struct {
	Keys    []string
	Series  [][]*float64
	Heights []float64
}

// values returns what is shown of each key, in each series. A key without a value in
// the first is none.
func (c *chart) values() map[string][]float64 {
	all := map[string][]float64{}
	for i, key := range c.Keys {
		for _, series := range c.Series {
			if c.Series[0][i] == nil {
				continue
			}
			v := 0.0 // nothing is drawn
			if series[i] != nil {
				v = *series[i]
			}
			all[key] = append(all[key], v)
		}
	}
	return all
}

// TestReportCharts looks at reports in a real browser: their charts have the numbers
// of stats --json, and tell them when pointed at; a report asks nobody for anything,
// corpora do nothing to it, and nobody is shut out.
func TestReportCharts(t *testing.T) {
	dir := t.TempDir()
	linkExamples(t, dir)
	hostile := []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</script><img src=x onerror=alert(1)>`}
	const source = "<b onclick=alert(3)>.jsonl"
	writeHostile(t, filepath.Join(dir, source), hostile, "<img src=x onerror=alert(2)>")
	jobs := []string{"one", "mixed-sizes", "faulty", "hostile", "large"}
	for i, args := range [][]string{
		{"examples/boards-5x5.txt"}, {"examples/mixed-sizes.txt"}, {"examples/faulty.txt"}, {source, "--size", "5x5"},
		{"--generate", "solvable,count=2000,seed=1", "--size", "30x30"}, // hundreds of bars
	} {
		flipmill(t, dir, append(append([]string{"run"}, args...), "--job", jobs[i])...)
	}
	look := []string{"report.mjs"}
	for _, job := range jobs {
		name := filepath.Join(dir, job+".html")
		flipmill(t, dir, "report", "out/job="+job, "-o", name)
		look = append(look, name)
	}
	var found struct {
		Wrong, Pointed []string
		Charts         []map[string]*chart
		Plain          string
	}
	browser := start(t, nil, "testdata/browser", "node", look...)
	for _, next := range []string{"pointed", "light", "dark", "paper", "withoutScripts"} {
		browser.await("next: "+next, 1) // each in its time, on a slow machine
	}
	printed(t, browser, &found)
	for _, w := range found.Wrong {
		t.Error(w)
	}
	for i, job := range jobs {
		var stats view.Statistics
		printed(t, start(t, nil, dir, "flipmill", "stats", "out/job="+job, "--json"), &stats)
		if i < len(found.Charts) {
			compareCharts(t, job, found.Charts[i], &stats)
		}
	}
	// Under the middle of the chart are 8, 9 or 10 presses of 3 to 15.
	if text := strings.Join(found.Pointed, " "); !strings.Contains(text, "489") && !strings.Contains(text, "604") && !strings.Contains(text, "295") {
		t.Errorf("what is pointed at says %q", text)
	}
	if !strings.Contains(found.Plain, "604") {
		t.Errorf("without scripts the table is %q", found.Plain)
	}
}

// compareCharts compares all charts of a report with the statistics.
func compareCharts(t *testing.T, job string, drawn map[string]*chart, stats *view.Statistics) {
	t.Helper()
	want := map[string]map[string][]float64{}
	shares, all := map[string][]float64{}, map[int][2]int64{}
	sizes := slices.Clone(stats.Sizes)
	slices.SortStableFunc(sizes, func(a, b *view.SizeStats) int { return int(b.Boards - a.Boards) })
	for i, s := range sizes {
		shares[fmt.Sprintf("%d×%d", s.Rows, s.Cols)] = []float64{s.Solvable, s.Random}
		moves := map[int][2]int64{}
		for _, m := range s.Moves {
			moves[m.MinMoves] = [2]int64{m.Boards, m.Unique}
			all[m.MinMoves] = [2]int64{all[m.MinMoves][0] + m.Boards, all[m.MinMoves][1] + m.Unique}
		}
		if len(moves) > 1 && i < 12 { // a single bar is a sentence; further sizes have a row
			want[fmt.Sprintf("moves-%dx%d-chart", s.Rows, s.Cols)] = bars(moves)
		}
	}
	if len(sizes) > 1 {
		want["sizes-chart"] = shares
		if len(all) > 1 {
			want["moves-all-chart"] = bars(all)
		}
	}
	if len(stats.Reasons) > 1 {
		want["reasons-chart"] = reasons(stats.Reasons)
	}
	for id, values := range want {
		if c := drawn[id]; c == nil || !reflect.DeepEqual(c.values(), values) {
			t.Errorf("%s: chart %s is %+v, stats says %v", job, id, c, values)
		}
	}
	if len(drawn) != len(want) {
		t.Errorf("%s: %d charts are drawn, want %d", job, len(drawn), len(want))
	}
}

// bars is a histogram of boards, those with one optimum, and the share of all with so
// many presses or fewer.
func bars(moves map[int][2]int64) map[string][]float64 {
	all := map[string][]float64{}
	for m, n := range moves {
		fewer, whole := int64(0), int64(0)
		for other, n := range moves {
			if whole += n[0]; other <= m {
				fewer += n[0]
			}
		}
		all[fmt.Sprint(m)] = []float64{float64(n[0]), float64(n[1]), float64(fewer) / float64(whole)}
	}
	return all
}

func reasons(records map[puzzle.Reason]int64) map[string][]float64 {
	all := map[string][]float64{}
	for reason, n := range records {
		all[string(reason)] = []float64{float64(n)}
	}
	return all
}

// TestChartsLibrary: the library is the one that its authors published, with its
// licence: npm has checked what it installed against package-lock.json.
func TestChartsLibrary(t *testing.T) {
	for ours, theirs := range map[string]string{"echarts.common.min.js": "dist/echarts.common.min.js", "LICENSE": "LICENSE", "NOTICE": "NOTICE", "LICENSE-zrender": "../zrender/LICENSE"} {
		a, err := os.ReadFile(filepath.Join("../../pkg/draw/echarts", ours))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join("testdata/browser/node_modules/echarts", theirs))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s is not that of the npm package", ours)
		}
	}
}
