package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// readStats reads the statistics file, compares its footer with the manifest and
// its rows with its footer, and returns the tally.
func (v *verifier) readStats() (*tally.Tally, error) {
	f, done, err := v.open(v.manifest.Stats.Name, v.layouts[tableStats].open)
	if err != nil {
		return nil, err
	}
	defer done()
	text, _ := f.Lookup(footerKey)
	var footer statsFooter
	if err := decodeStrict([]byte(text), &footer); err != nil {
		return nil, fmt.Errorf("read key %q of the file's footer: %w", footerKey, err)
	}
	want := statsFooter{
		SchemaVersion: v.manifest.SchemaVersion, Job: v.manifest.Job, Table: tableStats,
		Input: v.manifest.Input, Tally: footer.Tally, Spec: v.manifest.Spec,
	}
	if diff := firstDifference(footer, want); diff != "" {
		return nil, fmt.Errorf("its footer is not what the manifest says: %s", diff)
	}
	if f.NumRows() != v.manifest.Stats.Rows {
		return nil, fmt.Errorf("%d rows, want %d", f.NumRows(), v.manifest.Stats.Rows)
	}
	counts, err := tally.Parse(footer.Tally)
	if err != nil {
		return nil, err
	}
	var rows []tally.Row
	for _, group := range f.RowGroups() {
		t, err := readGroup(group)
		if err != nil {
			return nil, err
		}
		for i := range t.rows {
			row, err := v.statsRow(t, i)
			if err != nil {
				return nil, fmt.Errorf("row %d: %w", i, err)
			}
			rows = append(rows, row)
		}
	}
	if want := counts.Rows(); len(rows)+len(want) > 0 && !reflect.DeepEqual(rows, want) {
		return nil, errors.New("its rows are not its footer's tally")
	}
	return counts, nil
}

func (v *verifier) statsRow(t table, i int) (tally.Row, error) {
	if rule, target := string(t.bytes(colRule, i)), string(t.bytes(colTarget, i)); rule != v.manifest.Spec.Rule || target != v.manifest.Spec.Target {
		return tally.Row{}, fmt.Errorf("rule %s, target %s", rule, target)
	}
	status, err := puzzle.ParseStatus(string(t.bytes(colStatus, i)))
	if err != nil {
		return tally.Row{}, err
	}
	if t.null(colMinMoves, i) == (status == puzzle.Solved) {
		return tally.Row{}, fmt.Errorf("a null, or none, in min_moves of %s boards", status)
	}
	row := tally.Row{
		Size:    puzzle.Size{Rows: int(t.number(colRows, i)), Cols: int(t.number(colCols, i))},
		Nullity: int(t.number(colNullity, i)), Status: status,
		Boards: t.number(colBoards, i), UniqueOptimal: t.number(colUniqueOptimal, i), OptimalSolutions: t.number(colOptimal, i),
	}
	if status == puzzle.Solved {
		row.MinMoves = int(t.number(colMinMoves, i))
	}
	return row, nil
}

// difference describes the first group that two tallies count differently.
func difference(got, want *tally.Tally) string {
	counts := make(map[tally.Row][2]int64)
	for i, t := range [...]*tally.Tally{got, want} {
		for _, r := range t.Rows() {
			key := tally.Row{Size: r.Size, Nullity: r.Nullity, Status: r.Status, MinMoves: r.MinMoves, UniqueOptimal: r.UniqueOptimal, OptimalSolutions: r.OptimalSolutions}
			c := counts[key]
			c[i] = r.Boards
			counts[key] = c
		}
	}
	var first *tally.Row
	for r, c := range counts {
		if c[0] != c[1] && (first == nil || compareRows(r, *first) < 0) {
			first = &r
		}
	}
	if first == nil {
		return "the rejects by reason differ"
	}
	c := counts[*first]
	return fmt.Sprintf("%s, nullity %d, %s, min_moves %d: %d boards, want %d", first.Size, first.Nullity, first.Status, first.MinMoves, c[0], c[1])
}

func compareRows(a, b tally.Row) int {
	return cmp.Or(cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Cols, b.Cols), cmp.Compare(a.Nullity, b.Nullity),
		cmp.Compare(a.Status, b.Status), cmp.Compare(a.MinMoves, b.MinMoves),
		cmp.Compare(a.UniqueOptimal, b.UniqueOptimal), cmp.Compare(a.OptimalSolutions, b.OptimalSolutions))
}
