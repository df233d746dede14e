package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrEnded says that a job takes no more orders.
var ErrEnded = errors.New("the job has ended")

// What makes the keys of a job's control record and of its latest troubles, as
// ledgerSuffix does that of its ledger.
const (
	controlSuffix = ".control"
	troubleSuffix = ".trouble"
)

// Standing is what the broker knows of a job: its records together.
type Standing struct {
	Job    *wire.Job
	Driven time.Time    // when the job's record was written, by the broker's clock: not long ago while somebody drives it
	Ledger *wire.Ledger // nil before an aggregator has taken the job up
	Heard  time.Time    // when the ledger was written, by the broker's clock; zero before

	Revision uint64 // of the ledger, for PutLedger; 0 before

	Order wire.Order // what people want

	Troubles wire.Troubles // what went wrong lately with tasks
}

// State says where the job stands, in one word: open, paused, cancelling, done,
// failed or cancelled. It is cancelling until the aggregator has seen to it.
func (s *Standing) State() string {
	switch {
	case s.Ended():
		return s.Ledger.State.String()
	case s.Order == wire.Pause:
		return "paused"
	case s.Order == wire.Cancel:
		return "cancelling"
	}
	return wire.Open.String()
}

// Ended reports whether nothing more will happen to the job.
func (s *Standing) Ended() bool { return s.Ledger != nil && s.Ledger.Ended(s.Job) }

// add enters one of the job's records.
func (s *Standing) add(key string, data []byte, revision uint64, written time.Time) (err error) {
	switch id, kind, _ := strings.Cut(key, "."); "." + kind {
	case ".":
		s.Job, err = parseJob(id, data)
		s.Driven = written
	case ledgerSuffix:
		s.Ledger, err = wire.ParseLedger(data)
		s.Heard, s.Revision = written, revision
	case controlSuffix:
		s.Order, err = wire.ParseOrder(data)
	case troubleSuffix:
		var troubles *wire.Troubles
		if troubles, err = wire.ParseTroubles(data); err == nil {
			s.Troubles = *troubles
		}
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", key, err)
	}
	return nil
}

func standingKeys(id string) []string {
	return []string{id, id + ledgerSuffix, id + controlSuffix, id + troubleSuffix}
}

// Standing returns where a job stands, or ErrNotFound.
func (c *Conn) Standing(ctx context.Context, id string) (*Standing, error) {
	if err := puzzle.CheckJob(id); err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	s := &Standing{Order: wire.Proceed}
	// The job comes last: what the others say of it must not be news to it.
	for _, suffix := range []string{ledgerSuffix, controlSuffix, troubleSuffix, ""} {
		entry, err := c.entry(ctx, id, suffix)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err == nil {
			err = s.add(entry.Key(), entry.Value(), entry.Revision(), entry.Created())
		}
		if err != nil {
			return nil, fmt.Errorf("read job %s: %w", id, err)
		}
	}
	if s.Job == nil {
		return nil, fmt.Errorf("read job %s: %w", id, ErrNotFound)
	}
	return s, nil
}

// Standings returns where all jobs stand, by their ids.
func (c *Conn) Standings(ctx context.Context) ([]*Standing, error) {
	records, err := c.snapshot(ctx, bucketStream, false, keyPrefix+">")
	if err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	jobs := map[string]*Standing{}
	for _, r := range records {
		if r.Headers().Get(operationHeader) != "" {
			continue
		}
		key := strings.TrimPrefix(r.Subject(), keyPrefix)
		id, _, _ := strings.Cut(key, ".")
		if jobs[id] == nil {
			jobs[id] = &Standing{Order: wire.Proceed}
		}
		if err := jobs[id].add(key, r.Data(), r.meta.Sequence.Stream, r.meta.Timestamp); err != nil {
			c.log.Warn("record put aside", "error", err)
		}
	}
	maps.DeleteFunc(jobs, func(_ string, s *Standing) bool { return s.Job == nil })
	all := slices.Collect(maps.Values(jobs))
	slices.SortFunc(all, func(a, b *Standing) int { return strings.Compare(a.Job.ID, b.Job.ID) })
	return all, nil
}

// WatchStanding returns where a job stands, then again after each change,
// without end. Changes that follow each other closely may come as one. It ends
// with an error, that of ctx included; a job that does not exist is waited for.
func (c *Conn) WatchStanding(ctx context.Context, id string) iter.Seq2[*Standing, error] {
	return func(yield func(*Standing, error) bool) {
		var filter []string
		for _, key := range standingKeys(id) {
			filter = append(filter, keyPrefix+key)
		}
		now := Standing{Order: wire.Proceed}
		for m, err := range c.follow(ctx, bucketStream, filter...) {
			if err == nil && m.Headers().Get(operationHeader) == "" {
				err = now.add(strings.TrimPrefix(m.Subject(), keyPrefix), m.Data(), m.meta.Sequence.Stream, m.meta.Timestamp)
			}
			if err != nil {
				yield(nil, fmt.Errorf("watch job %s: %w", id, err))
				return
			}
			if !m.latest || now.Job == nil {
				continue
			}
			copied := now
			if !yield(&copied, nil) {
				return
			}
		}
	}
}

// Order returns what people want done with a job.
func (c *Conn) Order(ctx context.Context, id string) (wire.Order, error) {
	order, _, err := c.order(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read order to job %s: %w", id, err)
	}
	return order, nil
}

// order returns the revision of the record too, 0 where there is none.
func (c *Conn) order(ctx context.Context, id string) (wire.Order, uint64, error) {
	entry, err := c.entry(ctx, id, controlSuffix)
	if errors.Is(err, ErrNotFound) {
		return wire.Proceed, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	order, err := wire.ParseOrder(entry.Value())
	return order, entry.Revision(), err
}

// PutOrder says what people want done with a job. It is ErrNotFound where there
// is no such job and ErrEnded where an order has no effect any more; what is
// cancelled stays so. Cancel also removes what is queued.
func (c *Conn) PutOrder(ctx context.Context, id string, order wire.Order) error {
	if err := c.putOrder(ctx, id, order); err != nil {
		verb := order.String()
		if order == wire.Proceed {
			verb = "resume" // as people know it
		}
		return fmt.Errorf("%s job %s: %w", verb, id, err)
	}
	return nil
}

func (c *Conn) putOrder(ctx context.Context, id string, order wire.Order) error {
	data, err := wire.AppendOrder(nil, order)
	if err != nil {
		return err
	}
	for {
		s, err := c.Standing(ctx, id)
		if err != nil {
			return err
		}
		kv, err := c.jobs(ctx)
		if err != nil {
			return err
		}
		_, revision, err := c.order(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case s.Ended(), s.Order == wire.Cancel && order != wire.Cancel:
			return fmt.Errorf("%w: it is %s", ErrEnded, s.State())
		case s.Order == order:
			err = nil
		case revision == 0:
			err = c.do(ctx, func(ctx context.Context) error {
				_, err := kv.Create(ctx, id+controlSuffix, data)
				return err
			})
		default:
			err = c.do(ctx, func(ctx context.Context) error {
				_, err := kv.Update(ctx, id+controlSuffix, data, revision)
				return err
			})
		}
		switch {
		case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			continue // somebody else was quicker
		case err == nil && order == wire.Cancel:
			return c.PurgeTasks(ctx, id)
		}
		return err
	}
}

// PutTrouble writes down what went wrong last with a task. It does not wait for a
// broker that is away: this is for people.
func (c *Conn) PutTrouble(ctx context.Context, id string, trouble wire.Trouble) error {
	kv, err := c.jobs(ctx)
	if err == nil {
		err = puzzle.CheckJob(id)
	}
	if err == nil {
		err = c.once(ctx, func(ctx context.Context) error { return addTrouble(ctx, kv, id+troubleSuffix, trouble) })
	}
	if err != nil {
		return fmt.Errorf("write trouble of job %s: %w", id, err)
	}
	return nil
}

// addTrouble adds to the record under a key, whoever else does.
func addTrouble(ctx context.Context, kv jetstream.KeyValue, key string, trouble wire.Trouble) error {
	for {
		all, revision := &wire.Troubles{}, uint64(0)
		entry, err := kv.Get(ctx, key)
		switch {
		case err == nil:
			revision = entry.Revision()
			if known, err := wire.ParseTroubles(entry.Value()); err == nil { // or else it is replaced
				all = known
			}
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return err
		}
		all.Add(trouble)
		data, err := wire.AppendTroubles(nil, all)
		if err != nil {
			return err
		}
		if revision == 0 {
			_, err = kv.Create(ctx, key, data)
		} else {
			_, err = kv.Update(ctx, key, data, revision)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return err
		}
	}
}

// Troubles returns what went wrong lately with tasks of a job.
func (c *Conn) Troubles(ctx context.Context, id string) (*wire.Troubles, error) {
	entry, err := c.entry(ctx, id, troubleSuffix)
	if errors.Is(err, ErrNotFound) {
		return &wire.Troubles{}, nil
	}
	var troubles *wire.Troubles
	if err == nil {
		troubles, err = wire.ParseTroubles(entry.Value())
	}
	if err != nil {
		return nil, fmt.Errorf("read troubles of job %s: %w", id, err)
	}
	return troubles, nil
}

// PurgeTasks removes the tasks of a job that are not in a worker's hands.
func (c *Conn) PurgeTasks(ctx context.Context, job string) error {
	return c.purgeJob(ctx, tasksStream, job, "%s.*.%s.*", taskPrefix)
}

// PurgeResults removes all results of a job.
func (c *Conn) PurgeResults(ctx context.Context, job string) error {
	return c.purgeJob(ctx, resultsStream, job, "%s.*.%s.*.*", resultPrefix)
}

func (c *Conn) purgeJob(ctx context.Context, stream, job, pattern, prefix string) error {
	err := puzzle.CheckJob(job)
	if err == nil {
		err = c.purge(ctx, stream, fmt.Sprintf(pattern, prefix, job))
	}
	if errors.Is(err, ErrNotFound) {
		return nil // with its stream all of the job is gone
	}
	if err != nil {
		return fmt.Errorf("purge job %s: %w", job, err)
	}
	return nil
}
