package dataset

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/flipmill/flipmill/pkg/object"
)

// below returns the files of a dataset's folder, which is on the disk or in a bucket.
// All that reads finished datasets reads these.
func below(path string) (fs.FS, error) {
	if !object.Is(path) {
		return os.DirFS(path), nil
	}
	c, err := object.New(context.Background())
	if err != nil {
		return nil, err
	}
	return c.FS(path), nil
}

// inside returns the path of a folder's file.
func inside(path, name string) string {
	if object.Is(path) {
		return strings.TrimRight(path, "/") + "/" + name
	}
	return filepath.Join(path, name)
}

// file is an open file of a dataset.
type file interface {
	fs.File
	io.ReaderAt
}

func openFile(files fs.FS, name string) (file, int64, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	in, ok := f.(file)
	if err == nil && !ok {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is a folder")}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return in, info.Size(), nil
}
