package dataset

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Row is a record as a dataset has it: a row of its results or of its rejects. A
// field is nil where the dataset has no value, or no such column.
type Row struct {
	Index        int64   `json:"puzzle_index"`
	Source       *string `json:"source"`
	Line         *int64  `json:"line"`
	ID           *string `json:"id"`
	Rows         *int64  `json:"rows"`
	Cols         *int64  `json:"cols"`
	Board        *string `json:"board"` // as text, however it is stored
	Status       *string `json:"status"`
	MinMoves     *int64  `json:"min_moves"`
	Solution     *string `json:"solution"` // as text, however it is stored
	Reached      *string `json:"reached"`
	Nullity      *int64  `json:"nullity"`
	OptimalCount *int64  `json:"optimal_count"`

	Kept map[string]string `json:"kept,omitempty"` // fields of the corpus, by name: those that it has

	Reason *string `json:"reason,omitempty"` // of a reject, as are the next two
	Detail *string `json:"detail,omitempty"`
	Raw    *string `json:"raw,omitempty"`
}

// Filter says which rows are wanted: those that meet every condition in it.
type Filter struct {
	Index  *int64      // with this puzzle_index; nil for any
	From   int64       // with this puzzle_index or a greater one
	Moves  *int64      // solved with this minimum; nil for any
	Size   puzzle.Size // of this size; zero for any
	Status string      // with this status, or Rejected; empty for any, but rejects only where there is an Index
}

// Rejected is a Filter's Status for the rows of rejects.
const Rejected = "rejected"

// columns names the columns that conditions look at.
func (w Filter) columns() []string {
	names := []string{colIndex}
	if w.Moves != nil {
		names = append(names, colMinMoves)
	}
	if w.Size != (puzzle.Size{}) {
		names = append(names, colRows, colCols)
	}
	if w.Status != "" && w.Status != Rejected {
		names = append(names, colStatus)
	}
	return names
}

// match reports whether a row meets the conditions.
func (w Filter) match(t table, row int) bool {
	index := t.number(colIndex, row)
	if w.Status == Rejected { // then these are rejects
		return w.reaches(index, index+1)
	}
	return w.reaches(index, index+1) &&
		(w.Moves == nil || !t.null(colMinMoves, row) && t.number(colMinMoves, row) == *w.Moves) &&
		(w.Size == puzzle.Size{} || t.number(colRows, row) == int64(w.Size.Rows) && t.number(colCols, row) == int64(w.Size.Cols)) &&
		(w.Status == "" || string(t.bytes(colStatus, row)) == w.Status)
}

// reaches reports whether a wanted row may be among the records from first up to
// end.
func (w Filter) reaches(first, end int64) bool {
	return end > w.From && (w.Index == nil || *w.Index >= first && *w.Index < end)
}

// tables returns the tables that can have wanted rows.
func (w Filter) tables() []string {
	switch {
	case w.Status == Rejected && (w.Moves != nil || w.Size != puzzle.Size{}):
		return nil
	case w.Status == Rejected:
		return []string{tableRejects}
	case w.Index != nil && w.Moves == nil && w.Size == puzzle.Size{} && w.Status == "":
		return []string{tableResults, tableRejects}
	}
	return []string{tableResults}
}

// Find yields the rows of the finished dataset at path that meet a filter, in
// corpus order. It reads the files that can hold such rows, and the columns that the
// filter names; whole row groups only where there is a row to yield. It trusts the
// files, see Verify. An error is the last that it yields.
func Find(path string, want Filter) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := find(path, want, func(r Row) bool { return yield(r, nil) }); err != nil {
			yield(Row{}, fmt.Errorf("read rows of %s: %w", path, err))
		}
	}
}

func find(path string, want Filter, yield func(Row) bool) error {
	v, err := openFinished(path)
	if err != nil {
		return err
	}
	f := &finder{verifier: v, want: want, yield: yield}
	if err := f.check(); err != nil {
		return err
	}
	for _, p := range v.manifest.Parts {
		names := map[string]string{tableResults: p.Results.Name}
		if p.Rejects != nil {
			names[tableRejects] = p.Rejects.Name
		}
		if err := f.part(context.Background(), p.FirstIndex, p.Records, names); err != nil || f.stopped {
			return err
		}
	}
	return nil
}

// finder is one call of find.
type finder struct {
	*verifier
	want    Filter
	yield   func(Row) bool
	table   string // that is being read
	stopped bool   // by whoever takes the rows
}

// check reports a condition on a column that there is not.
func (f *finder) check() error {
	for _, name := range f.want.columns() {
		if slices.Contains(f.want.tables(), tableResults) && !slices.Contains(f.spec.Columns, name) {
			columns := cmp.Or(strings.Join(f.spec.Columns, ","), "none")
			return fmt.Errorf("there is no column %s: it was made with --columns %s; flipmill stats has what was counted", name, columns)
		}
	}
	return nil
}

// part yields the rows of a part, whose files have these names by their tables.
func (f *finder) part(ctx context.Context, first, records int64, names map[string]string) error {
	if !f.want.reaches(first, first+records) {
		return nil
	}
	for _, table := range f.want.tables() {
		if names[table] == "" {
			continue
		}
		if err := f.file(ctx, table, names[table]); err != nil || f.stopped {
			return err
		}
	}
	return nil
}

// file yields the rows of a file.
func (f *finder) file(ctx context.Context, table, name string) error {
	f.table = table
	file, done, err := f.open(name, f.layouts[table].open)
	if err != nil {
		return err
	}
	defer done()
	for i, group := range file.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if first, last := groupBounds(file, i, colIndex); !f.want.reaches(first, last+1) {
			continue
		}
		if least, most := groupBounds(file, i, colMinMoves); f.want.Moves != nil && (*f.want.Moves < least || *f.want.Moves > most) {
			continue
		}
		if err := f.group(group); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if f.stopped {
			break
		}
	}
	return nil
}

// groupBounds returns the least and the greatest number in a column of a row group,
// as its statistics say; without them, those that any can have.
func groupBounds(f *parquet.File, group int, column string) (least, most int64) {
	for _, c := range f.Metadata().RowGroups[group].Columns {
		low, high := c.MetaData.Statistics.MinValue, c.MetaData.Statistics.MaxValue
		switch {
		case !slices.Equal(c.MetaData.PathInSchema, []string{column}):
		case len(low) == 8 && len(high) == 8:
			return int64(binary.LittleEndian.Uint64(low)), int64(binary.LittleEndian.Uint64(high))
		case len(low) == 4 && len(high) == 4:
			return int64(int32(binary.LittleEndian.Uint32(low))), int64(int32(binary.LittleEndian.Uint32(high)))
		}
	}
	return 0, maxIndex
}

func (f *finder) group(group parquet.RowGroup) error {
	t, err := readGroup(group, f.want.columns()...)
	if err != nil {
		return err
	}
	var rows []int
	for row := range t.rows {
		if f.want.match(t, row) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if t, err = readGroup(group, slices.Concat(Columns(), f.spec.Keep, []string{colReason, colDetail, colRaw})...); err != nil {
		return err
	}
	for _, row := range rows {
		r, err := f.row(t, row)
		if err != nil {
			return err
		}
		if f.stopped = !f.yield(r); f.stopped {
			break
		}
	}
	return nil
}

// row returns a row as a value of its own.
func (f *finder) row(t table, row int) (Row, error) {
	number := func(column string) *int64 {
		if t.columns[column] == nil || t.null(column, row) {
			return nil
		}
		return new(t.number(column, row))
	}
	text := func(column string) *string {
		if t.columns[column] == nil || t.null(column, row) {
			return nil
		}
		return new(string(t.bytes(column, row)))
	}
	r := Row{
		Index: t.number(colIndex, row), Source: text(colSource), Line: number(colLine), ID: text(colID),
		Rows: number(colRows), Cols: number(colCols), Board: text(colBoard), Status: text(colStatus),
		MinMoves: number(colMinMoves), Solution: text(colSolution), Reached: text(colReached),
		Nullity: number(colNullity), OptimalCount: number(colOptimalCount),
	}
	if f.table == tableRejects { // results may have columns of the corpus that are called so
		r.Reason, r.Detail, r.Raw = text(colReason), text(colDetail), text(colRaw)
		return r, nil
	}
	if size := f.spec.Size; size != (puzzle.Size{}) { // where its columns were left out
		r.Rows, r.Cols = new(int64(size.Rows)), new(int64(size.Cols))
	}
	r.Kept = make(map[string]string)
	for _, name := range f.spec.Keep {
		if value := text(name); value != nil {
			r.Kept[name] = *value
		}
	}
	for _, cells := range [...]**string{&r.Board, &r.Solution} {
		if err := f.decode(cells, r); err != nil {
			return Row{}, fmt.Errorf("record %d: %w", r.Index, err)
		}
	}
	return r, nil
}

// decode makes text of cells, which are nil after it where nothing tells their
// number.
func (f *finder) decode(cells **string, r Row) error {
	if *cells == nil {
		return nil
	}
	if r.Rows == nil || r.Cols == nil {
		if f.spec.Cells == CellsBits {
			*cells = nil
		}
		return nil
	}
	size := puzzle.Size{Rows: int(*r.Rows), Cols: int(*r.Cols)}
	if err := size.Validate(); err != nil {
		return err
	}
	text, want := **cells, size.Cells()
	if f.spec.Cells == CellsBits {
		want = (size.Cells() + 7) / 8
	}
	if len(text) != want {
		return fmt.Errorf("%d bytes of cells of a board of %s, want %d", len(text), size, want)
	}
	if f.spec.Cells == CellsBits {
		var b strings.Builder
		for i := range size.Cells() {
			b.WriteByte('0' + text[i/8]>>(7-i%8)&1)
		}
		*cells = new(b.String())
	}
	return nil
}
