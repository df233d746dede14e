package corpus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flipmill/flipmill/pkg/object"
)

// Expand returns the files that paths stand for, in the order in which they are
// read. A folder stands for all files in it and below, sorted by their paths
// byte by byte, without those whose name, or whose folder's, begins with a dot,
// an underscore, or job=, as datasets do. A pattern that names no file stands for
// what it matches, sorted. Names are as short as they can be: ./a is a. Objects
// are files whose keys are paths: s3://BUCKET/PATH.
func Expand(ctx context.Context, paths []string) ([]string, error) {
	s := shelf{ctx: ctx}
	found, err := s.expand(paths)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range found {
		names = append(names, f.path)
	}
	return names, nil
}

// entry is a file that was found.
type entry struct {
	path string
	size int64 // of an object; files are asked when they are to be read
}

func (s *shelf) expand(paths []string) ([]entry, error) {
	var files []entry
	for _, path := range paths {
		below, err := s.expandOne(path)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

func (s *shelf) expandOne(path string) ([]entry, error) {
	switch {
	case path == "": // which would be the working folder with all that is in it
		return nil, errors.New("a corpus without a name: want a file, a folder, a pattern, or - for standard input")
	case path == Stdin:
		return []entry{{path: path}}, nil
	case object.Is(path):
		return s.objectsOf(path)
	}
	matches := []string{filepath.Clean(path)}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && isPattern(path) {
		if matches, err = filepath.Glob(matches[0]); err != nil {
			return nil, fmt.Errorf("pattern %s: %w", path, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("pattern %s matches no file", path)
		}
	}
	var files []entry
	for _, match := range matches {
		below, err := filesOf(match)
		if err != nil {
			return nil, err
		}
		for _, name := range below {
			files = append(files, entry{path: name})
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no files in this folder, besides datasets and what begins with . or _", path)
	}
	return files, nil
}

func isPattern(path string) bool { return strings.ContainsAny(path, patternChars) }

const patternChars = "*?["

// hidden reports whether the name of a file or folder keeps it out of what a
// folder stands for. Datasets are kept out because they may be made in the folder
// of their own corpus, which must be the same when the run is finished later.
func hidden(name string) bool {
	return strings.ContainsAny(name[:min(1, len(name))], "._") || strings.HasPrefix(name, "job=")
}

// misplaced says what a name probably is that is no file's.
func misplaced(path string) string {
	switch {
	case path == "true" || path == "false":
		return "; a flag takes such a value behind =, as in --strict=" + path
	case strings.HasPrefix(path, "http:/") || strings.HasPrefix(path, "https:/"):
		return "; what curl or another program reads from there can be piped into -, which is standard input"
	case strings.HasPrefix(path, "s3:"):
		return "; want s3://BUCKET/KEY"
	case strings.HasPrefix(path, "-"):
		return "; flags stand before --"
	}
	return ""
}

// filesOf returns the files of a folder, if any, or the path itself if it is none.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("corpus %s: %w%s", path, cause.Err, misplaced(path))
	}
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch hidden := name != path && hidden(d.Name()); {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir() || hidden:
			return nil
		}
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() { // a link counts as what it leads to
			return err
		}
		files = append(files, name)
		return nil
	})
	slices.Sort(files)
	return files, err
}
