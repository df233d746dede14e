package corpus

import (
	"io"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// framed reads boards of another format with what judges put around them. A
// source may hold several such inputs, one after the other. A line that should
// be a count or a name, and is a row of cells instead, is a bad record of its
// own: a row too many costs no more than that.
type framed struct {
	reader
	frame puzzle.Frame
	sheet *sheet
	size  puzzle.Size

	left, count int    // boards still to come, and announced
	line        int64  // where they were announced
	announced   []byte // how
}

func (f *framed) begin(src *source, in *scanner) error {
	f.left, f.count = 0, 0
	return f.reader.begin(src, in)
}

func (f *framed) next(in *scanner, rec *Record) error {
	done, err := f.head(in, rec)
	if done || err != nil {
		return err
	}
	f.left--
	if f.frame.Name {
		return f.named(in, rec)
	}
	in.unscan()
	return f.reader.next(in, rec)
}

// head passes over ends and counts and stays on the line where a board begins.
// It returns true where it has made a record of what it found instead.
func (f *framed) head(in *scanner, rec *Record) (done bool, err error) {
	for {
		err := in.scanNonBlank()
		if err == io.EOF && f.left > 0 {
			rec.begin(f.line)
			rec.keep(f.announced)
			rec.reject(puzzle.Truncated, "%d boards are announced, and the source ends after %d", f.count, f.count-f.left)
			f.left = 0
			return true, nil
		}
		switch {
		case err != nil:
			return false, err
		case f.frame.End != "" && string(in.text) == f.frame.End:
			f.left = 0
			continue
		case !f.frame.Count || f.left > 0:
			return false, nil
		}
		n, rest := wholeNumber(in.text)
		if n < 0 || len(rest) > 0 || f.isRow(in.text) {
			return true, f.reject(in, rec, "the number of boards")
		}
		f.left, f.count, f.line, f.announced = n, n, in.line, append(f.announced[:0], in.raw...)
	}
}

// named reads a name and its board.
func (f *framed) named(in *scanner, rec *Record) error {
	if in.long || f.isRow(in.text) {
		f.left++
		return f.reject(in, rec, "a name")
	}
	line, name := in.line, append([]byte(nil), in.text...)
	err := f.reader.next(in, rec)
	if err == io.EOF {
		rec.begin(line)
		rec.reject(puzzle.Truncated, "the source ends behind a name")
		err = nil
	}
	if rec.Line = line; rec.Rejected() && len(rec.Reject.Raw) == 0 {
		rec.keep(name)
	}
	addLabel(rec, "name", name)
	return err
}

// reject makes a bad record of the scanner's line.
func (f *framed) reject(in *scanner, rec *Record, want string) error {
	rec.begin(in.line)
	rec.keep(in.raw)
	if in.long {
		rejectLong(rec, in)
	}
	rec.reject(puzzle.BadSyntax, "want %s, found %.40q", want, in.text)
	return nil
}

// isRow reports whether a line is just as a row of the boards is.
func (f *framed) isRow(text []byte) bool {
	return f.size.Cols > 0 && f.sheet.count(text) == f.size.Cols
}
