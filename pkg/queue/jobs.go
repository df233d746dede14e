package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// ledgerSuffix makes the key of a job's ledger from that of the job, which is
// its id. The dot matters: "*" as a pattern of keys stands for jobs only.
const ledgerSuffix = ".ledger"

// How a bucket is kept in a stream, by the specification of NATS (ADR-8).
const (
	bucketStream    = "KV_" + jobsBucket
	keyPrefix       = "$KV." + jobsBucket + "."
	operationHeader = "KV-Operation" // only on a deletion
)

// CreateJob stores the record of a new job. If the job is there already and asks
// for the same, it returns the record as it is; a job of that id with another
// spec is ErrConflict.
func (c *Conn) CreateJob(ctx context.Context, job *wire.Job) (*wire.Job, error) {
	data, err := wire.AppendJob(nil, job)
	if err != nil {
		return nil, fmt.Errorf("create job: %w", err)
	}
	kv, err := c.jobs(ctx)
	if err != nil {
		return nil, err
	}
	err = c.do(ctx, func(ctx context.Context) error {
		_, err := kv.Create(ctx, job.ID, data)
		return err
	})
	if err == nil {
		return job, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return nil, fmt.Errorf("create job %s: %w", job.ID, err)
	}
	there, err := c.Job(ctx, job.ID)
	if err != nil {
		return nil, err
	}
	if !sameSpec(there, job) {
		return nil, fmt.Errorf("create job %s: %w: a job of that id asks for something else", job.ID, ErrConflict)
	}
	return there, nil
}

// BringBackJob stores the records of a job of which the broker has lost everything:
// first the ledger, which says whose the job is, so that nobody else takes it. It is
// ErrConflict where there are records, and also where somebody has deleted them: the
// broker then remembers that.
func (c *Conn) BringBackJob(ctx context.Context, job *wire.Job, ledger *wire.Ledger) error {
	if err := c.bringBackJob(ctx, job, ledger); err != nil {
		return fmt.Errorf("bring back job %s: %w", job.ID, err)
	}
	return nil
}

func (c *Conn) bringBackJob(ctx context.Context, job *wire.Job, ledger *wire.Ledger) error {
	jobData, err := wire.AppendJob(nil, job)
	if err != nil {
		return err
	}
	ledgerData, err := wire.AppendLedger(nil, ledger)
	if err != nil {
		return err
	}
	switch _, err := c.Job(ctx, job.ID); {
	case err == nil:
		return fmt.Errorf("%w: there is one", ErrConflict)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	if err := c.bringBack(ctx, job.ID+ledgerSuffix, ledgerData); errors.Is(err, ErrConflict) {
		// Another of the same output may have been quicker, or died before the rest.
		if there, lookUp := c.Ledger(ctx, job.ID); lookUp != nil || there.Output != ledger.Output {
			return err
		}
	} else if err != nil {
		return err
	}
	return c.bringBack(ctx, job.ID, jobData)
}

// bringBack stores a record under a key that there never was.
func (c *Conn) bringBack(ctx context.Context, key string, data []byte) error {
	kv, err := c.jobs(ctx)
	if err != nil {
		return err
	}
	err = c.do(ctx, func(ctx context.Context) error {
		_, err := kv.Update(ctx, key, data, 0)
		return err
	})
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return fmt.Errorf("%w: there is, or was, one", ErrConflict)
	}
	return err
}

func sameSpec(a, b *wire.Job) bool {
	return sameJob(&wire.Job{ID: a.ID, Spec: a.Spec}, &wire.Job{ID: b.ID, Spec: b.Spec})
}

// sameJob compares what is stored, which is the same for equal values.
func sameJob(a, b *wire.Job) bool {
	x, errX := wire.AppendJob(nil, a)
	y, errY := wire.AppendJob(nil, b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// Began returns when the broker began to keep records, and how long ago that was by
// its own clock. A broker that has lost its store begins anew, when somebody sets it
// up, and until then has ErrNotFound.
func (c *Conn) Began(ctx context.Context) (at time.Time, ago time.Duration, err error) {
	err = c.do(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, bucketStream)
		if err != nil {
			return err
		}
		info := s.CachedInfo()
		at, ago = info.Created, info.TimeStamp.Sub(info.Created)
		return nil
	})
	if err != nil {
		return at, ago, fmt.Errorf("look up bucket %s: %w", jobsBucket, err)
	}
	return at, ago, nil
}

// Job returns the record of a job, or ErrNotFound.
func (c *Conn) Job(ctx context.Context, id string) (*wire.Job, error) {
	job, _, err := c.job(ctx, id)
	return job, err
}

func (c *Conn) job(ctx context.Context, id string) (*wire.Job, uint64, error) {
	entry, err := c.entry(ctx, id, "")
	if err != nil {
		return nil, 0, fmt.Errorf("read job %s: %w", id, err)
	}
	job, err := parseJob(entry.Key(), entry.Value())
	if err != nil {
		return nil, 0, fmt.Errorf("read job %s: %w", id, err)
	}
	return job, entry.Revision(), nil
}

// parseJob reads the record under a key.
func parseJob(key string, data []byte) (*wire.Job, error) {
	job, err := wire.ParseJob(data)
	if err == nil && job.ID != key {
		err = fmt.Errorf("job %s under the key %s", job.ID, key)
	}
	return job, err
}

// entry reads one of a job's records.
func (c *Conn) entry(ctx context.Context, id, suffix string) (entry jetstream.KeyValueEntry, err error) {
	if err := puzzle.CheckJob(id); err != nil {
		return nil, err
	}
	kv, err := c.jobs(ctx)
	if err != nil {
		return nil, err
	}
	err = c.do(ctx, func(ctx context.Context) (err error) {
		entry, err = kv.Get(ctx, id+suffix)
		return err
	})
	return entry, err
}

// NextEpoch counts a new drive of a job's corpus and returns its number. The
// origin, unless it is nil, is that of the corpus from now on.
func (c *Conn) NextEpoch(ctx context.Context, id string, origin *wire.Origin) (uint32, error) {
	job, err := c.change(ctx, id, func(job *wire.Job) error {
		job.Epoch++
		if origin != nil {
			job.Origin = origin
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("begin a drive of job %s: %w", id, err)
	}
	return job.Epoch, nil
}

// RetryJob counts a new drive of a job that is to make parts again because of
// rejects for which that may help.
func (c *Conn) RetryJob(ctx context.Context, id string) (*wire.Job, error) {
	job, err := c.change(ctx, id, func(job *wire.Job) error {
		job.Epoch++
		job.Retry = job.Epoch
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("retry job %s: %w", id, err)
	}
	return job, nil
}

// TouchJob writes the record of a job again as it is, so that its time tells that
// somebody drives the job.
func (c *Conn) TouchJob(ctx context.Context, id string) error {
	if _, err := c.change(ctx, id, func(*wire.Job) error { return nil }); err != nil {
		return fmt.Errorf("touch job %s: %w", id, err)
	}
	return nil
}

// SealJob adds the totals to the record of a job. Totals are final: to seal
// with the same again is harmless, with others it is ErrConflict.
func (c *Conn) SealJob(ctx context.Context, id string, totals *wire.Totals) error {
	_, err := c.change(ctx, id, func(job *wire.Job) error {
		sealed := *job
		sealed.Totals = totals
		if job.Totals != nil && !sameJob(job, &sealed) {
			return fmt.Errorf("%w: its corpus had %d records in %d chunks, now %d in %d, or other content",
				ErrConflict, job.Totals.Records, job.Totals.Chunks, totals.Records, totals.Chunks)
		}
		job.Totals = totals
		return nil
	})
	if err != nil {
		return fmt.Errorf("seal job %s: %w", id, err)
	}
	return nil
}

// change replaces the record of a job, unless somebody else did meanwhile: then
// it begins again with theirs.
func (c *Conn) change(ctx context.Context, id string, change func(*wire.Job) error) (*wire.Job, error) {
	kv, err := c.jobs(ctx)
	if err != nil {
		return nil, err
	}
	for {
		job, revision, err := c.job(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := change(job); err != nil {
			return nil, err
		}
		data, err := wire.AppendJob(nil, job)
		if err != nil {
			return nil, err
		}
		err = c.do(ctx, func(ctx context.Context) error {
			_, err := kv.Update(ctx, id, data, revision)
			return err
		})
		if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			continue
		}
		return job, err
	}
}

// Ledger returns the ledger of a job, or ErrNotFound.
func (c *Conn) Ledger(ctx context.Context, id string) (*wire.Ledger, error) {
	entry, err := c.entry(ctx, id, ledgerSuffix)
	if err != nil {
		return nil, fmt.Errorf("read ledger of job %s: %w", id, err)
	}
	ledger, err := wire.ParseLedger(entry.Value())
	if err != nil {
		return nil, fmt.Errorf("read ledger of job %s: %w", id, err)
	}
	return ledger, nil
}

// WatchLedger returns the ledger of a job, then each change of it, without end.
// Changes that follow each other closely may come as one. It ends with an error,
// that of ctx included.
func (c *Conn) WatchLedger(ctx context.Context, id string) iter.Seq2[*wire.Ledger, error] {
	return func(yield func(*wire.Ledger, error) bool) {
		for m, err := range c.watch(ctx, id+ledgerSuffix) {
			var ledger *wire.Ledger
			if err == nil {
				ledger, err = wire.ParseLedger(m.Data())
			}
			if err != nil {
				yield(nil, fmt.Errorf("watch ledger of job %s: %w", id, err))
				return
			}
			if !yield(ledger, nil) {
				return
			}
		}
	}
}

// watch returns the records whose keys match, then their changes but not their
// deletions. It follows the stream below the bucket, because the bucket's own
// watcher takes up to half a minute to notice that the broker was restarted.
func (c *Conn) watch(ctx context.Context, keys string) iter.Seq2[logged, error] {
	return func(yield func(logged, error) bool) {
		for m, err := range c.follow(ctx, bucketStream, keyPrefix+keys) {
			if err == nil && m.Headers().Get(operationHeader) != "" {
				continue
			}
			if !yield(m, err) {
				return
			}
		}
	}
}
