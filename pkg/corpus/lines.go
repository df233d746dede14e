package corpus

import (
	"fmt"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// lines reads one board a line: its cells row by row, with or without bars
// between the rows. One bar behind the last row is allowed; it makes a single
// row show its size.
type lines struct {
	sheet *sheet
	size  puzzle.Size
	shown bool // a line has shown its size
}

func (l *lines) begin(*source, *scanner) error { return nil }

func (l *lines) next(in *scanner, rec *Record) error {
	if err := in.scanNonBlank(); err != nil {
		return err
	}
	rec.begin(in.line)
	err := l.board(in, rec)
	if rec.Rejected() {
		rec.keep(in.raw)
	}
	return err
}

func (l *lines) board(in *scanner, rec *Record) error {
	if in.long {
		rejectLong(rec, in)
		return nil
	}
	l.sheet.clear(0)
	bars := false
	for text := in.text; len(text) > 0 && !rec.Rejected(); {
		if text = l.sheet.row(rec, in, text, true); len(text) > 0 {
			bars, text = true, text[1:]
		}
	}
	if rec.Rejected() {
		return nil
	}
	if err := l.fit(in, rec, bars); err != nil {
		return err
	}
	l.sheet.board(rec)
	return nil
}

// fit brings together the size that the line shows, if it has bars, and the
// size that it should have, if that is given.
func (l *lines) fit(in *scanner, rec *Record, bars bool) error {
	s, want := l.sheet, l.size
	given := want != puzzle.Size{}
	size := puzzle.Size{Rows: s.rows, Cols: s.cols}
	switch {
	case bars && !given:
		l.shown = true
	case bars && size == want:
	case bars && in.noEOL && size.Cols == want.Cols && size.Rows < want.Rows:
		rec.reject(puzzle.Truncated, "the source ends after %d of the %d rows", size.Rows, want.Rows)
	case bars:
		rec.reject(puzzle.BadSize, "board of %s, want %s", size, want)
	case !given && !l.shown:
		return fmt.Errorf("lines of %d cells do not show their size: give --size ROWSxCOLS, or put a / between rows", s.n)
	case !given:
		rec.reject(puzzle.BadSize, "a line of %d cells does not show its size: give --size ROWSxCOLS, or put a / between rows", s.n)
	case s.n == want.Cells():
		s.rows, s.cols, s.flat = want.Rows, want.Cols, true
	case in.noEOL && s.n < want.Cells():
		rec.reject(puzzle.Truncated, "the source ends after %d of the %d cells", s.n, want.Cells())
	default:
		rec.reject(puzzle.RaggedRow, "%d cells, want %d for %s", s.n, want.Cells(), want)
	}
	return nil
}
