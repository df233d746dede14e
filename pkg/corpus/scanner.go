package corpus

import (
	"bytes"
	"fmt"
	"io"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// scanner splits a source into lines. It holds a bounded part of the source
// whatever the length of its lines.
type scanner struct {
	src        io.Reader
	buf        []byte
	start, end int   // buf[start:end] is read from src and not yet scanned
	err        error // of src; due when those bytes are used up
	max        int   // bytes of the longest line
	again      bool  // the next scan stays on the line
	inside     bool  // readByte is inside a line

	// The line, valid until the next scan.
	line  int64  // its 1-based number; 0 before the first
	raw   []byte // without its LF; the first puzzle.MaxRaw bytes where long
	text  []byte // raw without CR and blanks at its end; empty where long
	long  bool   // longer than max
	noEOL bool   // the last line, and without LF
	head  [puzzle.MaxRaw]byte
}

// newScanner returns a scanner at the first line of src. A byte order mark is
// not part of that line.
func newScanner(src io.Reader, maxLine int) (*scanner, error) {
	s := &scanner{src: src, buf: make([]byte, max(256<<10, 4*maxLine)), max: maxLine}
	bom := []byte("\xef\xbb\xbf")
	view, err := s.peek(4) // as many as tell a compression
	if bytes.HasPrefix(view, bom) {
		s.start += len(bom)
	}
	if encoding := utf16Of(view); encoding != "" {
		return s, fmt.Errorf("it is text in UTF-16, want UTF-8: iconv -f %s -t UTF-8 makes it so", encoding)
	}
	return s, err
}

// utf16Of returns what iconv calls the encoding of a text that begins with the byte
// order mark of UTF-16, or with two characters of ASCII in it; empty for any other. In
// such a text each second byte would be a cell, at best.
func utf16Of(text []byte) string {
	ascii := func(c byte) bool { return c >= ' ' && c < 0x7f || c == '\t' || c == '\r' || c == '\n' }
	pair := func(high, low int) bool {
		return len(text) >= 4 && text[high] == 0 && text[high+2] == 0 && ascii(text[low]) && ascii(text[low+2])
	}
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return "UTF-16"
	case pair(1, 0):
		return "UTF-16LE"
	case pair(0, 1):
		return "UTF-16BE"
	}
	return ""
}

// scan goes to the next line; io.EOF after the last.
func (s *scanner) scan() error {
	if s.again {
		s.again = false
		return nil
	}
	i := bytes.IndexByte(s.buf[s.start:s.end], '\n')
	if i < 0 {
		return s.scanAcross()
	}
	s.setLine(s.buf[s.start : s.start+i])
	s.start += i + 1
	return nil
}

// readByte reads a byte instead of a line; line is then the one that it is in.
// A source is read either by lines or by bytes.
func (s *scanner) readByte() (byte, error) {
	for s.start == s.end {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	c := s.buf[s.start]
	s.start++
	if !s.inside {
		s.line++
	}
	s.inside = c != '\n'
	return c, nil
}

// unscan makes the next scan stay on this line.
func (s *scanner) unscan() { s.again = true }

// scanNonBlank goes to the next line that is not blank.
func (s *scanner) scanNonBlank() error {
	for {
		if err := s.scan(); err != nil || !s.blank() {
			return err
		}
	}
}

// blank reports whether the line has only blanks.
func (s *scanner) blank() bool { return len(s.text) == 0 && !s.long }

// scanAcross goes to the next line where the buffer does not hold its end.
func (s *scanner) scanAcross() error {
	seen := s.end - s.start // bytes of the line known to have no LF
	for s.err == nil && seen <= s.max+1 {
		s.fill()
		if i := bytes.IndexByte(s.buf[s.start+seen:s.end], '\n'); i >= 0 {
			s.setLine(s.buf[s.start : s.start+seen+i])
			s.start += seen + i + 1
			return nil
		}
		seen = s.end - s.start
	}
	switch {
	case seen > s.max+1: // too long even if its last byte is a CR
		return s.skipLong()
	case s.err != io.EOF || seen == 0:
		return s.err
	}
	s.setLine(s.buf[s.start:s.end])
	s.start, s.noEOL = s.end, true
	return nil
}

// skipLong makes the line a long one and drops its bytes.
func (s *scanner) skipLong() error {
	s.raw = s.head[:copy(s.head[:], s.buf[s.start:s.end])]
	s.text, s.long = nil, true
	s.line++
	for {
		if i := bytes.IndexByte(s.buf[s.start:s.end], '\n'); i >= 0 {
			s.start += i + 1
			return nil
		}
		s.start = s.end
		switch {
		case s.err == io.EOF:
			s.noEOL = true
			return nil
		case s.err != nil:
			return s.err
		}
		s.fill()
	}
}

// setLine makes b, which has no LF, the line.
func (s *scanner) setLine(b []byte) {
	s.line++
	s.raw, s.text, s.long = b, trimBlanks(b), false
	if len(b) > s.max && isLong(b, s.max) {
		s.raw, s.text, s.long = b[:min(len(b), puzzle.MaxRaw)], nil, true
	}
}

// isLong reports whether a line without its LF has more than max bytes; the CR
// of a CRLF does not count.
func isLong(line []byte, max int) bool { return len(bytes.TrimSuffix(line, []byte{'\r'})) > max }

// trimBlanks cuts blanks and carriage returns off the end of b.
func trimBlanks(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// fill reads once from src, behind the bytes that are there. It must not be
// called after an error.
func (s *scanner) fill() {
	if len(s.buf)-s.end < len(s.buf)/2 || s.start == s.end {
		s.start, s.end = 0, copy(s.buf, s.buf[s.start:s.end])
	}
	const maxEmpty = 100 // reads in a row without a byte or an error
	for range maxEmpty {
		n, err := s.src.Read(s.buf[s.end:])
		s.end += n
		s.err = err
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}

// peek returns the next bytes, at least n unless the source ends or fails
// before, without taking them. The error is only that of a source that fails.
func (s *scanner) peek(n int) ([]byte, error) {
	for s.end-s.start < n && s.err == nil {
		s.fill()
	}
	if s.err != nil && s.err != io.EOF && s.end-s.start < n {
		return nil, s.err
	}
	return s.buf[s.start:s.end], nil
}

// peekRecord passes over blank lines and returns the beginning of what follows:
// all of a short source, else just so much that a long line shows. It returns
// io.EOF where nothing follows.
func (s *scanner) peekRecord() ([]byte, error) {
	for {
		view, err := s.peek(s.max + 2) // a line that is long even if its last byte is a CR
		if err != nil {
			return nil, err
		}
		view = view[:min(len(view), s.max+2)]
		if len(view) == 0 {
			return nil, io.EOF
		}
		line, _, _ := bytes.Cut(view, []byte{'\n'})
		if len(trimBlanks(line)) > 0 || isLong(line, s.max) {
			return view, nil
		}
		if err := s.scan(); err != nil {
			return nil, err
		}
	}
}
