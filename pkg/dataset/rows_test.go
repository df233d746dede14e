package dataset_test

import (
	"fmt"
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
	path := smallCorpus(t, testSpec(t, "plus", puzzle.Zero)).write(t, t.TempDir())
	results, _, _ := files(path)
	all := func(want dataset.Filter, most int) (got []string) {
		for row, err := range dataset.Find(path, want) {
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
		{dataset.Filter{Status: "unproven"}, 1000, "status = 'unproven'"},
	} {
		want := query(t, db, fmt.Sprintf("SELECT puzzle_index FROM %s WHERE %s ORDER BY puzzle_index LIMIT %d", results, c.where, c.most))
		if got := all(c.want, c.most); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.where, got, want)
		}
	}
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
