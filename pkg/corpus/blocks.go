package corpus

import (
	"io"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// blocks reads a row a line. A block ends at a blank line, and where the size
// is given also after its number of rows: so a bad block costs no more lines
// than a good one.
type blocks struct {
	sheet *sheet
	size  puzzle.Size
	named bool // a line with anything but cells is the name of the next block
}

func (b *blocks) begin(*source, *scanner) error { return nil }

func (b *blocks) next(in *scanner, rec *Record) error {
	if err := in.scanNonBlank(); err != nil {
		return err
	}
	rec.begin(in.line)
	b.sheet.clear(b.size.Cols)
	var err error
	for !b.isName(in) {
		rec.keep(in.raw)
		b.sheet.line(rec, in)
		if b.sheet.rows == b.size.Rows {
			break
		}
		if err = in.scan(); err != nil || in.blank() {
			break
		}
	}
	if err != nil && err != io.EOF {
		return err
	}
	switch rows := b.sheet.rows; {
	case rows >= b.size.Rows:
	case err == io.EOF:
		rec.reject(puzzle.Truncated, "the source ends after %d of the %d rows", rows, b.size.Rows)
	default:
		rec.reject(puzzle.RaggedRow, "%d rows, want %d", rows, b.size.Rows)
	}
	b.sheet.board(rec)
	return nil
}

// isName reports whether the scanner's line is the name of the next block, and
// leaves it to be read as that.
func (b *blocks) isName(in *scanner) bool {
	if !b.named || b.sheet.count(in.text) >= 0 {
		return false
	}
	in.unscan()
	return true
}
