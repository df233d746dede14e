package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// plainRow is the most cells of lines that are rather rows of one board than boards.
const plainRow = 16

const howToSay = "give --format, and --symbols if the cells are not 1 and 0"

// formatOfName tells a format from the ending of a file's name, before which
// there may be that of a compression. Most files of text have none that tells.
func formatOfName(name string) string {
	name = strings.ToLower(name)
	for _, ending := range []string{".gz", ".zst", ".bz2", ".xz"} {
		name = strings.TrimSuffix(name, ending)
	}
	switch path.Ext(name) {
	case ".csv":
		return CSV
	case ".tsv":
		return TSV
	case ".jsonl", ".ndjson":
		return JSONL
	case ".json":
		return JSON
	case ".npy":
		return NPY
	case ".parquet":
		return Parquet
	}
	return ""
}

// detect tells the format of a corpus from its beginning, which starts with a
// line that is not blank. It guesses only where another reading is far-fetched:
//
//  0. the magic of npy or parquet: that; a brace: jsonl; a bracket: jsonl where the line is a board, else json;
//     fields separated by commas or tabs, one of which is called as that of the
//     boards: csv or tsv;
//  1. two numbers that are not two cells, or that are but fit the row below:
//     grid ("1 1" above one cell is a grid, above two it is not);
//  2. any character that is neither cell, blank nor bar: an error;
//  3. a bar: lines;
//  4. the size is given: lines where the line has a board's cells, blocks where
//     it has a row's, else an error;
//  5. several lines up to the first blank line or the end that are not too many
//     or too long for a board: blocks; but an error where the lines have more
//     than 16 cells and no second block follows, as they may be boards;
//  6. otherwise lines.
func detect(view []byte, opts Options) (format string, err error) {
	if bytes.HasPrefix(view, []byte(npyMagic)) {
		return NPY, nil
	}
	if bytes.HasPrefix(view, []byte(parquetMagic)) {
		return Parquet, nil
	}
	first, below, _ := bytes.Cut(view, []byte{'\n'})
	if format := detectJSON(first); format != "" {
		return format, nil
	}
	if isLong(first, opts.MaxLine) {
		return "", fmt.Errorf("it has more than %d bytes; %s", opts.MaxLine, howToSay)
	}
	first = trimBlanks(first)
	if format := detectHeader(first, opts.Fields.Named().Board); format != "" {
		return format, nil
	}
	s := newSheet(opts)
	if isGrid(s, first, below) {
		return Grid, nil
	}
	rest := s.squeeze(first)
	if len(rest) > 0 && s.class[rest[0]] != bar {
		return "", fmt.Errorf("%.40q has neither cells, %c and %c, nor the size of a grid; %s", first, opts.Symbols.On, opts.Symbols.Off, howToSay)
	}
	switch n, size := s.n, opts.Size; {
	case len(rest) > 0:
		return Lines, nil
	case size == puzzle.Size{}:
		return detectSizeless(view, opts, n)
	case n == size.Cells():
		return Lines, nil
	case n == size.Cols:
		return Blocks, nil
	default:
		return "", fmt.Errorf("its %d cells are neither a board of %s nor a row of one; %s", n, size, howToSay)
	}
}

// detectJSON tells jsonl or json from the line with which a corpus begins. One
// board in a line of its own is a list of cells or of rows.
func detectJSON(line []byte) string {
	line = bytes.Trim(line, jsonSpace)
	switch {
	case bytes.HasPrefix(line, []byte{'{'}):
		return JSONL
	case !bytes.HasPrefix(line, []byte{'['}):
		return ""
	case bytes.IndexByte(line, '{') < 0 && depthOf(line) <= 2 && json.Valid(line):
		return JSONL
	}
	return JSON
}

// detectHeader tells csv or tsv from a line that has the name of the boards'
// column among others, or alone.
func detectHeader(line []byte, board string) string {
	has := func(separator string) bool {
		return slices.ContainsFunc(strings.Split(string(line), separator), func(name string) bool { return strings.Trim(name, ` "`) == board })
	}
	switch {
	case has(","):
		return CSV
	case has("\t"):
		return TSV
	}
	return ""
}

// isGrid reports whether the first line is a grid's header.
func isGrid(s *sheet, first, below []byte) bool {
	size, ok := header(first)
	if !ok {
		return false
	}
	g := grid{sheet: s}
	if g.isHeader(first) {
		return true
	}
	// Two cells, or a number that is 0.
	row, _, _ := bytes.Cut(below, []byte{'\n'})
	row = trimBlanks(row)
	rest := s.squeeze(row[:min(len(row), puzzle.MaxLines+1)])
	fits := len(rest) == 0 && s.n == size.Cols && s.n > 0
	s.clear(0)
	return fits && size.Rows > 0
}

// detectSizeless tells lines from blocks where cells are all that there is: n
// in the first line.
func detectSizeless(view []byte, opts Options, n int) (string, error) {
	rows := 0
	text, more := view, false
	for len(text) > 0 && !more {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		if more = len(trimBlanks(line)) == 0; !more {
			rows++
		}
	}
	more = more && len(bytes.Trim(text, " \t\r\n")) > 0
	size := puzzle.Size{Rows: rows, Cols: n}
	switch {
	case rows == 1 || opts.Rule.CheckSize(size) != nil:
		return Lines, nil
	case more || n <= plainRow:
		return Blocks, nil
	}
	return "", fmt.Errorf("%d lines of %d cells are one board of %s (give --format blocks) or %d boards (give --format lines --size ROWSxCOLS)", rows, n, size, rows)
}
