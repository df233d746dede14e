package corpus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Expand returns the files that paths stand for, in the order in which they are
// read. A folder stands for all files in it and below, sorted by their paths
// byte by byte, without those whose name, or whose folder's, begins with a dot
// or an underscore. A pattern that names no file stands for what it matches,
// sorted. Names are as short as they can be: ./a is a.
func Expand(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		if path == Stdin {
			files = append(files, path)
			continue
		}
		matches := []string{filepath.Clean(path)}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[") {
			if matches, err = filepath.Glob(matches[0]); err != nil {
				return nil, fmt.Errorf("pattern %s: %w", path, err)
			}
			if len(matches) == 0 {
				return nil, fmt.Errorf("pattern %s matches no file", path)
			}
		}
		for _, match := range matches {
			below, err := filesOf(match)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
		}
	}
	return files, nil
}

// filesOf returns the files of a folder, or the path itself if it is none.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch hidden := name != path && strings.ContainsAny(d.Name()[:1], "._"); {
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
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no files in this folder", path)
	}
	slices.Sort(files)
	return files, err
}
