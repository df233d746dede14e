package corpus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// npyMagic begins a file of NumPy's format, which is described in the module
// numpy.lib.format: magic, version, length of the header, a header that is a
// Python dictionary, and the numbers.
const npyMagic = "\x93NUMPY"

const maxNpyHeader = 64 << 10 // bytes

// npy reads an array of shape (n, rows, cols), or (n, rows*cols) where the size is
// given. Its line of a record is the record's number in the file.
type npy struct {
	sheet *sheet
	size  puzzle.Size
	flat  bool // two dimensions

	want    puzzle.Size // as Options say
	width   int         // bytes of a number
	low     int         // which of them has the value of 0 and 1
	records int64
	record  int64 // number of the next one
	planes  *planes
	cells   []byte
}

func (y *npy) begin(src *source, in *scanner) error {
	y.record, y.records, y.planes = 0, 0, nil
	head, err := in.peek(len(npyMagic) + 2 + 4)
	if err != nil || len(head) == 0 {
		return err
	}
	if len(head) < len(npyMagic)+2+4 || !bytes.HasPrefix(head, []byte(npyMagic)) {
		return errors.New("it does not begin as a file of NumPy does")
	}
	length, start := int(binary.LittleEndian.Uint16(head[8:])), len(npyMagic)+2+2
	if head[6] > 1 {
		length, start = int(binary.LittleEndian.Uint32(head[8:])), start+2
	}
	if length > maxNpyHeader {
		return fmt.Errorf("a header of %d bytes, want at most %d", length, maxNpyHeader)
	}
	if head, err = in.peek(start + length); err != nil {
		return err
	}
	if len(head) < start+length {
		return errors.New("it is cut off within its header")
	}
	in.start += start + length
	fortran, err := y.parse(string(head[start : start+length]))
	if err == nil && fortran && y.records > 0 {
		y.planes, err = newPlanes(src, int64(start+length), y.records, y.size.Cells(), y.width)
	}
	return err
}

// parse reads the header.
func (y *npy) parse(header string) (fortran bool, err error) {
	find := func(pattern string) string {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(header); m != nil {
			return m[1]
		}
		return ""
	}
	descr := find(`'descr'\s*:\s*'([^']*)'`)
	if len(descr) != 3 || !strings.Contains("|<>", descr[:1]) || !strings.Contains("biu", descr[1:2]) || !strings.Contains("1248", descr[2:]) {
		return false, fmt.Errorf("numbers of type %.40q: want bool or whole numbers of 1, 2, 4 or 8 bytes", descr)
	}
	y.width, y.low = int(descr[2]-'0'), 0
	if descr[0] == '>' {
		y.low = y.width - 1
	}
	order := find(`'fortran_order'\s*:\s*(True|False)`)
	shape := strings.FieldsFunc(find(`'shape'\s*:\s*\(([0-9,\sL]*)\)`), func(r rune) bool { return r == ',' || r == ' ' || r == 'L' })
	if order == "" || len(shape) != 2 && len(shape) != 3 {
		return false, fmt.Errorf("header %.200q: want fortran_order, and a shape (n, rows, cols) or (n, rows*cols)", header)
	}
	numbers := make([]int64, len(shape))
	for i, text := range shape {
		if numbers[i], err = strconv.ParseInt(text, 10, 48); err != nil {
			return false, fmt.Errorf("shape %v: %w", shape, err)
		}
	}
	y.records, y.flat = numbers[0], len(shape) == 2
	return order == "True", y.fit(numbers[1:])
}

// fit brings together the shape of the boards and the size that is wanted.
func (y *npy) fit(shape []int64) error {
	given := y.want != puzzle.Size{}
	y.size = y.want
	switch {
	case !y.flat:
		y.size = puzzle.Size{Rows: int(shape[0]), Cols: int(shape[1])}
		if given && y.size != y.want {
			return fmt.Errorf("boards of %s, want %s", y.size, y.want)
		}
	case !given:
		return fmt.Errorf("boards of %d cells do not show their size: give --size ROWSxCOLS", shape[0])
	case shape[0] != int64(y.want.Cells()):
		return fmt.Errorf("boards of %d cells, want %d for %s", shape[0], y.want.Cells(), y.want)
	}
	return y.sheet.rule.CheckSize(y.size)
}

func (y *npy) next(in *scanner, rec *Record) error {
	if y.record == y.records {
		return y.end(in, rec)
	}
	y.record++
	rec.begin(y.record)
	var err error
	if y.planes != nil {
		y.cells, err = y.planes.record(y.record-1, y.cells, y.at)
	} else {
		err = y.read(in, rec)
	}
	if err != nil {
		return err
	}
	y.board(rec)
	return nil
}

// at returns the plane of a cell: in Fortran order the first index moves fastest,
// so the planes of a record are its columns one behind the other.
func (y *npy) at(cell int) int {
	if y.flat {
		return cell
	}
	return cell%y.size.Cols*y.size.Rows + cell/y.size.Cols
}

// read reads the numbers of a record that are one behind the other.
func (y *npy) read(in *scanner, rec *Record) error {
	n := y.size.Cells() * y.width
	view, err := in.peek(n)
	if err != nil {
		return err
	}
	view = view[:min(n, len(view))]
	y.cells = append(y.cells[:0], view...)
	in.start += len(view)
	if len(view) < n {
		rec.reject(puzzle.Truncated, "the source ends after %d of the %d bytes of the record, and %d of %d records", len(view), n, y.record-1, y.records)
		y.records = y.record
	}
	return nil
}

// end makes what follows the array a bad record.
func (y *npy) end(in *scanner, rec *Record) error {
	view, err := in.peek(puzzle.MaxRaw) // so that the reject does not depend on how the bytes arrive
	if err == nil && (len(view) == 0 || y.planes != nil) {
		err = io.EOF
	}
	if err != nil {
		return err
	}
	rec.begin(y.record + 1)
	rec.keep(view)
	rec.reject(puzzle.BadSyntax, "bytes behind the %d records of the array", y.records)
	for err == nil && len(view) > 0 {
		in.start += len(view)
		view, err = in.peek(1)
	}
	return err
}

// board makes the record's numbers a board.
func (y *npy) board(rec *Record) {
	s := y.sheet
	s.clear(y.size.Cols)
	for k := 0; k+y.width <= len(y.cells); k += y.width {
		number := y.cells[k : k+y.width]
		cell := number[y.low]
		if cell > 1 || bytes.Count(number, []byte{0}) != y.width-int(cell) {
			rec.reject(puzzle.UnknownSymbol, "number %d of the record, bytes %x, is not 0 or 1", k/y.width+1, number)
			break
		}
		s.digit(cell)
	}
	if rec.Rejected() {
		rec.keep(fmt.Appendf(nil, "%x", y.cells[:min(len(y.cells), puzzle.MaxRaw/2)]))
	}
	s.rows, s.flat = y.size.Rows, y.flat
	s.board(rec)
}

// planes reads an array in Fortran order: each cell of all records is a plane of
// its own, so that a record is spread over the whole file. Some records of all
// planes are read together.
type planes struct {
	file    io.ReaderAt
	start   int64
	records int64
	cells   int // of a record: the number of planes
	width   int

	some  []byte // the planes of the records from first on, one behind the other
	first int64
	count int // records in some
}

const planesBytes = 4 << 20 // of the numbers that are read together

func newPlanes(src *source, start, records int64, cells, width int) (*planes, error) {
	file, ok := src.file.(io.ReaderAt)
	if !ok || src.size == 0 || src.compressed() {
		return nil, errors.New("it is in Fortran order, which can be read from a plain file only: neither compressed nor from a pipe")
	}
	if perRecord := int64(cells) * int64(width); records > (src.size-start)/perRecord { // which cannot overflow
		return nil, fmt.Errorf("it is cut off: %d bytes, want %d for each of %d records", src.size, perRecord, records)
	}
	return &planes{file: file, start: start, records: records, cells: cells, width: width}, nil
}

// record appends the numbers of a record to dst[:0], each from the plane that
// plane says.
func (p *planes) record(k int64, dst []byte, plane func(cell int) int) ([]byte, error) {
	if k >= p.first+int64(p.count) {
		if err := p.read(k); err != nil {
			return nil, err
		}
	}
	dst = dst[:0]
	for cell := range p.cells {
		at := (plane(cell)*p.count + int(k-p.first)) * p.width
		dst = append(dst, p.some[at:at+p.width]...)
	}
	return dst, nil
}

// read reads the numbers of the records from first on.
func (p *planes) read(first int64) error {
	p.first = first
	p.count = int(min(max(1, planesBytes/int64(p.cells*p.width)), p.records-first))
	stretch := p.count * p.width
	p.some = append(p.some[:0], make([]byte, p.cells*stretch)...)
	for plane := range p.cells {
		at := p.start + (int64(plane)*p.records+first)*int64(p.width)
		if _, err := p.file.ReadAt(p.some[plane*stretch:(plane+1)*stretch], at); err != nil && err != io.EOF {
			return fmt.Errorf("read cell %d of record %d: %w", plane, first, err)
		}
	}
	return nil
}
