package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/flipmill/flipmill/pkg/object"
)

// shelf is where the files of a corpus are: on the disk and, in a bucket, as objects.
type shelf struct {
	ctx     context.Context // of the reading of objects
	objects *object.Client  // nil until there is one to be read
}

func (s *shelf) client() (*object.Client, error) {
	if s.objects == nil {
		var err error
		if s.objects, err = object.New(s.ctx); err != nil {
			return nil, err
		}
	}
	return s.objects, nil
}

// file is what is opened to be read.
type file interface {
	io.Reader
	io.ReaderAt
	io.Closer
}

// open opens a file or an object, with its size, 0 where it does not say.
func (s *shelf) open(name string) (file, int64, error) {
	if object.Is(name) {
		client, err := s.client()
		if err != nil {
			return nil, 0, err
		}
		f, err := client.Open(name)
		if err != nil {
			return nil, 0, err
		}
		return f, f.Size(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, 0, nil
	}
	return f, info.Size(), nil
}

// objectsOf returns the objects that a URL stands for: the one that is called so,
// or else those below it or, of a pattern, those that it matches and those below.
func (s *shelf) objectsOf(url string) ([]entry, error) {
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(url, object.Scheme), "/")
	want := strings.TrimSuffix(key, "/")
	pattern := isPattern(want)
	if _, err := path.Match(want, ""); pattern && err != nil {
		return nil, fmt.Errorf("pattern %s: %w", url, err)
	}
	if key != "" && key == want {
		f, err := client.Open(url)
		if err == nil {
			return []entry{{url, f.Size()}}, f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	type match struct {
		top string // what the URL matches: the key, or a folder of it
		entry
	}
	var matches []match
	root := object.Scheme + bucket + "/"
	prefix := want
	if pattern {
		prefix = want[:strings.IndexAny(want, patternChars)]
	}
	for e, err := range client.List(root + prefix) {
		if err != nil {
			return nil, err
		}
		if top, ok := matchKey(want, strings.TrimPrefix(e.URL, root), pattern); ok {
			matches = append(matches, match{top, entry{e.URL, e.Size}})
		}
	}
	if len(matches) == 0 {
		return nil, &fs.PathError{Op: "list", Path: url, Err: fmt.Errorf("%w: no object is called so, matches it or is below it", fs.ErrNotExist)}
	}
	slices.SortFunc(matches, func(a, b match) int { return cmp.Or(cmp.Compare(a.top, b.top), cmp.Compare(a.path, b.path)) })
	var files []entry
	for _, m := range matches {
		files = append(files, m.entry)
	}
	return files, nil
}

// matchKey finds the part of a key, up to its end or to one of its slashes, that
// is called as wanted. What is behind it must not be hidden, nor must the key be
// that of a folder.
func matchKey(want, key string, pattern bool) (top string, ok bool) {
	if strings.HasSuffix(key, "/") {
		return "", false
	}
	names := strings.Split(key, "/")
	depth := strings.Count(want, "/") + 1
	if want == "" {
		depth = 0
	}
	if depth > len(names) || slices.ContainsFunc(names[depth:], hidden) {
		return "", false
	}
	top = strings.Join(names[:depth], "/")
	if pattern {
		ok, _ = path.Match(want, top)
		return top, ok
	}
	return top, top == want
}
