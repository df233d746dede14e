package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// recordsName is the folder, below the output, of the records of its jobs that have
// not ended: one file each, by the job's id. What is in them is for others to know.
const recordsName = ".jobs"

// KeepRecord makes the record of a job durable, in the place of an earlier one.
func KeepRecord(output, job string, record []byte) error {
	err := puzzle.CheckJob(job)
	if err == nil {
		err = keepRecord(filepath.Join(output, recordsName), filepath.Join(output, tempName), job, record)
	}
	if err != nil {
		return fmt.Errorf("keep the record of job %s: %w", job, err)
	}
	return nil
}

func keepRecord(folder, tempDir, job string, record []byte) error {
	path := filepath.Join(folder, job)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, record) {
		return nil
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	temp, err := createTemp(tempDir, job+".record.*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // unless it has its name
	defer temp.Close()
	_, err = temp.Write(record)
	if err := errors.Join(err, temp.Chmod(0o644), temp.Sync()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return errors.Join(syncDir(folder), syncDir(filepath.Dir(folder)))
}

// DropRecord removes the record of a job, if there is one.
func DropRecord(output, job string) error {
	err := puzzle.CheckJob(job)
	if err == nil {
		err = os.Remove(filepath.Join(output, recordsName, job))
	}
	if err == nil {
		err = syncDir(filepath.Join(output, recordsName))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop the record of job %s: %w", job, err)
	}
	return nil
}

// Records returns the records that are kept, by their jobs.
func Records(output string) (map[string][]byte, error) {
	folder := filepath.Join(output, recordsName)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the records of jobs: %w", err)
	}
	records := map[string][]byte{}
	for _, e := range entries {
		if puzzle.CheckJob(e.Name()) != nil {
			continue // not ours
		}
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another aggregator has just ended the job
		}
		if err != nil {
			return nil, fmt.Errorf("read the records of jobs: %w", err)
		}
		records[e.Name()] = data
	}
	return records, nil
}
