package dataset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

const (
	magic     = "PAR1"
	tailSize  = 4 + len(magic) // footer length, magic
	maxFooter = 256 << 20      // bytes; a part of MaxPartChunks row groups needs about 8 MiB
	maxRows   = 1 << 30        // rows of one row group; real ones have at most 65,536
)

// layout is how the files of a table are laid out. It is the same for all files
// of a spec, and never changes.
type layout struct {
	table  string
	schema *parquet.Schema
	leaves []parquet.LeafColumn // the columns of values, more than the table's where there are lists
	codec  codec
	empty  format.FileMetaData // of a file without rows
}

// newLayout returns the layout of a table. The spec has been checked.
func newLayout(table string, spec puzzle.Spec) (*layout, error) {
	c, err := codecOf(spec.Compression)
	if err != nil {
		return nil, err
	}
	l := &layout{table: table, schema: tableSchema(table, spec), codec: c}
	for _, path := range l.schema.Columns() {
		leaf, _ := l.schema.Lookup(path...)
		leaf.Path = path // Lookup forgets all but the last name
		l.leaves = append(l.leaves, leaf)
	}
	var file bytes.Buffer
	if err := l.writer(&file).Close(); err != nil {
		return nil, fmt.Errorf("write empty table %s: %w", table, err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		return nil, fmt.Errorf("read empty table %s: %w", table, err)
	}
	l.empty = *f.Metadata()
	return l, nil
}

// newLayouts returns the layouts of all tables, by name.
func newLayouts(spec puzzle.Spec) (map[string]*layout, error) {
	layouts := make(map[string]*layout)
	for _, table := range [...]string{tableResults, tableRejects, tableStats} {
		l, err := newLayout(table, spec)
		if err != nil {
			return nil, err
		}
		layouts[table] = l
	}
	return layouts, nil
}

// writer returns a parquet-go writer as all our files are written: one writer
// per file (a reset one forgets column paths) and nothing of the machine in it.
func (l *layout) writer(w io.Writer) *parquet.GenericWriter[any] {
	return parquet.NewGenericWriter[any](w, l.schema,
		parquet.Compression(l.codec.Codec),
		parquet.DataPageVersion(1),
		parquet.CreatedBy("flipmill", fmt.Sprint(SchemaVersion), "dataset"), // the format's version, not the program's
	)
}

// guard turns a panic of parquet-go, which malformed files can cause, into an
// error.
func guard(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed Parquet: %v", r)
		}
	}()
	return do()
}

// open opens a Parquet file and checks that it is laid out as we write them: the
// schema, the codec, every column chunk right behind the one before. It does not
// read pages. The bytes may come from anywhere.
func (l *layout) open(r io.ReaderAt, size int64) (f *parquet.File, err error) {
	footer, err := checkFrame(r, size)
	if err != nil {
		return nil, err
	}
	err = guard(func() error {
		f, err = parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
		if err != nil {
			return err
		}
		return l.check(f.Metadata(), footer)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// checkFrame checks magic and footer length, which parquet-go trusts, and
// returns the offset of the footer.
func checkFrame(r io.ReaderAt, size int64) (footer int64, err error) {
	if size < int64(len(magic)+tailSize) {
		return 0, fmt.Errorf("%d bytes are no Parquet file", size)
	}
	var head [len(magic)]byte
	var tail [tailSize]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return 0, fmt.Errorf("read magic: %w", err)
	}
	if _, err := r.ReadAt(tail[:], size-int64(tailSize)); err != nil && err != io.EOF {
		return 0, fmt.Errorf("read footer length: %w", err)
	}
	if string(head[:]) != magic || string(tail[4:]) != magic {
		return 0, errors.New("no Parquet magic at start and end")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	footer = size - int64(tailSize) - n
	if n > maxFooter || footer < int64(len(magic)) {
		return 0, fmt.Errorf("footer of %d bytes in a file of %d", n, size)
	}
	return footer, nil
}

// check checks a file's metadata; the file's pages and indexes end before footer.
func (l *layout) check(m *format.FileMetaData, footer int64) error {
	if m.CreatedBy != l.empty.CreatedBy || !reflect.DeepEqual(m.Schema, l.empty.Schema) {
		return errors.New("another schema or writer")
	}
	next, rows := int64(len(magic)), int64(0)
	for i := range m.RowGroups {
		g := &m.RowGroups[i]
		if g.NumRows < 1 || g.NumRows > maxRows || int(g.Ordinal) != i || len(g.Columns) != len(l.leaves) {
			return fmt.Errorf("row group %d: %d columns of %d rows", i, len(g.Columns), g.NumRows)
		}
		rows += g.NumRows
		for j := range g.Columns {
			col, leaf := &g.Columns[j], l.leaves[j]
			if err := checkColumnChunk(col, leaf, l.codec, g.NumRows, next); err != nil {
				return fmt.Errorf("row group %d: column %s: %w", i, nameOf(leaf), err)
			}
			next += col.MetaData.TotalCompressedSize
			if next > footer || !within(col.ColumnIndexOffset, col.ColumnIndexLength, footer) || !within(col.OffsetIndexOffset, col.OffsetIndexLength, footer) {
				return fmt.Errorf("row group %d: column %s: it is cut off", i, nameOf(leaf))
			}
		}
	}
	if m.NumRows != rows {
		return fmt.Errorf("%d rows in row groups of %d", m.NumRows, rows)
	}
	return nil
}

// nameOf returns how errors and tables call a column of values.
func nameOf(leaf parquet.LeafColumn) string { return strings.Join(leaf.Path, ".") }

func checkColumnChunk(c *format.ColumnChunk, leaf parquet.LeafColumn, want codec, rows, start int64) error {
	m := &c.MetaData
	first := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		first = m.DictionaryPageOffset
	}
	switch {
	case !slices.Equal(m.PathInSchema, leaf.Path):
		return fmt.Errorf("path %q", m.PathInSchema)
	case m.Codec != want.CompressionCodec():
		return fmt.Errorf("codec %s, want %s", m.Codec, want.CompressionCodec())
	case leaf.MaxRepetitionLevel == 0 && m.NumValues != rows, m.NumValues < rows, m.NumValues > maxRows:
		return fmt.Errorf("%d values in %d rows", m.NumValues, rows)
	case first != start || m.TotalCompressedSize < 1 || m.DataPageOffset < start || m.DataPageOffset-start >= m.TotalCompressedSize:
		return fmt.Errorf("pages at %d, want %d", first, start)
	}
	return nil
}

// within reports whether a section lies between magic and footer.
func within(offset int64, length int32, footer int64) bool {
	return offset >= int64(len(magic)) && length > 0 && offset <= footer-int64(length)
}

// checkCopyable reports a row group that parquet-go would not copy verbatim but
// silently encode anew, or whose page index would lead readers astray.
func (l *layout) checkCopyable(f *parquet.File, number int) error {
	group := f.Metadata().RowGroups[number]
	for i, leaf := range l.leaves {
		m, encoding := &group.Columns[i].MetaData, leaf.Node.Encoding().Encoding()
		want := []format.PageEncodingStats{{PageType: format.DataPage, Encoding: encoding, Count: 1}}
		if encoding == format.RLEDictionary {
			want = []format.PageEncodingStats{{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1}, want[0]}
		}
		got := slices.Clone(m.EncodingStats) // a file of one row group has them in this order, one that was stitched in the other
		slices.SortFunc(got, func(a, b format.PageEncodingStats) int { return cmp.Compare(b.PageType, a.PageType) })
		if !slices.Equal(got, want) || (len(want) == 2) != (m.DictionaryPageOffset != 0) {
			return fmt.Errorf("column %s: its pages are encoded otherwise", nameOf(leaf))
		}
		index, err := f.RowGroups()[number].ColumnChunks()[i].OffsetIndex()
		if err != nil {
			return fmt.Errorf("column %s: %w", nameOf(leaf), err)
		}
		size := m.TotalCompressedSize
		if m.DictionaryPageOffset != 0 {
			size -= m.DataPageOffset - m.DictionaryPageOffset
		}
		if index.NumPages() != 1 || index.Offset(0) != m.DataPageOffset || index.CompressedPageSize(0) != size || index.FirstRowIndex(0) != 0 {
			return fmt.Errorf("column %s: its page index is of other pages", nameOf(leaf))
		}
	}
	return nil
}

// openLoose opens a Parquet file of ours whose layout is not known.
func openLoose(r io.ReaderAt, size int64) (f *parquet.File, err error) {
	if _, err := checkFrame(r, size); err != nil {
		return nil, err
	}
	err = guard(func() error {
		f, err = parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		return err
	})
	return f, err
}
