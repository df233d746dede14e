package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// A job's ledger says which aggregator holds the job, and it is written every few
// seconds: the ledger is the lease. Whoever writes it says what he has read, and
// is refused where that is not the latest. So no two write in turns without
// knowing of each other, whatever their clocks say and however long one of them
// was away.

// PutLedger replaces the ledger of a job that has a revision, 0 for none, and
// returns the revision that it has now. It is ErrConflict where somebody else has
// written meanwhile.
func (c *Conn) PutLedger(ctx context.Context, id string, ledger *wire.Ledger, revision uint64) (uint64, error) {
	data, err := wire.AppendLedger(nil, ledger)
	if err == nil {
		err = puzzle.CheckJob(id)
	}
	if err == nil {
		revision, err = c.putLedger(ctx, id+ledgerSuffix, data, revision)
	}
	if err != nil {
		return 0, fmt.Errorf("write ledger of job %s: %w", id, err)
	}
	return revision, nil
}

func (c *Conn) putLedger(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	kv, err := c.jobs(ctx)
	if err != nil {
		return 0, err
	}
	var now uint64
	err = c.do(ctx, func(ctx context.Context) (err error) {
		if revision == 0 {
			now, err = kv.Create(ctx, key, data)
		} else {
			now, err = kv.Update(ctx, key, data, revision)
		}
		return err
	})
	if !errors.Is(err, jetstream.ErrKeyExists) && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return now, err
	}
	// It may have been our own first attempt, whose answer was lost.
	var entry jetstream.KeyValueEntry
	lookUp := c.do(ctx, func(ctx context.Context) (err error) {
		entry, err = kv.Get(ctx, key)
		return err
	})
	if lookUp == nil && bytes.Equal(entry.Value(), data) {
		return entry.Revision(), nil
	}
	return 0, fmt.Errorf("%w: somebody else has written it", ErrConflict)
}

// WatchStandings returns where each job stands, then again where one stands after
// each change, without end. Changes of troubles are left out, and those that
// follow each other closely may come as one. It ends with an error, that of ctx
// included.
func (c *Conn) WatchStandings(ctx context.Context) iter.Seq2[*Standing, error] {
	return func(yield func(*Standing, error) bool) {
		all := map[string]*Standing{}
		known := false // all has what there was at the beginning
		for m, err := range c.follow(ctx, bucketStream,
			keyPrefix+"*", keyPrefix+"*"+ledgerSuffix, keyPrefix+"*"+controlSuffix) {
			if err != nil {
				yield(nil, fmt.Errorf("watch jobs: %w", err))
				return
			}
			changed := []*Standing{c.enter(all, m)}
			if !known {
				if known = m.latest; !known {
					continue
				}
				changed = slices.Collect(maps.Values(all))
			}
			for _, s := range changed {
				if s == nil || s.Job == nil {
					continue
				}
				copied := *s
				if !yield(&copied, nil) {
					return
				}
			}
		}
	}
}

// enter takes a record in among all, and returns the standing of its job, nil if
// there is nothing new.
func (c *Conn) enter(all map[string]*Standing, m logged) *Standing {
	if m.Headers().Get(operationHeader) != "" {
		return nil
	}
	key := strings.TrimPrefix(m.Subject(), keyPrefix)
	id, _, _ := strings.Cut(key, ".")
	s := all[id]
	if s == nil {
		s = &Standing{Order: wire.Proceed}
	}
	if err := s.add(key, m.Data(), m.meta.Sequence.Stream, m.meta.Timestamp); err != nil {
		c.log.Warn("record put aside", "error", err)
		return nil
	}
	all[id] = s
	return s
}

// SweepResults removes the results of jobs that want none from the log: it asks
// about each job that has results there, with nil where the job has no record.
// What is stored while it looks, stays.
func (c *Conn) SweepResults(ctx context.Context, unwanted func(id string, s *Standing) bool) error {
	stream, err := c.stream(ctx, resultsStream)
	if err != nil {
		return err
	}
	var info *jetstream.StreamInfo
	err = c.do(ctx, func(ctx context.Context) (err error) {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter(resultPrefix+".>"))
		return err
	})
	if err != nil {
		return fmt.Errorf("list the results: %w", err)
	}
	jobs := map[string]bool{}
	for subject := range info.State.Subjects {
		if id, err := parseResultSubject(subject); err == nil {
			jobs[id.Job] = true
		}
	}
	for id := range jobs {
		s, err := c.Standing(ctx, id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("sweep the results: %w", err)
		}
		if !unwanted(id, s) {
			continue
		}
		err = c.do(ctx, func(ctx context.Context) error {
			return stream.Purge(ctx, jetstream.WithPurgeSubject(resultsOf(id)), jetstream.WithPurgeSequence(info.State.LastSeq+1))
		})
		if err != nil {
			return fmt.Errorf("sweep the results of job %s: %w", id, err)
		}
	}
	return nil
}

// resultsOf is the pattern for the subjects of a job's results.
func resultsOf(job string) string { return resultPrefix + ".*." + job + ".*.*" }
