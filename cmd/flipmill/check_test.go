package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/wire"
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

// Of many chunks as many are chosen as there should be, each as likely as others.
func TestSample(t *testing.T) {
	t.Parallel()
	const draws, chunks = 4000, 64
	hits := make([]int, chunks)
	random := rand.New(rand.NewPCG(5, 6))
	for range draws {
		s := &sample{random: random}
		for k := range chunks {
			s.add(&wire.Task{ID: wire.ID{Chunk: int64(k)}})
		}
		if len(s.chosen) != sampleSize {
			t.Fatalf("%d chunks chosen", len(s.chosen))
		}
		for _, c := range s.chosen {
			hits[c.ID.Chunk]++
		}
	}
	for k, n := range hits { // 1000 expected, the standard deviation is 27
		if n < 860 || n > 1140 {
			t.Errorf("chunk %d is chosen %d times of %d", k, n, draws)
		}
	}
}

// TestPredict predicts sums that are known.
func TestPredict(t *testing.T) {
	t.Parallel()
	of := func(m measured) float64 { return m.result }
	random := rand.New(rand.NewPCG(1, 2))
	const chunks, draws = 200, 500
	var all []measured
	var sum float64
	var records int64
	for range chunks { // chunks of two kinds of boards in varying shares, and noise
		n := 1000 + random.Int64N(500)
		m := measured{records: n, result: float64(n) * (5 + 3*random.Float64())}
		all, sum, records = append(all, m), sum+m.result, records+n
	}
	if got := predict(all, of, chunks, records); got.Low > sum*(1+1e-9) || got.High < sum*(1-1e-9) || got.High-got.Low > 1e-6 {
		t.Errorf("of all chunks %v is foretold, the sum is %g", got, sum)
	}
	missed, width := 0, 0.0
	for range draws {
		var some []measured
		for _, k := range random.Perm(chunks)[:sampleSize] {
			some = append(some, all[k])
		}
		got := predict(some, of, chunks, records)
		width += (got.High - got.Low) / sum / draws
		if sum < got.Low || sum > got.High {
			missed++
		}
	}
	if missed > draws/40 || width > 0.3 {
		t.Errorf("%d of %d forecasts are wrong, at an average width of %.2f", missed, draws, width)
	}
	if got := predict(all[:1], of, chunks, records); got.Low <= 0 || got.High < 2.9*got.Low {
		t.Errorf("of one chunk %v is foretold", got)
	}
}
