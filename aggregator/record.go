package aggregator

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// A broker that loses its store loses with it what its jobs are: which corpus, where
// it is, with which options, and what it was in all. So the holder of a job keeps the
// job's record in the output until the job is done or cancelled, and every aggregator
// of the output puts back, when it begins, what the broker has no record of. It begins
// anew whenever the store has become another one. The parts say the rest.

// keepRecord keeps the record of a job as it is now, if that is news. Without it the
// job goes on as ever, so trouble is only told, and tried again with the next refresh.
func (a *aggregator) keepRecord(j *job) {
	if a.opts.Identity == "" {
		return
	}
	data, err := wire.AppendJob(nil, j.record)
	if err == nil {
		if bytes.Equal(data, j.kept) {
			return
		}
		err = dataset.KeepRecord(a.opts.Output, j.id, data)
	}
	switch {
	case err == nil:
		j.kept, j.forgetful = data, false
	case !j.forgetful:
		j.forgetful = true
		a.log.Warn("the job could not be brought back to a broker that loses its store", "job", j.id, "error", err)
	}
}

// dropRecord forgets a job that is about to end for good. Of what is left, where that
// is not possible, the worst is a job that ends once more.
func (a *aggregator) dropRecord(j *job) {
	if a.opts.Identity == "" {
		return
	}
	if err := dataset.DropRecord(a.opts.Output, j.id); err != nil {
		a.log.Warn("record of a job that ends is not removed", "job", j.id, "error", err)
	}
}

// bringBack puts back the records that the broker has lost.
func (a *aggregator) bringBack(ctx context.Context) error {
	if a.opts.Identity == "" {
		return nil
	}
	records, err := dataset.Records(a.opts.Output)
	if err != nil {
		a.log.Warn("the records of jobs cannot be read", "error", err)
		return nil
	}
	for id, data := range records {
		record, err := wire.ParseJob(data)
		if err == nil && record.ID != id {
			err = fmt.Errorf("it is of job %s", record.ID)
		}
		if err != nil {
			a.log.Warn("record put aside", "job", id, "error", err)
			continue
		}
		if err := a.bringBackJob(ctx, record); err != nil {
			return err
		}
	}
	return nil
}

// bringBackJob puts back a job with what is committed of it. So from the first a
// producer knows what not to publish, and the aggregators of other outputs whose the
// job is.
func (a *aggregator) bringBackJob(ctx context.Context, record *wire.Job) error {
	j, err := a.find(record, nil)
	if err != nil {
		a.log.Warn("job not put back: what is committed of it cannot be read", "job", record.ID, "error", err)
		return nil
	}
	ledger := *j.chunks.Ledger()
	ledger.Output = a.opts.Identity
	err = a.conn.BringBackJob(ctx, record, &ledger)
	if err == nil {
		a.log.Warn("job put back that the broker had lost", "job", record.ID, "drives", record.Epoch, "committed_parts", len(ledger.Parts))
	}
	if errors.Is(err, queue.ErrConflict) {
		return nil
	}
	return err
}
