//go:build browser && cluster

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/view"
)

// looked is what testdata/browser/look.mjs finds on the pages.
type looked struct {
	Wrong []string

	Kept  string
	Small struct {
		State, Percent               string
		Records, Received, Committed int64
		Moves, Rejects               map[string]int64
		Charts                       map[string]*chart
	}
	List map[string]string

	Steps []struct {
		Cells, Told string
		Made        int
	}
	Focus, Said, Address string

	IDs, Notes, Reject string
	Elements           int

	Link, Plain, Last string
	Again             int
}

// TestStatusPages looks at the pages of an aggregator and of a run in a real browser:
// numbers, drawings and steps are those of the verbs and of the puzzle, what changes
// comes by itself, hostile names stay names, and nobody is shut out.
func TestStatusPages(t *testing.T) {
	c := newCluster(t, nil)
	writeSmallBoards(t, filepath.Join(c.dir, "small.txt"), 3)
	hostile := []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</svg><svg onload=alert(1)>`}
	const source, raw = "<b onclick=alert(3)>.jsonl", "<img src=x onerror=alert(2)>"
	writeHostile(t, filepath.Join(c.dir, source), hostile, raw)
	examples, err := filepath.Abs("../../examples/boards-5x5.txt")
	if err != nil {
		t.Fatal(err)
	}
	collects := c.start("aggregator", "-o", "far", "--http", ":0")
	worker := c.start("worker", "--workers", "1")
	c.run("submit", examples, "--size", "5x5", "--wait")
	c.run("submit", source, "--size", "5x5", "--job", "hostile", "--keep", "note", "--wait")
	worker.signal(syscall.SIGTERM)
	worker.succeed()
	var board struct {
		Index           int64 `json:"puzzle_index"`
		Board, Solution string
	}
	printed(t, start(t, nil, c.dir, "flipmill", "show", "far/job=boards-5x5", "--moves", "15", "--limit", "1", "--json"), &board)
	run := start(t, nil, c.dir, "flipmill", "run", "--generate", "random,count=1000000000000,seed=1", "--size", "5x5", "--job", "endless",
		"--columns", "none", "--part-chunks", "1", "--window", "1", "--workers", "1", "--http", ":0", "--log-level", "info")
	runURL := run.endpoint()
	run.await("part committed", 1)
	run.signal(syscall.SIGSTOP) // until it is looked at: it would take a core from the others
	submit := c.start("submit", "small.txt", "--size", "2x2", "--part-chunks", "1", "--window", "8", "--wait")
	submit.await("corpus read", 1)

	var b looked
	asked, err := json.Marshal(map[string]any{"url": collects.endpoint(), "run": runURL, "board": board.Index})
	if err != nil {
		t.Fatal(err)
	}
	look := start(t, nil, "testdata/browser", "node", "look.mjs", string(asked))
	look.await("the page of small is open", 1)
	c.start("worker", "--workers", "1")
	submit.succeed()
	for _, next := range []string{"steps", "hostile", "everybody", "/jobs/small in light", "/jobs/hostile/boards/1 in light", "withoutScripts", "endOfRun"} {
		look.await("next: "+next, 1) // each in its time, on a slow machine
	}
	run.signal(syscall.SIGCONT)
	look.await("the page of endless is open", 1)
	run.signal(syscall.SIGTERM)
	if code := run.exit(); code != 143 {
		t.Errorf("run ends with %d:\n%s", code, run.log())
	}
	printed(t, look, &b)

	for _, w := range b.Wrong {
		t.Error(w)
	}
	b.likeVerbs(t, c)
	b.likePuzzle(t, board.Board, board.Solution)
	if !strings.HasSuffix(b.Address, fmt.Sprintf("/jobs/boards-5x5/boards/%d?step=15", board.Index)) {
		t.Errorf("the last step is at %s", b.Address)
	}
	for text, within := range map[string]string{hostile[0]: b.IDs, hostile[2]: b.IDs, "note " + hostile[0]: b.Notes, raw: b.Reject, source: b.Reject, "After press 1 of 3, ": b.Link} {
		if !strings.Contains(within, text) {
			t.Errorf("%q is not in %q", text, within)
		}
	}
	if b.Elements != 0 {
		t.Errorf("%d elements have come from the corpus", b.Elements)
	}
	if b.Again != 1 || b.Last == "" || b.Last == "0" {
		t.Errorf("without scripts the page is loaded again: %d; the last number of the run is %q", b.Again, b.Last)
	}
}

func writeHostile(t *testing.T, path string, ids []string, raw string) {
	t.Helper()
	var lines strings.Builder
	out := json.NewEncoder(&lines)
	out.SetEscapeHTML(false) // it is to be as bad as it can be
	for i, id := range ids {
		board := "1100011011110010010100110"
		if i == 1 {
			board = raw
		}
		if err := out.Encode(map[string]string{"id": id, "board": board, "note": "note " + id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// printed reads what a process prints, at its good end.
func printed(t *testing.T, p *process, v any) {
	t.Helper()
	p.succeed()
	if err := json.Unmarshal([]byte(p.out.String()), v); err != nil {
		t.Fatalf("%s says %q: %v", p.name, &p.out, err)
	}
}

// likeVerbs compares pages with status, list and stats.
func (b *looked) likeVerbs(t *testing.T, c *cluster) {
	t.Helper()
	if b.Kept != "once, browse" {
		t.Errorf("the page was loaded again, or lost the focus: %s", b.Kept)
	}
	s := ask[view.Status](c, exitOK, "status", "small")
	if got := b.Small; got.State != s.State || got.Percent != s.Progress() || got.Records != *s.Records || got.Received != s.Received.Records || got.Committed != s.Committed.Records {
		t.Errorf("the page says %+v, status %+v", got, s)
	}
	if !strings.Contains(b.Plain, view.Thousands(s.Received.Records)) {
		t.Errorf("without scripts the page says %q, status %d", b.Plain, s.Received.Records)
	}
	var stats view.Statistics
	printed(t, start(t, nil, c.dir, "flipmill", "stats", "far/job=small", "--json"), &stats)
	moves, rejects := map[string]int64{}, map[string]int64{}
	for _, m := range stats.Sizes[0].Moves {
		moves[fmt.Sprint(m.MinMoves)] = m.Boards
	}
	for reason, n := range stats.Reasons {
		rejects[string(reason)] = n
	}
	if !maps.Equal(b.Small.Moves, moves) || !maps.Equal(b.Small.Rejects, rejects) || len(rejects) == 0 {
		t.Errorf("the page says %+v, stats %v and %v", b.Small, moves, rejects)
	}
	b.drawn(t, moves)
	all := ask[[]view.Status](c, exitOK, "list")
	if len(b.List) != len(all) {
		t.Errorf("the page lists %d jobs, list %d", len(b.List), len(all))
	}
	for _, s := range all {
		for _, want := range []string{s.State, s.Progress(), view.Thousands(s.Received.Records), s.Total()} {
			if !strings.Contains(b.List[s.Job], want) {
				t.Errorf("the page says %q, without %q", b.List[s.Job], want)
			}
		}
	}
}

// drawn compares the bars of the page with the numbers, and their heights with each
// other.
func (b *looked) drawn(t *testing.T, moves map[string]int64) {
	t.Helper()
	c := b.Small.Charts["moves-chart"]
	if c == nil || len(c.values()) != len(moves) || len(c.Heights) != len(moves) {
		t.Errorf("the chart is %+v, stats says %v", c, moves)
		return
	}
	var values []float64
	for _, key := range c.Keys {
		if v := c.values()[key]; v != nil {
			values = append(values, v[0])
			if v[0] != float64(moves[key]) {
				t.Errorf("the bar of %s is %v, stats says %d", key, v, moves[key])
			}
		}
	}
	highest := slices.Max(values)
	for i, v := range values {
		if want := slices.Max(c.Heights) * v / highest; math.Abs(c.Heights[i]-want) > 1 {
			t.Errorf("the bar of %v is %v high, want %v", v, c.Heights[i], want)
		}
	}
}

// likePuzzle makes the presses of a 5×5 board's solution by hand, under the rule
// plus: each step of the page is the one before with one more of them.
func (b *looked) likePuzzle(t *testing.T, board, solution string) {
	t.Helper()
	const size = 5
	cells := []byte(board)
	want := []string{board}
	for at := range len(solution) {
		if solution[at] != '1' {
			continue
		}
		for _, d := range [][2]int{{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
			if r, c := at/size+d[0], at%size+d[1]; r >= 0 && r < size && c >= 0 && c < size {
				cells[r*size+c] ^= 1
			}
		}
		want = append(want, string(cells))
	}
	var got []string
	for i, s := range b.Steps {
		if got = append(got, s.Cells); s.Made != i {
			t.Errorf("%d presses are drawn as made after %d", s.Made, i)
		}
	}
	if !slices.Equal(got, want) || len(want) != 16 || strings.Contains(string(cells), "1") {
		t.Errorf("the steps are %v, want %v", got, want)
	}
	if last := len(b.Steps) - 1; last < 0 || b.Focus != "after" || b.Said != b.Steps[last].Told || !strings.HasPrefix(b.Said, "After press 15 of 15, ") {
		t.Errorf("the focus is at %q, who listens is told %q", b.Focus, b.Said)
	}
}
