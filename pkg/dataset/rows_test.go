package dataset_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Every record is found by its index, once, and its cells are the same however
// they are stored. A column of the corpus called reason makes no reject of a row.
func TestFind(t *testing.T) {
	t.Parallel()
	db := duck(t)
	spec := testSpec(t, "plus", puzzle.Either)
	spec.Keep = []string{"reason", "detail"}
	plain := smallCorpus(t, spec).write(t, t.TempDir())
	spec.Cells = dataset.CellsBits
	path := smallCorpus(t, spec).write(t, t.TempDir())
	results, rejects, _ := files(plain)
	want := query(t, db, `SELECT puzzle_index, coalesce(board, '-'), coalesce(solution, '-'), coalesce(reason, '-') FROM (
		SELECT puzzle_index, board, solution, NULL AS reason FROM `+results+` UNION ALL
		SELECT puzzle_index, NULL, NULL, reason FROM `+rejects+`) ORDER BY puzzle_index`)
	var got []string
	for index := range int64(len(want)) {
		for row, err := range dataset.Find(path, dataset.Filter{Index: &index}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(row.Index, " ", orDash(row.Board), " ", orDash(row.Solution), " ", orDash(row.Reason)))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %d records, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
}

func orDash(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

// Conditions hold together, and whoever has enough rows gets no more.
func TestFindConditions(t *testing.T) {
	t.Parallel()
	db := duck(t)
	output, spec := t.TempDir(), testSpec(t, "plus", puzzle.Zero)
	path := smallCorpus(t, spec).write(t, output)
	results, rejects, _ := files(path)
	reader, err := dataset.NewReader(output, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	all := func(found iter.Seq2[dataset.Row, error], most int) (got []string) {
		for row, err := range found {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, fmt.Sprint(row.Index)); len(got) == most {
				break
			}
		}
		return got
	}
	moves := int64(2)
	for _, c := range []struct {
		want  dataset.Filter
		most  int
		where string
	}{
		{dataset.Filter{}, 1000, "true"},
		{dataset.Filter{}, 3, "true"},
		{dataset.Filter{Moves: &moves}, 1000, "min_moves = 2"},
		{dataset.Filter{Moves: &moves, Status: "solved"}, 2, "min_moves = 2"},
		{dataset.Filter{Moves: &moves, Status: "impossible"}, 1000, "false"},
		{dataset.Filter{Size: puzzle.Size{Rows: 3, Cols: 7}}, 1000, "rows = 3 AND cols = 7"},
		{dataset.Filter{Size: puzzle.Size{Rows: 3, Cols: 7}, Moves: &moves}, 1000, "rows = 3 AND cols = 7 AND min_moves = 2"},
		{dataset.Filter{Size: puzzle.Size{Rows: 77, Cols: 7}}, 1000, "false"},
		{dataset.Filter{Status: "unproven"}, 1000, "status = 'unproven'"},
		{dataset.Filter{From: 250}, 1000, "puzzle_index >= 250"},
		{dataset.Filter{From: 250, Moves: &moves}, 1, "puzzle_index >= 250 AND min_moves = 2"},
		{dataset.Filter{From: 10_000}, 1000, "false"},
	} {
		want := query(t, db, fmt.Sprintf("SELECT puzzle_index FROM %s WHERE %s ORDER BY puzzle_index LIMIT %d", results, c.where, c.most))
		if got := all(dataset.Find(path, c.want), c.most); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.where, got, want)
		}
		if got := all(reader.Find(t.Context(), c.want), c.most); !slices.Equal(got, want) {
			t.Errorf("%s: a reader found %v, want %v", c.where, got, want)
		}
	}
	want := query(t, db, "SELECT puzzle_index FROM "+rejects+" WHERE puzzle_index > 300 ORDER BY ALL")
	if got := all(dataset.Find(path, dataset.Filter{Status: dataset.Rejected, From: 301}), 1000); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("rejects: got %v, want %v", got, want)
	}
	if got := all(reader.Find(t.Context(), dataset.Filter{Status: dataset.Rejected, Moves: &moves}), 1000); got != nil {
		t.Errorf("rejects with a minimum: %v", got)
	}
}

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
