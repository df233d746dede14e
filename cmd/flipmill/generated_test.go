//go:build cluster

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestGenerated solves generated boards with several workers: the datasets are the
// same bytes, verify makes the boards again, and DuckDB finds in them what
// flipmill generate writes.
func TestGenerated(t *testing.T) {
	t.Parallel()
	for job, flags := range map[string][]string{
		"solvable": {"solvable,count=100000,seed=7,first=12", "--size", "5x5", "--rule", "king", "--target", "either"},
		"distinct": {"distinct", "--size", "4x4"},
		"presses":  {"presses=3,count=2000,seed=2", "--size", "9x9", "--target", "one"},
		"moves":    {"moves=9,count=20000,seed=3,first=7", "--size", "5x5", "--target", "either"},
		"orbits":   {"orbits,seed=5,first=100", "--size", "4x4", "--target", "either"},
		"random":   {"random,count=500", "--size", "3x40"},
	} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append([]string{"run", "--job", job, "--part-chunks", "1", "--generate"}, flags...)
			flipmill(t, dir, append(args, "-o", "one", "--workers", "1")...)
			flipmill(t, dir, append(args, "-o", "four", "--workers", "4")...)
			flipmill(t, dir, "verify", "four/job="+job)
			wantSame(t, hashes(t, filepath.Join(dir, "four")), hashes(t, filepath.Join(dir, "one")))
			text, err := command(t, dir, append([]string{"generate"}, flags...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			rows, err := query(dir, "SELECT board FROM 'four/job="+job+"/results/*.parquet' WHERE source IS NULL AND line IS NULL ORDER BY puzzle_index")
			if err != nil {
				t.Fatal(err)
			}
			if _, boards, _ := strings.Cut(rows, "\n"); boards != string(text) || strings.Count(boards, "\n") < 500 {
				t.Errorf("%d bytes of other boards than the %d that generate writes", len(boards), len(text))
			}
		})
	}
}
