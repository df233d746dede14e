package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// maxDepth bounds how deep the values of a record are nested. A board in a list
// of rows in an object is three deep.
const maxDepth = 16

// jsonLines reads a JSON value a line. A bad line is a bad record.
type jsonLines struct{ values }

func (j *jsonLines) begin(*source, *scanner) error { return nil }

func (j *jsonLines) next(in *scanner, rec *Record) error {
	if err := in.scanNonBlank(); err != nil {
		return err
	}
	rec.begin(in.line)
	rec.keep(in.raw)
	if in.long {
		rejectLong(rec, in)
		return nil
	}
	if in.noEOL && !json.Valid(in.text) {
		rec.reject(puzzle.Truncated, "the source ends within the value")
	}
	j.take(rec, in.text)
	return nil
}

// jsonArray reads the elements of one JSON array as records; it may be all in
// one line. Where an element ends is told from brackets and quotes alone, so a
// bad one costs only itself, unless it is these that are wrong.
type jsonArray struct {
	values
	max   int
	text  []byte       // of the element
	stack []byte       // its open brackets, the outermost of them
	above ['{' + 1]int // how many are open within these, by kind; in which order is not kept
	open  bool         // the array has begun and not ended
}

// begin passes the bracket that opens the array.
func (j *jsonArray) begin(_ *source, in *scanner) error {
	j.open = false
	switch c, err := nextByte(in); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case c != '[':
		return fmt.Errorf("want a JSON array of boards, found %q; for a value a line give --format %s", c, JSONL)
	}
	j.open = true
	return nil
}

const jsonSpace = " \t\r\n"

// nextByte reads the next byte that is no white space.
func nextByte(in *scanner) (byte, error) {
	for {
		c, err := in.readByte()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
	}
}

func (j *jsonArray) next(in *scanner, rec *Record) error {
	c, err := nextByte(in)
	if c == ']' && j.open && err == nil {
		j.open = false
		c, err = nextByte(in)
	}
	if err == io.EOF && j.open {
		j.open = false
		rec.begin(in.line)
		rec.keep([]byte{'['})
		rec.reject(puzzle.Truncated, "the source ends within the array")
		return nil
	}
	if err != nil {
		return err
	}
	rec.begin(in.line)
	if err := j.element(in, rec, c); err != nil {
		return err
	}
	rec.keep(bytes.Trim(j.text, jsonSpace))
	if len(rec.Reject.Raw) == 0 {
		rec.keep([]byte{','})
		rec.reject(puzzle.BadSyntax, "a comma without an element")
	}
	j.take(rec, j.text)
	return nil
}

// element reads an element that begins with c, and the comma behind it. Behind
// the array it reads the rest of the line.
func (j *jsonArray) element(in *scanner, rec *Record, c byte) (err error) {
	j.text = j.text[:0]
	quoted, escaped := false, false
	j.stack, j.above['['], j.above['{'] = j.stack[:0], 0, 0
	for ; err == nil; c, err = in.readByte() {
		switch {
		case !j.open && c == '\n':
			rec.reject(puzzle.BadSyntax, "text behind the array")
			return nil
		case c == '\n':
			quoted = false // a string ends with its line at the latest
		case quoted:
			quoted = c != '"' || escaped
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			j.enter(c)
		case len(j.stack) > 0 && (c == ']' || c == '}'):
			j.close(c - 2) // the code of the opening one
		case j.open && len(j.stack) == 0 && c == ',':
			return nil
		case j.open && c == ']':
			in.start-- // the next record finds it
			return nil
		}
		escaped = quoted && c == '\\' && !escaped
		if len(j.text) < j.max {
			j.text = append(j.text, c)
		} else {
			rec.reject(puzzle.LineTooLong, "an element of more than %d bytes", j.max)
		}
	}
	switch {
	case err != io.EOF:
		return err
	case !j.open:
		rec.reject(puzzle.BadSyntax, "text behind the array")
	default:
		j.open = false
		rec.reject(puzzle.Truncated, "the source ends within the array")
	}
	return nil
}

// enter opens a bracket.
func (j *jsonArray) enter(c byte) {
	if len(j.stack) < 4*maxDepth {
		j.stack = append(j.stack, c)
	} else {
		j.above[c]++
	}
}

// close closes the innermost bracket of a kind, and with it those within that
// were never closed, as far as their order is known.
func (j *jsonArray) close(opening byte) {
	if j.above[opening] > 0 {
		j.above[opening]--
	} else if i := bytes.LastIndexByte(j.stack, opening); i >= 0 {
		j.stack, j.above['['], j.above['{'] = j.stack[:i], 0, 0
	}
}

// values makes records of JSON values: a board alone, or an object with one.
type values struct{ named }

func (v *values) take(rec *Record, text []byte) {
	if depthOf(text) > maxDepth {
		rec.reject(puzzle.BadSyntax, "more than %d brackets deep", maxDepth)
	}
	if rec.Rejected() {
		return
	}
	text = bytes.Trim(text, jsonSpace)
	size := v.opts.Size
	if bytes.HasPrefix(text, []byte{'{'}) {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			rec.reject(puzzle.BadSyntax, "%v", err)
			return
		}
		if text = v.object(rec, members, &size); rec.Rejected() {
			return
		}
	} else if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		rec.reject(puzzle.BadSyntax, "%v", err)
		return
	}
	v.value(rec, text, size)
	v.sheet.board(rec)
}

// object takes an object's labels and size and returns its board.
func (v *values) object(rec *Record, members map[string]json.RawMessage, size *puzzle.Size) (board []byte) {
	for _, name := range v.names {
		addLabel(rec, name, plain(members[name]))
	}
	if rows, cols := plain(members[v.roles.Rows]), plain(members[v.roles.Cols]); len(rows)+len(cols) > 0 {
		*size = v.size(rec, rows, cols)
	}
	board = members[v.roles.Board]
	switch {
	case len(members) > maxColumns:
		rec.reject(puzzle.BadField, "an object of %d members, want at most %d", len(members), maxColumns)
	case board == nil:
		rec.reject(puzzle.BadField, "no member %q: say which one has the boards with --fields board=NAME", v.roles.Board)
	}
	return board
}

// plain returns a value as text: a string without its quotes, nothing for null,
// all else as it is written.
func plain(value json.RawMessage) []byte {
	var s string
	if len(value) == 0 || json.Unmarshal(value, &s) == nil { // null, too, leaves s empty
		return []byte(s)
	}
	return value
}

// depthOf returns how deep brackets are nested.
func depthOf(text []byte) (deepest int) {
	depth, quoted, escaped := 0, false, false
	for _, c := range text {
		switch {
		case quoted:
			quoted = c != '"' || escaped
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
		escaped = quoted && c == '\\' && !escaped
	}
	return deepest
}

// value takes the board that a valid JSON value is: a string, a list of rows,
// or a list of cells.
func (v *values) value(rec *Record, text []byte, size puzzle.Size) {
	switch text[0] {
	case '"':
		v.sheet.field(rec, plain(text), size)
	case '[':
		v.list(rec, text[1:], size)
	default:
		rec.reject(puzzle.BadField, "a board is a list or a string, not %.40q", text)
	}
}

// list takes the elements of a list, which are all rows or all cells.
func (v *values) list(rec *Record, text []byte, size puzzle.Size) {
	s := v.sheet
	s.clear(0)
	rows, cells := false, false
	for text = afterComma(text); text[0] != ']' && !rec.Rejected(); text = afterComma(text) {
		start := s.n
		switch text[0] {
		case '[':
			rows = true
			for text = afterComma(text[1:]); text[0] != ']' && !rec.Rejected(); text = afterComma(text) {
				text = v.cell(rec, text)
			}
			text = text[1:]
		case '"':
			rows = true
			text = v.cell(rec, text)
		default:
			cells = true
			text = v.cell(rec, text)
			continue
		}
		s.endRow(rec, start)
	}
	switch {
	case rows && cells:
		rec.reject(puzzle.BadField, "a list of rows and cells")
	case s.n == 0:
		rec.reject(puzzle.BadField, "a board without cells")
	}
	s.fit(rec, rows, size)
}

// cell takes a number, a boolean or a string of cells, and returns what follows.
func (v *values) cell(rec *Record, text []byte) (rest []byte) {
	s := v.sheet
	end := bytes.IndexAny(text, ",]} \t\r\n")
	if text[0] == '"' {
		for end = 1; text[end] != '"'; end++ {
			if text[end] == '\\' {
				end++
			}
		}
		end++
	}
	token := text[:end]
	switch {
	case text[0] == '"':
		token = plain(token)
	case string(token) == "true":
		return s.put(rec, 1, text[end:])
	case string(token) == "false":
		return s.put(rec, 0, text[end:])
	case len(token) == 1 && token[0]-'0' <= 1 && s.n < maxCells:
		s.digit(token[0] - '0')
		return text[end:]
	}
	if s.n+len(token) > maxCells {
		rec.reject(puzzle.TooLarge, "more than %d cells", maxCells)
	} else if bad := s.squeeze(token); len(bad) > 0 || len(token) == 0 {
		rec.reject(puzzle.UnknownSymbol, "%.40q is not a cell, want %s", text[:end], s.symbols.Wanted())
	}
	return text[end:]
}

// afterComma returns what follows white space and at most one comma.
func afterComma(text []byte) []byte {
	text = bytes.TrimLeft(text, jsonSpace)
	if text[0] == ',' {
		text = bytes.TrimLeft(text[1:], jsonSpace)
	}
	return text
}
