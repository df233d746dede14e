//go:build cluster

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
)

// TestCheck compares what check says of corpora with what a run makes of them.
func TestCheck(t *testing.T) {
	t.Parallel()
	sizes := filepath.Join(t.TempDir(), "sizes.txt") // of which a chunk has other boards than the next
	text := strings.Repeat("110/101/011\n", 1<<16) + strings.Repeat(strings.Repeat("/1100101001110001", 16)[1:]+"\n", 500)
	if err := os.WriteFile(sizes, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for job, args := range map[string][]string{
		"sizes":  {sizes},
		"mixed":  {"examples/mixed"},
		"faulty": {"examples/faulty.txt", "--cells", "bits"},
		"boards": {"examples/boards-5x5.txt", "--columns", "board,status,rows,cols", "--compression", "none"},
		"counts": {"examples/all-4x4.txt.zst", "--columns", "none"},
		"made":   {"--generate", "random,count=190000", "--size", "16x16", "--part-chunks", "3"},
	} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			linkExamples(t, dir)
			out, err := command(t, dir, append([]string{"check", "--json"}, args...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			var c checked
			if err := json.Unmarshal(out, &c); err != nil {
				t.Fatal(err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
				t.Errorf("check leaves something: %v, %v", entries, err)
			}
			flipmill(t, dir, append([]string{"run", "--job", job}, args...)...)
			wantForetold(t, &c, filepath.Join(dir, "out", "job="+job))
		})
	}
}

// wantForetold compares a report with the dataset that came of its corpus.
func wantForetold(t *testing.T, c *checked, path string) {
	t.Helper()
	m, err := dataset.ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Records != m.Input.Records || c.Rejected != m.Counts.Rejected || c.Boards != c.Records-c.Rejected {
		t.Errorf("%d records, %d boards, %d rejects; the run has %d and %d", c.Records, c.Boards, c.Rejected, m.Input.Records, m.Counts.Rejected)
	}
	var bytes int64
	for _, s := range m.Input.Sources {
		bytes += s.Bytes
	}
	if c.Files != len(m.Input.Sources) || c.Bytes != bytes {
		t.Errorf("%d files of %d bytes; the run has %d of %d", c.Files, c.Bytes, len(m.Input.Sources), bytes)
	}
	for _, r := range c.Reasons {
		if got := m.Counts.Reasons[r.Reason]; got != r.Records {
			t.Errorf("%d rejects %s; the run has %d", r.Records, r.Reason, got)
		}
	}
	sizes, err := query(path, "SELECT rows, cols, sum(boards)::BIGINT AS boards FROM 'stats/stats.parquet' GROUP BY ALL ORDER BY ALL")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(sizes, "\n")-1, len(c.Sizes); got != want {
		t.Errorf("boards of %d sizes; the run has\n%s", want, sizes)
	}
	var boards int64
	for _, s := range c.Sizes {
		boards += s.Boards
	}
	if boards != c.Boards {
		t.Errorf("%d boards by size, %d in all", boards, c.Boards)
	}
	f := c.Forecast
	if f.Tasks != m.Input.Chunks || f.Parts != int64(len(m.Parts)) {
		t.Errorf("%d tasks and %d parts are foretold; the run has %d and %d", f.Tasks, f.Parts, m.Input.Chunks, len(m.Parts))
	}
	var left float64
	err = filepath.Walk(path, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			left += float64(info.Size())
		}
		return err
	})
	if err != nil || left < f.OutputBytes.Low || left > f.OutputBytes.High {
		t.Errorf("%.0f to %.0f bytes are foretold; the run leaves %.0f (%v)", f.OutputBytes.Low, f.OutputBytes.High, left, err)
	}
	for name, e := range map[string]estimate{"task_bytes": f.TaskBytes, "result_bytes": f.ResultBytes, "core_seconds": f.CoreSeconds, "seconds": f.Seconds} {
		if e.Low < 0 || e.High < e.Low || e.High == 0 && name != "core_seconds" {
			t.Errorf("%s from %g to %g", name, e.Low, e.High)
		}
	}
}
