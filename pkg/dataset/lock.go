package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Lock makes this process the only one that holds an output folder, until unlock
// is called or the process ends, however it does. It is an advisory lock for
// those who serve all jobs of a folder. It keeps their work from being done
// twice; that datasets stay right does not depend on it.
func Lock(output string) (unlock func() error, err error) {
	folder := filepath.Join(output, tempName)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("lock %s: %w", output, err)
	}
	f, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", output, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: another process holds the folder", output)
		}
		return nil, fmt.Errorf("lock %s: %w", output, err)
	}
	return f.Close, nil
}
