package dataset

import (
	"errors"
	"fmt"
	"io/fs"
)

// cancelledText is what the mark of a cancelled dataset says.
const cancelledText = "This job was cancelled. The parts that are here are whole, the dataset is not.\n"

// Cancel marks the dataset as one that will not be finished. Its parts stay:
// removing them is for people to do.
func (d *Dir) Cancel() error {
	if err := d.writeBytes(cancelledName, []byte(cancelledText)); err != nil {
		return fmt.Errorf("mark job %s as cancelled: %w", d.job, err)
	}
	return nil
}

// revive removes the mark: somebody drove the cancelled job again, to its end.
func (d *Dir) revive() error {
	err := d.store.remove(d.name(cancelledName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, d.store.sync(folderOf(d.job)))
}
