package dataset

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// A process holds an advisory lock on each file that it is writing, until the
// file has its name or the process ends, however it does. So what is left of
// dead processes can be told from what living ones write, whoever they are and
// without a clock.

// hold locks a file that was just created. It reports whether the file is still
// there: before it was locked, it looked as if nobody wrote it. A file system
// that knows no locks is no obstacle; what is left there stays.
func hold(f *os.File) (there bool) {
	if errors.Is(flock(f), syscall.EWOULDBLOCK) {
		return false // who removes it has it
	}
	_, err := os.Stat(f.Name())
	return !errors.Is(err, fs.ErrNotExist)
}

// removeLeft removes a file unless a living process holds it.
func removeLeft(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody else was quicker
	}
	if err != nil {
		return err
	}
	defer f.Close() // and with it the lock
	if flock(f) != nil {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func flock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
