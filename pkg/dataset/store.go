package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/flipmill/flipmill/pkg/object"
)

// store is where an output's files are. They are read and listed as any fs.FS; what
// else a commit needs is to give a finished file its name, for good, if no other file
// has it. Names are relative to the output, with slashes.
type store interface {
	fs.FS

	create(pattern string) (*os.File, error) // a temporary file, which readers do not see
	discard(temp *os.File)                   // closes and removes it
	put(temp *os.File, name string) error    // its content is there, whole, or not at all; fs.ErrExist if the name is taken
	replace(temp *os.File, name string) error
	sync(folders ...string) error // makes the names in them durable
	remove(name string) error
	clean(job string) error // removes what dead processes have left of a job
	probe() (free int64, err error)
}

// openStore returns the store of an output, which need not be there yet.
func openStore(output string) (store, error) {
	files, err := below(output)
	if err != nil {
		return nil, err
	}
	if !object.Is(output) {
		return &disk{files, output}, nil
	}
	client, err := object.New(context.Background())
	if err != nil {
		return nil, err
	}
	return &bucket{files, client, output}, nil
}

// Passes reports whether an error of an output is one that people or time can remove,
// with nothing lost: a part begins in a new file each time. Anything else is wrong with
// what is done there.
func Passes(err error) bool {
	return object.Passes(err) || slices.ContainsFunc([]error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, // no room
		syscall.EIO, syscall.EROFS, // a disk in trouble, or out of reach
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	}, func(target error) bool { return errors.Is(err, target) })
}

// disk is an output on a disk. Its temporary files are in a folder below it, of the
// same file system.
type disk struct {
	fs.FS
	folder string
}

func (d *disk) path(name string) string { return filepath.Join(d.folder, filepath.FromSlash(name)) }

func (d *disk) create(pattern string) (*os.File, error) {
	return createTemp(d.path(tempName), pattern)
}

// discard does not mind if the file has got its name: it is another then, and stays.
func (d *disk) discard(temp *os.File) {
	temp.Close()
	os.Remove(temp.Name())
}

// put links the file: a link fails where the name is taken, which no rename does.
func (d *disk) put(temp *os.File, name string) error {
	if err := d.prepare(temp, name); err != nil {
		return err
	}
	return os.Link(temp.Name(), d.path(name))
}

func (d *disk) replace(temp *os.File, name string) error {
	if err := d.prepare(temp, name); err != nil {
		return err
	}
	return os.Rename(temp.Name(), d.path(name))
}

// prepare makes the folder of a name, and a file that all may read.
func (d *disk) prepare(temp *os.File, name string) error {
	if err := os.MkdirAll(filepath.Dir(d.path(name)), 0o777); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	return temp.Chmod(0o644)
}

func (d *disk) sync(folders ...string) error {
	for _, folder := range folders {
		if err := syncDir(d.path(folder)); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) remove(name string) error { return os.Remove(d.path(name)) }

// clean spares what a living process is writing.
func (d *disk) clean(job string) error {
	left, err := filepath.Glob(filepath.Join(escape(d.path(tempName)), job+".*.tmp"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := removeLeft(path); err != nil {
			return err
		}
	}
	return nil
}

// bucket is an output in a bucket. What is written there is whole and durable when the
// server says so.
type bucket struct {
	fs.FS
	client *object.Client
	url    string
}

// create returns a file of this machine. It has no name any more, so that nothing of
// it is left when the process dies.
func (b *bucket) create(string) (*os.File, error) {
	temp, err := os.CreateTemp("", "flipmill.*.tmp")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(temp.Name()); err != nil {
		temp.Close()
		return nil, err
	}
	return temp, nil
}

func (b *bucket) discard(temp *os.File) { temp.Close() }

func (b *bucket) put(temp *os.File, name string) error {
	return b.client.Create(inside(b.url, name), temp)
}

func (b *bucket) replace(temp *os.File, name string) error {
	return b.client.Put(inside(b.url, name), temp)
}

func (b *bucket) sync(...string) error     { return nil }
func (b *bucket) remove(name string) error { return b.client.Remove(inside(b.url, name)) }
func (b *bucket) clean(string) error       { return nil }

// Path returns what people and other programs call the dataset of a job in an output:
// a folder, or the URL of one.
func Path(output, job string) string { return inside(output, folderOf(job)) }

// folderOf returns the folder of a job's dataset in its output.
func folderOf(job string) string { return "job=" + job }

// sumFile returns the SHA-256 of a store's file, in hex, and its size.
func sumFile(files fs.FS, name string) (sum string, size int64, err error) {
	f, err := files.Open(name)
	if err != nil {
		return "", 0, err
	}
	return sumOf(f)
}

// list returns what is in a folder, nothing where there is none.
func list(files fs.FS, folder string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(files, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// listParts returns the files of parts in the folder of a table.
func listParts(files fs.FS, folder string) ([]fs.DirEntry, error) {
	entries, err := list(files, folder)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		ok, _ := path.Match("part-*.parquet", e.Name())
		return !ok
	}), err
}

// escape makes a path a pattern that matches only itself.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
