package corpus

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// maxColumns bounds the columns, or members, of a corpus with named fields.
const maxColumns = 1024

// delimited reads CSV (RFC 4180) and TSV, which is the same with tabs: a header,
// then a record a line, or over several lines where a quoted field has line
// breaks. A record that is not well-formed costs the lines up to where that
// shows. A quote that is never closed costs what follows, up to the longest line.
type delimited struct {
	named
	separator byte
	max       int
	width     int           // fields of the header
	fields    puzzle.Labels // of the record
	scratch   Record
}

func (d *delimited) begin(_ *source, in *scanner) error {
	err := in.scanNonBlank()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	head := &d.scratch
	head.begin(in.line)
	if err := d.parse(in, head); err != nil {
		return err
	}
	d.width = d.fields.Len()
	switch {
	case head.Rejected():
		return fmt.Errorf("header: %s", head.Reject.Detail)
	case d.width > maxColumns:
		return fmt.Errorf("header: %d columns, want at most %d", d.width, maxColumns)
	}
	names := make([]string, d.width)
	for i := range names {
		names[i] = string(bytes.TrimSpace(d.fields.At(i)))
	}
	return d.bind(names)
}

func (d *delimited) next(in *scanner, rec *Record) error {
	if err := in.scanNonBlank(); err != nil {
		return err
	}
	rec.begin(in.line)
	if err := d.parse(in, rec); err != nil {
		return err
	}
	if n := d.fields.Len(); !rec.Rejected() && n != d.width {
		if in.noEOL && n < d.width {
			rec.reject(puzzle.Truncated, "the source ends after %d of the %d fields", n, d.width)
		}
		rec.reject(puzzle.BadField, "%d fields, want %d as in the header", n, d.width)
	}
	if !rec.Rejected() {
		d.take(rec, func(column int) []byte { return d.fields.At(column) })
	}
	return nil
}

// parse reads the fields of the record that begins at the scanner's line.
func (d *delimited) parse(in *scanner, rec *Record) error {
	d.fields.Reset()
	line, ok := d.line(in, rec)
	for size := len(line); ok; {
		if len(line) > 0 && line[0] == '"' {
			var err error
			if line, ok, err = d.quoted(in, rec, line[1:], &size); err != nil || !ok {
				return err
			}
		} else {
			end := bytes.IndexByte(line, d.separator)
			if end < 0 {
				end = len(line)
			}
			if bytes.IndexByte(line[:end], '"') >= 0 {
				rec.reject(puzzle.BadSyntax, "line %d: a quote within a field that does not begin with one", in.line)
				return nil
			}
			d.fields.Text = append(d.fields.Text, line[:end]...)
			line = line[end:]
		}
		d.fields.Add(nil)
		if len(line) == 0 {
			return nil
		}
		if line[0] != d.separator {
			rec.reject(puzzle.BadSyntax, "line %d: text behind a closing quote", in.line)
			return nil
		}
		line = line[1:]
	}
	return nil
}

// line returns the scanner's line without its line end, or rejects the record.
func (d *delimited) line(in *scanner, rec *Record) ([]byte, bool) {
	rec.keep(in.raw)
	if in.long {
		rejectLong(rec, in)
		return nil, false
	}
	return bytes.TrimSuffix(in.raw, []byte{'\r'}), true
}

// quoted appends a quoted field, whose opening quote is passed, and returns what
// follows in the line where it ends. It returns false where the record is bad.
func (d *delimited) quoted(in *scanner, rec *Record, line []byte, size *int) (rest []byte, ok bool, err error) {
	for {
		end := bytes.IndexByte(line, '"')
		if end >= 0 && end+1 < len(line) && line[end+1] == '"' {
			d.fields.Text = append(d.fields.Text, line[:end+1]...)
			line = line[end+2:]
			continue
		}
		if end >= 0 {
			d.fields.Text = append(d.fields.Text, line[:end]...)
			return line[end+1:], true, nil
		}
		d.fields.Text = append(append(d.fields.Text, line...), '\n')
		switch err := in.scan(); {
		case err == io.EOF:
			rec.reject(puzzle.Truncated, "the source ends within a quoted field")
			return nil, false, nil
		case err != nil:
			return nil, false, err
		}
		if line, ok = d.line(in, rec); !ok {
			return nil, false, nil
		}
		if *size += len(line) + 1; *size > d.max {
			rec.reject(puzzle.LineTooLong, "line %d: a quoted field makes the record longer than %d bytes", in.line, d.max)
			return nil, false, nil
		}
	}
}

// named finds what a record consists of in fields that have names.
type named struct {
	sheet *sheet
	opts  Options
	roles puzzle.Fields

	board, rows, cols int      // columns; -1 for none
	labels            []int    // columns of the labels; -1 for none
	names             []string // of these fields
}

func newNamed(s *sheet, opts Options) named {
	roles := opts.Fields.Named()
	return named{sheet: s, opts: opts, roles: roles, names: append([]string{roles.ID}, opts.Keep...)}
}

// bind looks up the fields among the columns of a source.
func (n *named) bind(columns []string) error {
	find := func(name string) (int, error) {
		at := slices.Index(columns, name)
		if at >= 0 && slices.Contains(columns[at+1:], name) {
			return -1, fmt.Errorf("two columns are called %q", name)
		}
		return at, nil
	}
	n.labels = n.labels[:0]
	for _, f := range append([]string{n.roles.Board, n.roles.Rows, n.roles.Cols}, n.names...) {
		at, err := find(f)
		if err != nil {
			return err
		}
		n.labels = append(n.labels, at)
	}
	n.board, n.rows, n.cols, n.labels = n.labels[0], n.labels[1], n.labels[2], n.labels[3:]
	if n.board < 0 {
		return fmt.Errorf("no column %q among %.200q: say which one has the boards with --fields board=NAME", n.roles.Board, strings.Join(columns, " "))
	}
	for i, at := range n.labels[1:] {
		if at < 0 {
			return fmt.Errorf("no column %q to keep among %.200q", n.opts.Keep[i], strings.Join(columns, " "))
		}
	}
	for _, f := range []struct {
		column int
		name   string
	}{{n.rows, n.opts.Fields.Rows}, {n.cols, n.opts.Fields.Cols}, {n.labels[0], n.opts.Fields.ID}} {
		if f.column < 0 && f.name != "" {
			return fmt.Errorf("no column %q, which --fields names, among %.200q", f.name, strings.Join(columns, " "))
		}
	}
	return nil
}

// take makes the record of the texts of its fields.
func (n *named) take(rec *Record, field func(column int) []byte) {
	for i, column := range n.labels {
		var text []byte
		if column >= 0 {
			text = field(column)
		}
		addLabel(rec, n.names[i], text)
	}
	size := n.opts.Size
	if n.rows >= 0 && n.cols >= 0 {
		size = n.size(rec, field(n.rows), field(n.cols))
	}
	if !rec.Rejected() {
		n.sheet.field(rec, field(n.board), size)
		n.sheet.board(rec)
	}
}

// addLabel adds a label, which is UTF-8 from here on.
func addLabel(rec *Record, field string, text []byte) {
	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	if len(text) > puzzle.MaxLabel {
		rec.reject(puzzle.BadField, "field %q has %d bytes, want at most %d", field, len(text), puzzle.MaxLabel)
		text = nil
	}
	rec.Labels.Add(text)
}

// size reads the size that a record gives itself, if it does.
func (n *named) size(rec *Record, rows, cols []byte) puzzle.Size {
	rows, cols = bytes.TrimSpace(rows), bytes.TrimSpace(cols)
	if len(rows) == 0 && len(cols) == 0 {
		return n.opts.Size
	}
	size := puzzle.Size{}
	var rest, rest2 []byte
	size.Rows, rest = wholeNumber(rows)
	size.Cols, rest2 = wholeNumber(cols)
	switch {
	case size.Rows < 0 || size.Cols < 0 || len(rest)+len(rest2) > 0:
		rec.reject(puzzle.BadSize, "%.20q rows and %.20q columns, want two numbers", rows, cols)
	case n.opts.Size != puzzle.Size{} && size != n.opts.Size:
		rec.reject(puzzle.BadSize, "board of %s, want %s", size, n.opts.Size)
	default:
		n.sheet.rejectSize(rec, size)
	}
	return size
}
