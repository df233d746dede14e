package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

const (
	maxCells = puzzle.MaxWidth * puzzle.MaxLines
	ones     = 0x0101010101010101 // eight cells in a word, all 1
	packBits = 0x8040201008040201 // brings eight cells of a word together in its top byte
)

// What a byte of a line is. The class of a cell is its value, 0 or 1.
const (
	blank byte = 2 + iota
	bar        // between the rows of a line
	other
)

// sheet collects the cells of one record, row by row, and makes them a board.
type sheet struct {
	rule    puzzle.Rule
	symbols puzzle.Symbols
	class   [256]byte

	// cells[:n] are the cells so far, one a byte, 0 or 1. Behind maxCells there
	// is room for one more line, and for whole words beyond it.
	cells      []byte
	n          int
	rows, cols int // rows so far; cells of each row, 0 until that is known

	flat    bool // the cells were not in rows
	columns bool // then they are column by column
}

func newSheet(opts Options) *sheet {
	s := &sheet{rule: opts.Rule, symbols: opts.Symbols, columns: opts.ColumnMajor, cells: make([]byte, maxCells+opts.MaxLine+16)}
	for b := range s.class {
		s.class[b] = other
	}
	s.class[' '], s.class['\t'] = blank, blank
	s.class['/'], s.class['|'] = bar, bar
	s.class[opts.Symbols.On], s.class[opts.Symbols.Off] = 1, 0
	return s
}

// clear empties the sheet; its rows are to have cols cells, 0 if unknown.
func (s *sheet) clear(cols int) { s.n, s.rows, s.cols, s.flat = 0, 0, cols, false }

// row takes text, the end of the scanner's line or all of it, as the next row.
// Where bars may end a row it takes the text before the first one and returns
// the rest.
func (s *sheet) row(rec *Record, in *scanner, text []byte, bars bool) (rest []byte) {
	start := s.n
	rest = s.squeeze(text)
	s.rows++
	if len(rest) > 0 && !(bars && s.class[rest[0]] == bar) {
		s.rejectSymbol(rec, in, rest)
		return nil
	}
	width := s.n - start
	if s.rows == 1 && s.cols == 0 {
		s.cols = width
	}
	switch {
	case s.n > maxCells:
		rec.reject(puzzle.TooLarge, "more than %d cells", maxCells)
	case width < s.cols && len(rest) == 0 && in.noEOL:
		rec.reject(puzzle.Truncated, "the source ends after %d of the %d cells of row %d", width, s.cols, s.rows)
	case width != s.cols:
		rec.reject(puzzle.RaggedRow, "row %d has %d cells, want %d", s.rows, width, s.cols)
	}
	return rest
}

// line takes the scanner's line as the next row of a record with a row a line.
func (s *sheet) line(rec *Record, in *scanner) {
	switch {
	case rec.Rejected():
		s.rows++
	case in.long:
		s.rows++
		rejectLong(rec, in)
	default:
		s.row(rec, in, in.text, false)
	}
}

// field takes a whole board that is one field: its rows with bars or line breaks
// between them, or all cells in a row where the size is known.
func (s *sheet) field(rec *Record, text []byte, want puzzle.Size) {
	s.clear(0)
	rest, rows := text, false
	for len(rest) > 0 && !rec.Rejected() {
		start := s.n
		rest = bytes.TrimPrefix(s.squeeze(rest), []byte{'\r'})
		switch {
		case len(rest) > 0 && s.class[rest[0]] != bar && rest[0] != '\n':
			rec.reject(puzzle.UnknownSymbol, "byte %d of the board: %s is not a cell, want %s",
				len(text)-len(rest)+1, symbolName(rest), s.symbols.Wanted())
		case s.n > maxCells:
			rec.reject(puzzle.TooLarge, "more than %d cells", maxCells)
		default:
			s.endRow(rec, start)
		}
		if len(rest) > 0 {
			rows, rest = true, rest[1:]
		}
	}
	if s.n == 0 {
		rec.reject(puzzle.BadField, "a board without cells")
	}
	s.fit(rec, rows, want)
}

// put takes a cell and returns rest.
func (s *sheet) put(rec *Record, cell byte, rest []byte) []byte {
	if s.n == maxCells {
		rec.reject(puzzle.TooLarge, "more than %d cells", maxCells)
		return rest
	}
	s.cells[s.n] = cell
	s.n++
	return rest
}

// digit takes 0 or 1 as a cell: as what the symbols say of that digit, if they
// do. There is room for a cell.
func (s *sheet) digit(n byte) {
	if class := s.class['0'+n]; class < blank {
		n = class
	}
	s.cells[s.n] = n
	s.n++
}

// endRow makes a row of the cells from start on.
func (s *sheet) endRow(rec *Record, start int) {
	width := s.n - start
	if s.rows++; s.rows == 1 {
		s.cols = width
	}
	if width != s.cols {
		rec.reject(puzzle.RaggedRow, "row %d has %d cells, want %d", s.rows, width, s.cols)
	}
}

// fit brings together the rows of a field, if it has shown them, and the size
// that is wanted, if there is one.
func (s *sheet) fit(rec *Record, rows bool, want puzzle.Size) {
	size, given := puzzle.Size{Rows: s.rows, Cols: s.cols}, want != puzzle.Size{}
	switch {
	case rec.Rejected() || rows && (!given || size == want):
	case rows:
		rec.reject(puzzle.BadSize, "board of %s, want %s", size, want)
	case !given:
		rec.reject(puzzle.BadSize, "%d cells do not show the size of their board: give --size ROWSxCOLS, rows and cols, or a / between rows", s.n)
	case s.n != want.Cells():
		rec.reject(puzzle.RaggedRow, "%d cells, want %d for %s", s.n, want.Cells(), want)
	default:
		s.rows, s.cols, s.flat = want.Rows, want.Cols, true
	}
}

// count returns the number of cells in a line that has nothing else but blanks,
// or -1.
func (s *sheet) count(text []byte) int {
	n := 0
	for _, b := range text {
		switch class := s.class[b]; {
		case class > blank:
			return -1
		case class < blank:
			n++
		}
	}
	return n
}

// squeeze takes the cells at the beginning of text, passes over blanks, and
// returns the text from the first byte on that is neither.
func (s *sheet) squeeze(text []byte) (rest []byte) {
	// Where the next eight bytes are all cells, subtracting Off (as exclusive
	// or) leaves 0 or mark in each; shift brings mark's lowest bit to bit 0.
	off := uint64(s.symbols.Off) * ones
	mark := uint64(s.symbols.On ^ s.symbols.Off)
	shift := bits.TrailingZeros64(mark)
	i, n := 0, s.n
	for i < len(text) {
		if i+8 <= len(text) {
			x := binary.LittleEndian.Uint64(text[i:]) ^ off
			if cells := x >> shift & ones; cells*mark == x {
				binary.LittleEndian.PutUint64(s.cells[n:], cells)
				i, n = i+8, n+8
				continue
			}
		}
		class := s.class[text[i]]
		if class > blank {
			break
		}
		if class < blank {
			s.cells[n] = class
			n++
		}
		i++
	}
	s.n = n
	return text[i:]
}

// board makes the sheet the record's board, where nothing was wrong with it.
func (s *sheet) board(rec *Record) {
	size := puzzle.Size{Rows: s.rows, Cols: s.cols}
	known := rec.Board.Size == size && rec.Board.Count == 1 // as most often
	if !known {
		s.rejectSize(rec, size)
	}
	if rec.Rejected() {
		return
	}
	if !known {
		rec.Board.Reset(size, 1)
	}
	if s.flat && s.columns {
		s.turn()
	}
	masks := rec.Board.Masks
	if size.Transposed() {
		clear(masks)
		for k, cell := range s.cells[:s.n] {
			if cell == 1 {
				rec.Board.SetCell(0, k/size.Cols, k%size.Cols)
			}
		}
		return
	}
	cells := s.cells
	for k := range masks {
		width := size.MaskWidth(k)
		masks[k], cells = pack(cells, width), cells[width:]
	}
}

// turn brings cells that are column by column into rows.
func (s *sheet) turn() {
	turned := make([]byte, s.n)
	for k, cell := range s.cells[:s.n] {
		turned[k%s.rows*s.cols+k/s.rows] = cell
	}
	copy(s.cells, turned)
}

// pack returns the first n cells, at most 16, as bits, the first cell highest.
// What lies behind them may be anything.
func pack(cells []byte, n int) uint16 {
	if n <= 8 {
		return pack8(cells) >> (8 - n)
	}
	return (pack8(cells)<<8 | pack8(cells[8:])) >> (16 - n)
}

// pack8 returns eight cells as bits. With all but the lowest bit of each byte
// cleared no two terms of the product meet, and its top byte is the answer.
func pack8(cells []byte) uint16 {
	return uint16(binary.LittleEndian.Uint64(cells) & ones * packBits >> 56)
}

func (s *sheet) rejectSize(rec *Record, size puzzle.Size) {
	err := s.rule.CheckSize(size)
	switch {
	case err == nil:
	case size.Rows < 1 || size.Cols < 1:
		rec.reject(puzzle.BadSize, "%v", err)
	default:
		rec.reject(puzzle.TooLarge, "%v", err)
	}
}

func rejectLong(rec *Record, in *scanner) {
	rec.reject(puzzle.LineTooLong, "line %d has more than %d bytes", in.line, in.max)
}

// rejectSymbol rejects a record for the first byte of rest, the end of the
// scanner's line.
func (s *sheet) rejectSymbol(rec *Record, in *scanner, rest []byte) {
	rec.reject(puzzle.UnknownSymbol, "line %d, column %d: %s is not a cell, want %s",
		in.line, len(in.text)-len(rest)+1, symbolName(rest), s.symbols.Wanted())
}

// symbolName names the first character of text, or its first byte where that is
// none.
func symbolName(text []byte) string {
	if r, n := utf8.DecodeRune(text); r != utf8.RuneError || n > 1 {
		return fmt.Sprintf("%q", r)
	}
	return fmt.Sprintf("byte 0x%02x", text[0])
}
