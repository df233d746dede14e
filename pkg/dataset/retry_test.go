package dataset_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// spoilt writes the dataset of a corpus as if a worker had failed at its last chunk.
func (c corpus) spoilt(t testing.TB, output string) *dataset.Dir {
	t.Helper()
	bad := corpus{c.spec, append([]answered(nil), c.chunks...)}
	last := &bad.chunks[len(bad.chunks)-1]
	records := last.chunk.Records()
	last.answers = nil
	last.chunk = puzzle.Chunk{First: last.chunk.First, Spans: last.chunk.Spans, Lines: last.chunk.Lines}
	for k := range records {
		last.chunk.Rejects = append(last.chunk.Rejects, puzzle.Reject{Index: last.chunk.First + int64(k), Reason: puzzle.WorkerFailed, Detail: "it died"})
	}
	bad.write(t, output)
	d, err := dataset.Open(output, "demo", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := dataset.ReadManifest(d.Path())
	if err != nil || d.Retryable(manifest) != int64(records) {
		t.Fatalf("%d rejects for a retry, want %d (%v)", d.Retryable(manifest), records, err)
	}
	return d
}

// retryAll begins or goes on with a retry and brings it to its end, as an
// aggregator does.
func (c corpus) retryAll(t testing.TB, output string, begins bool, trap func(step, file string)) {
	t.Helper()
	d, err := dataset.Open(output, "demo", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	d.Trap(trap)
	turn := d.Retrying
	if begins {
		turn = d.Retry
	}
	again, err := turn()
	if err != nil {
		t.Fatal(err)
	}
	if again == nil {
		return
	}
	again.Trap(trap)
	there, err := again.Committed()
	if err != nil {
		t.Fatal(err)
	}
	if len(there) == 2 {
		c.commit(t, again, 2)
	}
	if _, err := again.Finish(c.input()); err != nil {
		t.Fatal(err)
	}
	if err := d.Replace(again); err != nil {
		t.Fatal(err)
	}
}

// TestRetryInDoubt: where the manifest in place cannot be read, nobody knows which of
// the two datasets it is of, and nothing is removed.
func TestRetryInDoubt(t *testing.T) {
	t.Parallel()
	c, output, want := smallCorpus(t, testSpec(t, "plus", puzzle.Either)), t.TempDir(), t.TempDir()
	c.write(t, want)
	d := c.spoilt(t, output)
	func() {
		defer func() {
			if at := recover(); at != "replaced" {
				t.Fatalf("died of %v", at)
			}
		}()
		c.retryAll(t, output, true, func(step, _ string) {
			if step == "replaced" {
				panic(step)
			}
		})
	}()
	manifest, away := filepath.Join(d.Path(), "manifest.json"), filepath.Join(t.TempDir(), "away")
	if err := errors.Join(os.Rename(manifest, away), os.Mkdir(manifest, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Retrying(); err == nil {
		t.Error("it is taken for one of the two")
	}
	if err := d.Abandon(); err == nil {
		t.Error("the retry is abandoned")
	}
	if err := errors.Join(os.Remove(manifest), os.Rename(away, manifest)); err != nil {
		t.Fatal(err)
	}
	c.retryAll(t, output, false, nil)
	if !maps.Equal(tree(t, output), tree(t, want)) {
		t.Error("it is not the dataset of the retry")
	}
}

// TestHalfMarkOfRetry: of a mark that was being written when the machine lost its power
// any part may be there. The retry is not lost, and the next process finishes it.
func TestHalfMarkOfRetry(t *testing.T) {
	t.Parallel()
	c, want := smallCorpus(t, testSpec(t, "plus", puzzle.Either)), t.TempDir()
	c.write(t, want)
	for _, left := range []int64{0, 2, 4, 40} { // bytes of "any " and a checksum
		output := t.TempDir()
		c.spoilt(t, output)
		func() {
			defer func() {
				if at := recover(); at != "marked" {
					t.Fatalf("died of %v", at)
				}
			}()
			c.retryAll(t, output, true, func(step, _ string) {
				if step == "marked" {
					panic(step)
				}
			})
		}()
		if err := os.Truncate(filepath.Join(output, ".tmp", "demo.retry", "finished"), left); err != nil {
			t.Fatal(err)
		}
		c.retryAll(t, output, false, nil)
		if !maps.Equal(tree(t, output), tree(t, want)) {
			t.Errorf("with %d bytes of the mark it is not the dataset of the retry", left)
		}
	}
}

// What a retry has begun can be given up.
func TestAbandonedRetry(t *testing.T) {
	t.Parallel()
	c, output := smallCorpus(t, testSpec(t, "plus", puzzle.Either)), t.TempDir()
	d := c.spoilt(t, output)
	old := tree(t, output)
	if _, err := d.Retry(); err != nil {
		t.Fatal(err)
	}
	if err := d.Abandon(); err != nil {
		t.Fatal(err)
	}
	if again, err := d.Retrying(); again != nil || err != nil {
		t.Errorf("it goes on: %v", err)
	}
	if !maps.Equal(tree(t, output), old) {
		t.Error("the dataset is another")
	}
}
