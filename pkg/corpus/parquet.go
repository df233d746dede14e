package corpus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

const (
	parquetMagic  = "PAR1"
	maxFooter     = 64 << 20 // bytes
	parquetFooter = 8        // bytes behind the footer: its length, magic
)

// parquetRows reads the rows of a Parquet file: the board is a string, a list of
// strings or of numbers, or a list of such lists. Its line of a record is the
// row's number in the file.
//
// The file may come from anywhere, and the package that decodes it trusts what
// pages say of themselves: so they are looked at first (see checkPages), and its
// panics are errors.
type parquetRows struct {
	named
	file    *parquet.File
	columns []*parquet.Column // those that are read: board, rows, cols, labels; nil where there is none
	group   int               // row groups that were begun
	leaves  []*leaf           // the columns in the open row group
	record  int64
	text    []byte // of the record
}

// guard turns a panic about a malformed file into an error.
func guard(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed Parquet: %v", r)
		}
	}()
	return do()
}

func (p *parquetRows) begin(src *source, _ *scanner) error {
	p.file, p.columns, p.leaves, p.group, p.record = nil, nil, nil, 0, 0
	if src.size == 0 && src.bytes == 0 {
		return nil
	}
	in, ok := src.file.(io.ReaderAt)
	if !ok || src.size == 0 || src.compressed() {
		return errors.New("it can be read as a plain file only: neither compressed nor from a pipe")
	}
	if err := checkEnds(in, src.size); err != nil {
		return err
	}
	return guard(func() (err error) {
		p.file, err = parquet.OpenFile(in, src.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
		if err != nil {
			return err
		}
		if err := p.find(p.file.Root().Columns()); err != nil {
			return err
		}
		return p.checkColumns(in, src.size)
	})
}

// checkEnds checks magic and footer length.
func checkEnds(in io.ReaderAt, size int64) error {
	var head [len(parquetMagic)]byte
	var tail [parquetFooter]byte
	if size < int64(len(head)+len(tail)) {
		return fmt.Errorf("%d bytes are no Parquet file", size)
	}
	if _, err := in.ReadAt(head[:], 0); err != nil {
		return err
	}
	if _, err := in.ReadAt(tail[:], size-int64(len(tail))); err != nil && err != io.EOF {
		return err
	}
	if string(head[:]) != parquetMagic || string(tail[4:]) != parquetMagic {
		return errors.New("no Parquet magic at start and end: it is no Parquet file, or cut off")
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > min(maxFooter, size-int64(len(head)+len(tail))) {
		return fmt.Errorf("footer of %d bytes in a file of %d", n, size)
	}
	return nil
}

// find finds the columns that are read.
func (p *parquetRows) find(columns []*parquet.Column) error {
	if len(columns) > maxColumns {
		return fmt.Errorf("%d columns, want at most %d", len(columns), maxColumns)
	}
	var names []string
	for _, c := range columns {
		names = append(names, c.Name())
	}
	if err := p.bind(names); err != nil {
		return err
	}
	p.columns = make([]*parquet.Column, 3, 3+len(p.labels))
	board := columns[p.board]
	for !board.Leaf() {
		if len(board.Columns()) != 1 {
			return fmt.Errorf("column %s: it has %d members; a board is a string, a list, or a list of lists", p.roles.Board, len(board.Columns()))
		}
		board = board.Columns()[0]
	}
	switch kind := board.Type().Kind(); {
	case board.MaxRepetitionLevel() > 2,
		kind != parquet.ByteArray && kind != parquet.FixedLenByteArray && board.MaxRepetitionLevel() == 0,
		kind == parquet.Float || kind == parquet.Double || kind == parquet.Int96:
		return fmt.Errorf("column %s: %s, %d lists deep; a board is a string, or a list of strings or whole numbers up to 2 deep", p.roles.Board, kind, board.MaxRepetitionLevel())
	}
	p.columns[0] = board
	for i, at := range append([]int{p.rows, p.cols}, p.labels...) {
		var c *parquet.Column
		if at >= 0 {
			if c = columns[at]; !c.Leaf() || c.Repeated() {
				return fmt.Errorf("column %s: it is no single value", c.Name())
			}
		}
		if i < 2 {
			p.columns[1+i] = c
		} else {
			p.columns = append(p.columns, c)
		}
	}
	return nil
}

func (p *parquetRows) next(_ *scanner, rec *Record) (err error) {
	return guard(func() error { return p.read(rec) })
}

// read reads a row.
func (p *parquetRows) read(rec *Record) error {
	for p.leaves == nil || p.leaves[0].ended() {
		if err := p.nextGroup(); err != nil {
			return err
		}
	}
	if p.leaves[0].err != nil {
		return p.leaves[0].err
	}
	p.record++
	rec.begin(p.record)
	var values [2 + 1 + puzzle.MaxKeep]parquet.Value // rows, cols, labels
	for i, l := range p.leaves[1:] {
		if l != nil {
			if l.ended() || l.err != nil {
				return fmt.Errorf("column %s: no value in row %d: %w", p.columns[1+i].Name(), p.record, errors.Join(l.err, io.ErrUnexpectedEOF))
			}
			values[i] = l.take()
		}
	}
	size := p.opts.Size
	if p.rows >= 0 && p.cols >= 0 {
		size = p.size(rec, textOf(values[0]), textOf(values[1]))
	}
	for i, name := range p.names {
		addLabel(rec, name, textOf(values[2+i]))
	}
	p.value(rec, size)
	p.sheet.board(rec)
	if rec.Rejected() {
		rec.keep(p.text)
	}
	return nil
}

// textOf returns a value as text; nothing for null.
func textOf(v parquet.Value) []byte {
	if v.IsNull() {
		return nil
	}
	return []byte(v.String())
}

// value takes the board: all values up to the next that begins a row.
func (p *parquetRows) value(rec *Record, size puzzle.Size) {
	s, board := p.sheet, p.leaves[0]
	s.clear(0)
	p.text = p.text[:0]
	depth, start := p.columns[0].MaxRepetitionLevel(), 0
	rows := depth == 2 || depth == 1 && p.columns[0].Type().Kind() == parquet.ByteArray
	for first := true; !board.ended() && board.err == nil && (first || board.value().RepetitionLevel() > 0); first = false {
		v := board.take()
		text := textOf(v)
		if len(p.text) < puzzle.MaxRaw {
			p.text = append(append(p.text, text...), ' ')
		}
		if depth == 0 && !v.IsNull() {
			p.field(rec, text, size)
			return
		}
		if !first && rows && v.RepetitionLevel() == 1 && !rec.Rejected() {
			s.endRow(rec, start)
			start = s.n
		}
		if !rec.Rejected() && !p.emptyList(v) {
			p.cell(rec, v, text)
		}
	}
	if s.n == 0 {
		rec.reject(puzzle.BadField, "a board without cells")
	}
	if rows && !rec.Rejected() {
		s.endRow(rec, start)
	}
	s.fit(rec, rows, size)
}

// emptyList reports whether a null stands for a list without elements, or for no
// list: for a null element it is defined one level deeper.
func (p *parquetRows) emptyList(v parquet.Value) bool {
	c := p.columns[0]
	return v.IsNull() && !(c.Optional() && v.DefinitionLevel() == c.MaxDefinitionLevel()-1 && c.MaxRepetitionLevel() > 0)
}

// field takes a board that is one string.
func (p *parquetRows) field(rec *Record, text []byte, size puzzle.Size) {
	if len(text) > p.opts.MaxLine {
		rec.reject(puzzle.LineTooLong, "a board of more than %d bytes", p.opts.MaxLine)
		return
	}
	p.sheet.field(rec, text, size)
}

// cell takes a number, or a string of cells.
func (p *parquetRows) cell(rec *Record, v parquet.Value, text []byte) {
	s, bad := p.sheet, true
	switch {
	case s.n+len(text) > maxCells && v.Kind() >= parquet.ByteArray || s.n >= maxCells:
		rec.reject(puzzle.TooLarge, "more than %d cells", maxCells)
		return
	case v.IsNull():
		text = []byte("null")
	case v.Kind() == parquet.Boolean:
		s.put(rec, map[bool]byte{true: 1}[v.Boolean()], nil)
		return
	case v.Kind() == parquet.Int32 || v.Kind() == parquet.Int64:
		if bad = string(text) != "0" && string(text) != "1"; !bad {
			s.digit(text[0] - '0')
		}
	default:
		bad = len(text) == 0 || len(s.squeeze(text)) > 0
	}
	if bad {
		rec.reject(puzzle.UnknownSymbol, "%.40q is not a cell, want %s", text, s.symbols.Wanted())
	}
}

// nextGroup opens the next row group; io.EOF after the last.
func (p *parquetRows) nextGroup() error {
	p.close()
	if p.file == nil || p.group == len(p.file.RowGroups()) {
		return io.EOF
	}
	chunks := p.file.RowGroups()[p.group].ColumnChunks()
	p.group++
	p.leaves = make([]*leaf, len(p.columns))
	for i, c := range p.columns {
		if c != nil {
			p.leaves[i] = &leaf{pages: chunks[c.Index()].Pages()}
		}
	}
	return nil
}

func (p *parquetRows) close() {
	for _, l := range p.leaves {
		if l != nil {
			l.pages.Close()
		}
	}
	p.leaves = nil
}

// leaf gives out the values of a column chunk, one after the other.
type leaf struct {
	pages  parquet.Pages
	values parquet.ValueReader // of the open page
	buf    [64]parquet.Value
	at, n  int
	err    error
}

// ended reports whether there is no further value. Otherwise there is one, or an
// error.
func (l *leaf) ended() bool {
	for l.at == l.n && l.err == nil {
		l.fill()
	}
	return l.err == io.EOF
}

func (l *leaf) fill() {
	if l.values == nil {
		page, err := l.pages.ReadPage()
		if err != nil {
			l.err = err
			return
		}
		l.values = page.Values() // not released: strings point into it
	}
	n, err := l.values.ReadValues(l.buf[:])
	l.at, l.n = 0, n
	switch {
	case err == io.EOF:
		l.values = nil
	case err == nil && n == 0:
		l.err = io.ErrNoProgress
	default:
		l.err = err
	}
}

// value returns the value that ended has found, and take goes to the next.
func (l *leaf) value() parquet.Value { return l.buf[l.at] }

func (l *leaf) take() parquet.Value {
	v := l.buf[l.at]
	l.at++
	return v
}
