package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

var benchRecords = flag.Int("records", 100_000, "records in the corpus of BenchmarkRun")

// BenchmarkRun runs the whole pipeline as a process of its own: text in, proved
// Parquet out.
func BenchmarkRun(b *testing.B) {
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
			var peak int64
			for n := 0; b.Loop(); n++ {
				output := fmt.Sprintf("out%d", n)
				cmd := command(b, dir, append([]string{"run", "boards.txt", "--size", "5x5", "-o", output}, c.args...)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
					peak = max(peak, usage.Maxrss)
				}
				b.StopTimer()
				if err := os.RemoveAll(filepath.Join(dir, output)); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(*benchRecords)*float64(b.N)/b.Elapsed().Seconds(), "boards/s")
			b.ReportMetric(float64(peak)/1024, "peak-MiB") // Linux counts Maxrss in KiB
		})
	}
}
