package dataset

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// table is the rows of a row group, a column of values at a time. Those of lists are
// called after their paths.
type table struct {
	rows    int
	columns map[string][]parquet.Value
}

// readGroup reads the values of a row group, of the named columns or, without
// names, of all. parquet-go checks the CRC of every page that it reads.
func readGroup(group parquet.RowGroup, names ...string) (t table, err error) {
	t = table{rows: int(group.NumRows()), columns: make(map[string][]parquet.Value)}
	err = guard(func() error {
		for i, chunk := range group.ColumnChunks() {
			name := strings.Join(group.Schema().Columns()[i], ".")
			if len(names) > 0 && !slices.Contains(names, name) {
				continue
			}
			want := t.rows
			if leaf, _ := group.Schema().Lookup(group.Schema().Columns()[i]...); leaf.MaxRepetitionLevel > 0 {
				want = int(chunk.NumValues())
			}
			values, err := readColumn(chunk, want)
			if err != nil {
				return fmt.Errorf("column %s: %w", name, err)
			}
			t.columns[name] = values
		}
		return nil
	})
	return t, err
}

const maxReadAhead = 1 << 16 // values for which there is room before they are read

// readColumn reads the values of a column; want is how many there are, nulls
// included.
func readColumn(chunk parquet.ColumnChunk, want int) ([]parquet.Value, error) {
	values := make([]parquet.Value, 0, min(want, maxReadAhead))
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		n := int(page.NumValues())
		if len(values)+n > want {
			return nil, fmt.Errorf("more than %d values", want)
		}
		from := len(values)
		values = slices.Grow(values, n)[:from+n]
		got, err := page.Values().ReadValues(values[from:])
		if got != n || err != nil && err != io.EOF {
			return nil, fmt.Errorf("read %d values of %d: %w", got, n, err)
		}
		// The values are not released with the page: strings point into it.
	}
	if len(values) != want {
		return nil, fmt.Errorf("%d values, want %d", len(values), want)
	}
	return values, nil
}

// number returns a required or present integer.
func (t table) number(column string, row int) int64 {
	v := t.columns[column][row]
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// bytes returns a required or present string; valid as long as the table.
func (t table) bytes(column string, row int) []byte { return t.columns[column][row].ByteArray() }

// null reports whether a column has no value in a row.
func (t table) null(column string, row int) bool { return t.columns[column][row].IsNull() }
