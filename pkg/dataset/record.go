package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// recordsName is the folder, below the output, of the records of its jobs that have
// not ended: one file each, by the job's id. What is in them is for others to know.
const recordsName = ".jobs"

// KeepRecord makes the record of a job durable, in the place of an earlier one.
func KeepRecord(output, job string, record []byte) error {
	err := puzzle.CheckJob(job)
	if err == nil {
		err = keepRecord(output, job, record)
	}
	if err != nil {
		return fmt.Errorf("keep the record of job %s: %w", job, err)
	}
	return nil
}

func keepRecord(output, job string, record []byte) error {
	s, err := openStore(output)
	if err != nil {
		return err
	}
	name := recordsName + "/" + job
	if there, err := fs.ReadFile(s, name); err == nil && bytes.Equal(there, record) {
		return nil
	}
	temp, err := s.create(job + ".record.*.tmp")
	if err != nil {
		return err
	}
	defer s.discard(temp)
	_, err = temp.Write(record)
	if err := errors.Join(err, temp.Sync()); err != nil {
		return err
	}
	if err := s.replace(temp, name); err != nil {
		return err
	}
	return s.sync(recordsName, ".")
}

// DropRecord removes the record of a job, if there is one.
func DropRecord(output, job string) error {
	err := puzzle.CheckJob(job)
	if err == nil {
		err = dropRecord(output, job)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("drop the record of job %s: %w", job, err)
	}
	return nil
}

func dropRecord(output, job string) error {
	s, err := openStore(output)
	if err != nil {
		return err
	}
	if err := s.remove(recordsName + "/" + job); err != nil {
		return err
	}
	return s.sync(recordsName)
}

// Records returns the records that are kept, by their jobs.
func Records(output string) (map[string][]byte, error) {
	records, err := readRecords(output)
	if err != nil {
		return nil, fmt.Errorf("read the records of jobs: %w", err)
	}
	return records, nil
}

func readRecords(output string) (map[string][]byte, error) {
	s, err := openStore(output)
	if err != nil {
		return nil, err
	}
	entries, err := list(s, recordsName)
	if err != nil {
		return nil, err
	}
	records := map[string][]byte{}
	for _, e := range entries {
		if puzzle.CheckJob(e.Name()) != nil {
			continue // not ours
		}
		data, err := fs.ReadFile(s, recordsName+"/"+e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // another aggregator has just ended the job
		}
		if err != nil {
			return nil, err
		}
		records[e.Name()] = data
	}
	return records, nil
}
