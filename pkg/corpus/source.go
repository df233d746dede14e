package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/flipmill/flipmill/pkg/object"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Source is one file of a corpus, as stored.
type Source struct {
	Name   string // as Expand gives it; bytes that are not UTF-8 are U+FFFD, as in every text of a dataset
	Bytes  int64
	SHA256 string // hexadecimal
}

// Sum returns the SHA-256 of a corpus in hexadecimal: that of the text
// "<sha256>  <name>\n" for every source in order, which is what
// `sha256sum FILES | sha256sum` prints (but for names with a backslash or a
// line break, which sha256sum escapes, and names that are not UTF-8).
func Sum(sources []Source) string {
	h := sha256.New()
	for _, s := range sources {
		fmt.Fprintf(h, "%s  %s\n", s.SHA256, s.Name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Fingerprint returns what Corpus.Sources would say at the end of these files
// without parsing them. Standard input and pipes are read to their end, which
// uses them up.
func Fingerprint(ctx context.Context, paths []string, stdin io.Reader) ([]Source, error) {
	s := shelf{ctx: ctx}
	files, err := s.expand(paths)
	if err != nil {
		return nil, err
	}
	if _, err := checkSources(files); err != nil {
		return nil, err
	}
	var sources []Source
	var read atomic.Int64
	for _, f := range files {
		src, err := s.openRaw(f.path, stdin, &read)
		if err != nil {
			return nil, err
		}
		sum, err := src.finish()
		if err != nil {
			return nil, err
		}
		sources = append(sources, sum)
	}
	return sources, nil
}

// checkSources returns the total size of the files, 0 where one of them does
// not say.
func checkSources(files []entry) (total int64, err error) {
	if len(files) == 0 {
		return 0, errors.New("no corpus named: give at least one file, or - for standard input")
	}
	known, stdin := true, false
	for _, f := range files {
		if f.path == Stdin && stdin {
			return 0, errors.New("standard input (-) is named twice")
		}
		stdin = stdin || f.path == Stdin
		size, regular, err := checkSource(f)
		if err != nil {
			return 0, err
		}
		known = known && regular
		total += size
	}
	if !known {
		return 0, nil
	}
	return total, nil
}

// checkSource finds out whether a file can be opened. It does not open pipes:
// that may block, and closing them again would end them.
func checkSource(file entry) (size int64, regular bool, err error) {
	switch {
	case file.path == Stdin:
		return 0, false, nil
	case object.Is(file.path):
		return file.size, true, nil // as it was found
	}
	info, err := os.Stat(file.path)
	switch {
	case err != nil:
		return 0, false, err
	case !info.Mode().IsRegular():
		return 0, false, nil
	}
	f, err := os.Open(file.path)
	if err != nil {
		return 0, false, err
	}
	return info.Size(), true, f.Close()
}

// source is an open source. Its Read gives the bytes as stored, counted and
// hashed; text gives them decompressed.
type source struct {
	name    string
	file    io.Reader
	closers []func() error
	read    *atomic.Int64 // of the whole corpus
	bytes   int64
	size    int64 // of a file when it was opened; 0 where it does not say
	hash    hash.Hash
	text    io.Reader
}

func (s *shelf) openRaw(path string, stdin io.Reader, read *atomic.Int64) (*source, error) {
	src := &source{name: strings.ToValidUTF8(path, "\uFFFD"), file: stdin, read: read, hash: sha256.New()}
	if path == Stdin {
		return src, nil
	}
	f, size, err := s.open(path)
	if err != nil {
		return nil, err
	}
	src.file, src.size, src.closers = f, size, append(src.closers, f.Close)
	return src, nil
}

func (s *shelf) openSource(path string, stdin io.Reader, read *atomic.Int64) (*source, error) {
	src, err := s.openRaw(path, stdin, read)
	if err != nil {
		return nil, err
	}
	if err := src.decompress(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), src.close())
	}
	return src, nil
}

// Read reads bytes as stored.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.file.Read(p)
	s.hash.Write(p[:n])
	s.bytes += int64(n)
	s.read.Add(int64(n))
	return n, err
}

// finish reads what is left, closes the source and says what it was.
func (s *source) finish() (Source, error) {
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, s, make([]byte, 64<<10)); err != nil {
		return Source{}, errors.Join(fmt.Errorf("read %s: %w", s.name, err), s.close())
	}
	if s.size != 0 && s.bytes != s.size {
		err := fmt.Errorf("read %s: it changed meanwhile: it had %d bytes when it was opened, and %d were read", s.name, s.size, s.bytes)
		return Source{}, errors.Join(err, s.close())
	}
	return Source{Name: s.name, Bytes: s.bytes, SHA256: hex.EncodeToString(s.hash.Sum(nil))}, s.close()
}

func (s *source) close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
