package corpus

import (
	"io"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// grid reads a header "ROWS COLS", then a row a line; blank lines count for
// nothing. A record takes as many rows as its header says, right or wrong, but
// none that reads as the header of the next record (see isHeader): so a missing
// row or an absurd header costs one record, not those behind it. Text where a
// header should be is one bad record up to the next header.
type grid struct {
	sheet  *sheet
	size   puzzle.Size
	square bool // a header is one number
}

func (g *grid) begin(*source, *scanner) error { return nil }

func (g *grid) next(in *scanner, rec *Record) error {
	if err := in.scanNonBlank(); err != nil {
		return err
	}
	rec.begin(in.line)
	rec.keep(in.raw)
	size, ok := g.header(in.text)
	switch {
	case in.long:
		rejectLong(rec, in)
	case !ok && g.square:
		rec.reject(puzzle.BadSize, "want a header, the number of rows and columns, found %.40q", in.text)
	case !ok:
		rec.reject(puzzle.BadSize, "want a header, two numbers ROWS COLS, found %.40q", in.text)
	case g.size != puzzle.Size{} && size != g.size:
		rec.reject(puzzle.BadSize, "board of %s, want %s", size, g.size)
	default:
		g.sheet.rejectSize(rec, size)
	}
	if !ok {
		size.Rows = -1 // unknown: all rows up to the next header
	}
	g.sheet.clear(size.Cols)
	if err := g.rows(in, rec, size.Rows); err != nil {
		return err
	}
	g.sheet.board(rec)
	return nil
}

// rows reads the given number of rows, or those up to the next header.
func (g *grid) rows(in *scanner, rec *Record, want int) error {
	for g.sheet.rows != want {
		switch err := in.scanNonBlank(); {
		case err == io.EOF:
			rec.reject(puzzle.Truncated, "the source ends after %d of the %d rows", g.sheet.rows, want)
			return nil
		case err != nil:
			return err
		case g.isHeader(in.text):
			in.unscan()
			rec.reject(puzzle.RaggedRow, "%d rows, want %d", g.sheet.rows, want)
			return nil
		}
		rec.keep(in.raw)
		if at := number(in.text); at >= 0 && g.sheet.class[in.text[at]] < blank {
			rec.reject(puzzle.UnknownSymbol, "line %d, column %d: numbers of several digits in a row of cells", in.line, at+1)
		}
		g.sheet.line(rec, in)
	}
	return nil
}

// isHeader reports whether a line where a row should be is the header of the
// next record: two numbers from 1 up that are not themselves two cells. So the
// header "1 1" is seen only where a header should be.
func (g *grid) isHeader(text []byte) bool {
	size, ok := g.header(text)
	if !ok || size.Rows < 1 || size.Cols < 1 {
		return false
	}
	if g.square {
		return g.sheet.count(text) < 0
	}
	return number(text) >= 0 || slices.ContainsFunc(text, func(b byte) bool { return g.sheet.class[b] > blank })
}

// header reads a header; see package function header.
func (g *grid) header(text []byte) (size puzzle.Size, ok bool) {
	if !g.square {
		return header(text)
	}
	n, rest := wholeNumber(text)
	return puzzle.Size{Rows: n, Cols: n}, n >= 0 && len(rest) == 0
}

// number returns where a line that has blanks between its cells has two bytes
// that are not separated, -1 if nowhere. Such a row is not one of cells: "10 0"
// is the numbers ten and zero.
func number(text []byte) int {
	at, blanks := -1, false
	for i := 1; i < len(text); i++ {
		this, last := text[i] > ' ', text[i-1] > ' '
		if this && last && at < 0 {
			at = i - 1
		}
		blanks = blanks || last && !this
	}
	if !blanks {
		return -1
	}
	return at
}

// header reads two whole numbers separated by blanks. Numbers beyond any board
// are cut down, so that they cannot overflow.
func header(text []byte) (size puzzle.Size, ok bool) {
	rows, rest := wholeNumber(text)
	cols, rest2 := wholeNumber(rest)
	if rows < 0 || cols < 0 || len(rest) == len(rest2) || len(rest2) > 0 {
		return puzzle.Size{}, false
	}
	return puzzle.Size{Rows: rows, Cols: cols}, true
}

// wholeNumber reads a number behind blanks; -1 if there is none.
func wholeNumber(text []byte) (n int, rest []byte) {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	n = -1
	for len(text) > 0 && text[0]-'0' <= 9 {
		n = min(max(n, 0)*10+int(text[0]-'0'), 1e9)
		text = text[1:]
	}
	return n, text
}
