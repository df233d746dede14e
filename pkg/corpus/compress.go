package corpus

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// maxWindow is the most that a compressed file may ask a reader to remember, in
// bytes: what the zstd tool itself accepts without --long. The largest preset of
// xz asks for half of it.
const maxWindow = 128 << 20

// Limits of expansion. A corpus of boards, even of many equal ones, does not come
// near; one that does can be piped in from its own tool.
const (
	maxRatio    = 1000     // bytes that one of the file may become
	freeExpands = 64 << 20 // bytes that any file may become
)

// errOverExpanded ends a source that is larger than the limits of expansion.
var errOverExpanded = fmt.Errorf("it expands to more than %d times its size; if that is no accident, let another tool expand it and read standard input", maxRatio)

// decompress sets text. The compression shows in the first bytes.
func (s *source) decompress() error {
	buf := bufio.NewReaderSize(s, 64<<10) // larger reads pass it by
	head, err := buf.Peek(4)              // no more, so that who types a puzzle gets an answer
	if bytes.HasPrefix(head, []byte("BZh")) || string(head) == "\xfd7zX" {
		head, err = buf.Peek(longestHead)
	}
	if err != nil && err != io.EOF {
		return err
	}
	kind, open := decoderOf(head)
	if open == nil {
		s.text = buf
		return nil
	}
	e := &expansion{source: s, kind: kind}
	s.text = e
	if e.text, err = open(s, buf); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return e.explain(err)
}

// compressed reports whether the text is not what is stored.
func (s *source) compressed() bool {
	_, is := s.text.(*expansion)
	return is
}

// longestHead is how many bytes tell a compression and what it asks for: those
// of xz up to the end of checkDictionary.
const longestHead = 12 + 2 + 2*9 + 3

// decoderOf tells a compression from the first bytes of a file.
func decoderOf(head []byte) (kind string, open func(*source, io.Reader) (io.Reader, error)) {
	has := func(at int, magic string) bool { return len(head) > at && bytes.HasPrefix(head[at:], []byte(magic)) }
	switch {
	case has(0, "\x1f\x8b"):
		return "gzip", func(_ *source, in io.Reader) (io.Reader, error) { return gzip.NewReader(in) }
	case has(0, "\x28\xb5\x2f\xfd"), len(head) >= 4 && head[0]&0xf0 == 0x50 && has(1, "\x2a\x4d\x18"): // or a skippable frame
		return "zstd", openZstd
	case has(0, "BZh") && (has(4, "1AY&SY") || has(4, "\x17\x72\x45\x38\x50\x90")):
		return "bzip2", func(_ *source, in io.Reader) (io.Reader, error) { return bzip2.NewReader(in), nil }
	case has(0, "\xfd7zXZ\x00"):
		return "xz", func(_ *source, in io.Reader) (io.Reader, error) {
			if err := checkDictionary(head); err != nil {
				return nil, err
			}
			return newXZ(in)
		}
	}
	return "", nil
}

func openZstd(s *source, in io.Reader) (io.Reader, error) {
	// One decoder: more would read the source from other goroutines.
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { z.Close(); return nil })
	return z, nil
}

// xzReader tells a file of xz that is cut off between two of its blocks: to the
// package that reads it, that is the end.
type xzReader struct {
	in   io.Reader
	text io.Reader
	last [2]byte // read of in, but for the zeros that may pad a stream
}

func newXZ(in io.Reader) (io.Reader, error) {
	x := &xzReader{in: in}
	var err error
	x.text, err = xz.NewReader(readerFunc(x.readStored))
	return x, err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (x *xzReader) readStored(p []byte) (int, error) {
	n, err := x.in.Read(p)
	if seen := bytes.TrimRight(p[:n], "\x00"); len(seen) > 1 {
		x.last = [2]byte(seen[len(seen)-2:])
	} else if len(seen) == 1 {
		x.last = [2]byte{x.last[1], seen[0]}
	}
	return n, err
}

// Read reads expanded bytes.
func (x *xzReader) Read(p []byte) (int, error) {
	n, err := x.text.Read(p)
	if err == io.EOF && string(x.last[:]) != "YZ" { // with which every stream ends
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// checkDictionary reports the first block of an xz file if it asks for too large
// a dictionary. Its header is: size, flags, two sizes of up to 9 bytes if flags
// say so, then the filter's number (0x21), 1, and the dictionary's size.
func checkDictionary(head []byte) error {
	const streamHeader = 12
	if len(head) < streamHeader+2 {
		return nil // too short to be a file: its reader says so
	}
	flags, rest := head[streamHeader+1], head[streamHeader+2:]
	for _, has := range []byte{0x40, 0x80} {
		for more := flags&has != 0; more && len(rest) > 0; rest = rest[1:] {
			more = rest[0]&0x80 != 0
		}
	}
	if len(rest) < 3 || rest[0] != 0x21 {
		return nil // no filter that the reader knows
	}
	if size, err := lzma.DecodeDictCap(rest[2]); err == nil && size > maxWindow {
		return fmt.Errorf("its dictionary of %d bytes is larger than %d", size, maxWindow)
	}
	return nil
}

// expansion is the text of a compressed source. It says what is wrong with the
// file, and ends where that expands too far.
type expansion struct {
	source *source
	kind   string
	text   io.Reader
	bytes  int64 // so far
}

// Read reads expanded bytes.
func (e *expansion) Read(p []byte) (int, error) {
	n, err := e.text.Read(p)
	e.bytes += int64(n)
	if e.bytes > freeExpands && e.bytes/maxRatio > max(e.source.size, e.source.bytes) {
		return 0, errOverExpanded
	}
	return n, e.explain(err)
}

// explain says in the words of people what a decoder found.
func (e *expansion) explain(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the %s file is cut off: %w", e.kind, err)
	}
	return fmt.Errorf("the %s file is damaged: %w", e.kind, err)
}
