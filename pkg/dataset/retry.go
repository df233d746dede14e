package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/tally"
)

// A finished dataset is never changed. To make some of its parts again, another
// dataset of the same job is made beside it, below .tmp: the other parts are links
// to the same files. When that one is finished, the two folders change places in
// one step, so that readers see all of the one or all of the other. In between, a
// process may die anywhere: the mark, written once the new dataset is finished,
// has the checksum of its manifest, and so tells which of the two is in place.
// Compact does the same; its mark also says which dataset it was made from, since
// a retry may have replaced that meanwhile.

// What is made beside a dataset.
const (
	besideRetry   = "retry"
	besideCompact = "compact"
)

func (d *Dir) besideDir(kind string) string   { return filepath.Join(d.tempDir(), d.job+"."+kind) }
func (d *Dir) replacedDir(kind string) string { return d.besideDir(kind) + ".replaced" }
func (d *Dir) markPath(kind string) string    { return filepath.Join(d.besideDir(kind), "finished") }

// Steps of Replace at which a process may die.
const (
	stepMarked   = "marked"
	stepReplaced = "replaced"
	stepPutAway  = "put away"
)

// replaceable reports whether another dataset can take the place of d in one step.
// In a bucket none can.
func (d *Dir) replaceable() bool { return !object.Is(d.output) }

// Retry returns the dataset beside d in which its parts are made again that have
// rejects for which that may help; it has all others. What an earlier process has
// begun goes on. In a bucket it is nil.
func (d *Dir) Retry() (*Dir, error) {
	if !d.replaceable() {
		return nil, nil
	}
	again, err := d.retry()
	if err != nil {
		return nil, fmt.Errorf("retry job %s: %w", d.job, err)
	}
	return again, nil
}

func (d *Dir) retry() (*Dir, error) {
	if err := d.settle(besideRetry); err != nil {
		return nil, err
	}
	again, err := Open(d.besideDir(besideRetry), d.job, d.spec)
	if err != nil {
		return nil, err
	}
	for _, table := range []string{tableRejects, tableResults} {
		if err := os.MkdirAll(again.path(table), 0o777); err != nil {
			return nil, err
		}
	}
	footers, err := d.Committed()
	if err != nil {
		return nil, err
	}
	for _, f := range footers {
		n, err := retryable(f)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			continue
		}
		for _, table := range []string{tableRejects, tableResults} { // the part is there with the latter
			name := table + "/" + partName(f.Part)
			err := os.Link(d.path(name), again.path(name))
			if table == tableRejects && errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
				continue // it has none, or was linked before
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return again, errors.Join(syncDir(again.path(tableRejects)), syncDir(again.path(tableResults)))
}

// retryable counts a part's rejects for which a retry may help.
func retryable(f Footer) (records int64, err error) {
	counts, err := tally.Parse(f.Tally)
	if err != nil {
		return 0, fmt.Errorf("part %d: %w", f.Part, err)
	}
	for _, r := range counts.Rejects() {
		if r.Reason.Retryable() {
			records += r.Records
		}
	}
	return records, nil
}

// Retryable counts the rejects of the finished dataset for which a retry may help.
func (d *Dir) Retryable(m *Manifest) (records int64) {
	if !d.replaceable() {
		return 0
	}
	for reason, n := range m.Counts.Reasons {
		if reason.Retryable() {
			records += n
		}
	}
	return records
}

// Retrying returns what Retry has begun, nil if that is nothing.
func (d *Dir) Retrying() (*Dir, error) {
	if !d.replaceable() {
		return nil, nil
	}
	err := d.settle(besideRetry)
	if err == nil {
		_, err = os.Stat(d.besideDir(besideRetry))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("retry job %s: %w", d.job, err)
	}
	return Open(d.besideDir(besideRetry), d.job, d.spec)
}

// Abandon removes what Retry has begun.
func (d *Dir) Abandon() error {
	err := d.settle(besideRetry) // first: between two renames what is in place is there as well
	if err == nil {
		err = os.RemoveAll(d.besideDir(besideRetry))
	}
	if err != nil {
		return fmt.Errorf("abandon the retry of job %s: %w", d.job, err)
	}
	return nil
}

// Replace puts the dataset that Retry returned, and that is finished now, into the
// place of d, which is removed.
func (d *Dir) Replace(again *Dir) error {
	sum, _, err := sumFile(again.store, again.name(manifestName))
	if err == nil {
		err = d.mark(besideRetry, anyDataset, sum)
	}
	if err == nil {
		err = d.settle(besideRetry)
	}
	if err != nil {
		return fmt.Errorf("replace the dataset of job %s: %w", d.job, err)
	}
	return nil
}

// anyDataset stands in a mark for whatever is in place.
const anyDataset = "any"

// mark notes that the dataset beside d is finished: to is the checksum of its
// manifest, from that of the one that it is to replace. Half a mark is none.
func (d *Dir) mark(kind, from, to string) error {
	f, err := os.Create(d.markPath(kind))
	if err != nil {
		return err
	}
	_, err = f.WriteString(from + " " + to)
	if err := errors.Join(err, f.Sync(), f.Close(), syncDir(d.besideDir(kind))); err != nil {
		return err
	}
	d.reach(stepMarked, manifestName)
	return nil
}

// settle does the rest of a replacement, whoever began it. Several processes may
// try.
func (d *Dir) settle(kind string) error {
	if err := os.RemoveAll(d.replacedDir(kind)); err != nil {
		return err
	}
	lock, err := os.Open(d.tempDir()) // of all replacements below it, so that one sees what another has done
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close() // and with it the lock
	if _, err := os.Stat(d.markPath(kind)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	mark, err := os.ReadFile(d.markPath(kind))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process was quicker
	}
	if err != nil {
		return err
	}
	from, to, _ := strings.Cut(string(mark), " ")
	if len(to) != hex.EncodedLen(sha256.Size) {
		return nil // whoever wrote it has not come to its end, and has to mark it again
	}
	sum, _, err := sumFile(os.DirFS(d.Path()), manifestName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // it does not tell which of the two is in place
	}
	if err != nil || sum != to && (sum == from || from == anyDataset) {
		if err := d.exchange(kind); err != nil {
			return err
		}
	}
	d.reach(stepReplaced, manifestName)
	if err := os.Rename(d.besideDir(kind), d.replacedDir(kind)); err != nil {
		return err
	}
	if err := syncDir(d.tempDir()); err != nil {
		return err
	}
	d.reach(stepPutAway, manifestName)
	return os.RemoveAll(d.replacedDir(kind))
}

// exchange lets d and the dataset beside it change places, for good.
func (d *Dir) exchange(kind string) error {
	other := filepath.Join(d.besideDir(kind), filepath.Base(d.Path()))
	err := exchange(other, d.Path())
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrNotExist) {
		// A file system, or a system, that cannot do it in one step. Readers miss the
		// dataset for a moment; who died in it has left it here.
		old := filepath.Join(d.besideDir(kind), "old")
		if err := os.Rename(d.Path(), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		err = os.Rename(other, d.Path())
	}
	return errors.Join(err, syncDir(d.output), syncDir(d.besideDir(kind)))
}
