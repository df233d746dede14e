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

// longestHead is how many bytes tell a compression: those of bzip2.
const longestHead = 4 + 6

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
	case has(0, xzMagic):
		return "xz", func(_ *source, in io.Reader) (io.Reader, error) { return newXZ(in) }
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
