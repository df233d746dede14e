package dataset

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Probe does below an output what a commit does, with a file of its own that it
// removes: write, sync, give it a name that nobody else can take then. It returns the
// bytes that are free there, -1 for a bucket, which does not say.
func Probe(output string) (free int64, err error) {
	s, err := openStore(output)
	if err != nil {
		return 0, err
	}
	return s.probe()
}

func (d *disk) probe() (free int64, err error) {
	output, temp := d.folder, d.path(tempName)
	_, missing := os.Stat(output)
	if err := os.MkdirAll(temp, 0o777); err != nil {
		return 0, fmt.Errorf("create folder: %w", err)
	}
	defer func() {
		_ = os.Remove(temp) // if nobody else has something in it
		if errors.Is(missing, fs.ErrNotExist) {
			_ = os.Remove(output)
		}
	}()
	if err := probeCommit(temp, output); err != nil {
		return 0, err
	}
	var stat syscall.Statfs_t
	if err := syscall.Statfs(output, &stat); err != nil {
		return 0, fmt.Errorf("look for free space: %w", err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}

func probeCommit(temp, output string) error {
	f, err := os.CreateTemp(temp, "probe.*.tmp")
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString("flipmill\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write and sync a file: %w", err)
	}
	name := filepath.Join(output, "."+filepath.Base(f.Name()))
	if err := os.Link(f.Name(), name); err != nil {
		return fmt.Errorf("link a file: %w", err)
	}
	defer os.Remove(name)
	if err := os.Link(f.Name(), name); !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link a file to a name that is taken: want a refusal, got %v", err)
	}
	if err := syncDir(output); err != nil {
		return fmt.Errorf("sync the folder: %w", err)
	}
	return nil
}

func (b *bucket) probe() (free int64, err error) {
	name := ".probe." + rand.Text()
	defer func() { err = errors.Join(err, b.remove(name)) }()
	if err := b.putText(name, "flipmill\n"); err != nil && !errors.Is(err, fs.ErrExist) { // then its answer was lost
		return 0, err
	}
	return -1, b.prove(name, "flipmill\n")
}

// prove reports a server that would put an object into the place of the one there is,
// which is of the given text, though it must not. There are servers that do not know
// what they are asked then.
func (b *bucket) prove(name, text string) error {
	err := b.putText(name, text)
	switch {
	case err == nil:
		return errors.New("put an object where there is one: want a refusal, but the server replaces it: it knows no If-None-Match, and cannot keep datasets from being mixed")
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return err
}

// putText puts an object of the given text.
func (b *bucket) putText(name, text string) error {
	temp, err := b.create("")
	if err != nil {
		return err
	}
	defer b.discard(temp)
	if _, err := temp.WriteString(text); err != nil {
		return err
	}
	return b.put(temp, name)
}
