package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var benchRecords = flag.Int("records", 100_000, "records in the corpus of BenchmarkRun")

// buildBinary builds the command as users have it: the test's own binary has DuckDB
// in it.
func buildBinary(b *testing.B) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "flipmill")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// BenchmarkRun runs the whole pipeline as a process of its own: text in, proved
// Parquet out.
func BenchmarkRun(b *testing.B) {
	binary := buildBinary(b)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"text", nil},
		{"bits", []string{"--cells", "bits"}},
		{"snappy", []string{"--compression", "snappy"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			writeCorpus(b, filepath.Join(dir, "boards.txt"), *benchRecords)
			for n := 0; b.Loop(); n++ {
				output := fmt.Sprintf("out%d", n)
				cmd := exec.CommandContext(b.Context(), binary, append([]string{"run", "boards.txt", "--size", "5x5", "-o", output}, c.args...)...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				b.StopTimer()
				if err := os.RemoveAll(filepath.Join(dir, output)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(*benchRecords)*float64(b.N)/b.Elapsed().Seconds(), "boards/s")
		})
	}
}
