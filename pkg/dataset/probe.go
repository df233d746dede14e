package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Probe does below an output folder what a commit does, with a file of its own
// that it removes: write, sync, link under a name that nobody else can take, sync
// the folder. It returns the bytes that are free there.
func Probe(output string) (free int64, err error) {
	temp := filepath.Join(output, tempName)
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
