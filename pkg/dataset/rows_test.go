package dataset_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Who does not wait any longer gets no more rows.
func TestFindEnds(t *testing.T) {
	t.Parallel()
	output, spec := t.TempDir(), testSpec(t, "plus", puzzle.Zero)
	smallCorpus(t, spec).write(t, output)
	reader, err := dataset.NewReader(output, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, last = range reader.Find(ctx, dataset.Filter{}) {
		cancel() // the rows of this row group may still come
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the rows end with %v", last)
	}
}

// TestReader follows a dataset that is being made, and made again: a reader knows
// what is committed, no more and no less.
func TestReader(t *testing.T) {
	t.Parallel()
	output := t.TempDir()
	c := smallCorpus(t, testSpec(t, "plus", puzzle.Either))
	reader, err := dataset.NewReader(output, "demo", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	last := int64(c.chunks[4].chunk.First)
	expect := func(parts int, records, failed int64, there bool) {
		t.Helper()
		n, counts, err := reader.Committed()
		if err != nil || n != parts || counts.Boards()+counts.Rejected() != records {
			t.Errorf("%d parts with %d records, error %v; want %d with %d", n, counts.Boards()+counts.Rejected(), err, parts, records)
		}
		for _, r := range counts.Rejects() {
			if r.Reason == puzzle.WorkerFailed && r.Records != failed || failed == 0 && r.Reason == puzzle.WorkerFailed {
				t.Errorf("%d records that workers failed at, want %d", r.Records, failed)
			}
		}
		found := false
		for row, err := range reader.Find(t.Context(), dataset.Filter{Index: &last}) {
			if found = err == nil; !found || (row.Reason != nil) != (failed > 0) {
				t.Errorf("record %d is %+v, error %v", last, row, err)
			}
		}
		if found != there {
			t.Errorf("record %d is there: %v, want %v", last, found, there)
		}
	}
	expect(0, 0, 0, false)
	d, err := dataset.Open(output, "demo", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	c.commit(t, d, 1)
	c.commit(t, d, 0)
	expect(2, last, 0, false)
	expect(2, last, 0, false)
	records := c.input().Records
	if err := os.RemoveAll(d.Path()); err != nil {
		t.Fatal(err)
	}
	c.spoilt(t, output)
	expect(3, records, records-last, true)
	c.retryAll(t, output, true, nil)
	expect(3, records, 0, true)
}

// What is no dataset, and what has been altered, is an error and not a row.
func TestFindErrors(t *testing.T) {
	t.Parallel()
	path := smallCorpus(t, testSpec(t, "plus", puzzle.Zero)).write(t, t.TempDir())
	change(t, path, "results/part-00000.parquet", func(data []byte) []byte { data[1000] ^= 1; return data })
	for _, path := range []string{t.TempDir(), path} {
		failed := false
		for _, err := range dataset.Find(path, dataset.Filter{Status: "solved"}) {
			if failed = err != nil; failed {
				break
			}
		}
		if !failed {
			t.Errorf("%s: no error", path)
		}
	}
}
