package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/nats-io/nats.go/jetstream"
)

// Place is where the broker has a chunk.
type Place struct {
	Where string    // Queued, Taken or Solved
	Lane  Lane      // of a task; empty for a result
	Since time.Time // when the task or the result was stored, by the broker's clock
}

// Where a chunk can be.
const (
	Queued = "queued" // no worker has had the task yet
	Taken  = "taken"  // a worker has the task, or had it and put it back
	Solved = "solved" // the result is stored
)

// Locate returns where the chunks of a job are, by their number. A chunk that is
// not there is not handed over yet, committed, or lost. To tell, read the ledger
// afterwards: a chunk goes from task to result to ledger, and is never nowhere.
//
// Reading a task's place means reading the task, so this is for people who ask.
func (c *Conn) Locate(ctx context.Context, job string) (map[int64]Place, error) {
	places := map[int64]Place{}
	err := puzzle.CheckJob(job)
	for _, locate := range []func(context.Context, string, map[int64]Place) error{c.locateTasks, c.locateResults} {
		if err == nil {
			err = locate(ctx, job, places)
		}
		if errors.Is(err, ErrNotFound) { // a stream that was deleted has none
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("locate the chunks of job %s: %w", job, err)
	}
	return places, nil
}

func (c *Conn) locateTasks(ctx context.Context, job string, places map[int64]Place) error {
	stream, err := c.stream(ctx, tasksStream)
	if err != nil {
		return err
	}
	subjects, err := c.subjects(ctx, tasksStream, fmt.Sprintf("%s.*.%s.*", taskPrefix, job))
	if err != nil {
		return err
	}
	at := map[int64]uint64{} // of the chunks: the tasks' places in the stream
	for subject := range subjects {
		lane, id, err := parseTaskSubject(subject)
		if err != nil {
			continue // not ours
		}
		var msg *jetstream.RawStreamMsg
		err = c.do(ctx, func(ctx context.Context) (err error) {
			msg, err = stream.GetLastMsgForSubject(ctx, subject)
			return err
		})
		switch {
		case errors.Is(err, ErrNotFound): // done meanwhile
		case err != nil:
			return err
		default:
			places[id.Chunk] = Place{Queued, lane, msg.Time}
			at[id.Chunk] = msg.Sequence
		}
	}
	if len(at) == 0 {
		return nil
	}
	delivered, err := c.delivered(ctx)
	if err != nil {
		return err
	}
	for chunk, p := range places {
		if at[chunk] <= delivered[p.Lane] {
			p.Where = Taken
			places[chunk] = p
		}
	}
	return nil
}

// delivered returns up to where in the stream each lane has handed out its tasks.
func (c *Conn) delivered(ctx context.Context) (map[Lane]uint64, error) {
	last := map[Lane]uint64{}
	for _, lane := range Lanes() {
		err := c.do(ctx, func(ctx context.Context) error {
			consumer, err := c.js.Consumer(ctx, tasksStream, string(lane))
			if err == nil {
				last[lane] = consumer.CachedInfo().Delivered.Stream
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look up lane %s: %w", lane, err)
		}
	}
	return last, nil
}

func (c *Conn) locateResults(ctx context.Context, job string, places map[int64]Place) error {
	results, err := c.snapshot(ctx, resultsStream, true, fmt.Sprintf("%s.*.%s.*.*", resultPrefix, job))
	for _, r := range results {
		if id, err := parseResultSubject(r.Subject()); err == nil {
			places[id.Chunk] = Place{Where: Solved, Since: r.meta.Timestamp}
		}
	}
	return err
}

// Stored returns the chunks of a job of which the broker has the task or the
// result. It is Locate for those who need no more, at the cost of two requests.
func (c *Conn) Stored(ctx context.Context, job string) (map[int64]bool, error) {
	stored := map[int64]bool{}
	err := puzzle.CheckJob(job)
	if err == nil {
		err = c.list(ctx, tasksStream, fmt.Sprintf("%s.*.%s.*", taskPrefix, job), func(subject string) {
			if _, id, err := parseTaskSubject(subject); err == nil {
				stored[id.Chunk] = true
			}
		})
	}
	if err == nil { // after the tasks: a chunk goes from there to here
		err = c.list(ctx, resultsStream, fmt.Sprintf("%s.*.%s.*.*", resultPrefix, job), func(subject string) {
			if id, err := parseResultSubject(subject); err == nil {
				stored[id.Chunk] = true
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list the chunks of job %s: %w", job, err)
	}
	return stored, nil
}

// list calls each with the subjects in a stream that match a pattern.
func (c *Conn) list(ctx context.Context, stream, pattern string, each func(subject string)) error {
	subjects, err := c.subjects(ctx, stream, pattern)
	for subject := range subjects {
		each(subject)
	}
	return err
}

// subjects returns the subjects in a stream that match a pattern.
func (c *Conn) subjects(ctx context.Context, stream, pattern string) (map[string]uint64, error) {
	info, err := c.streamInfo(ctx, stream, jetstream.WithSubjectFilter(pattern))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}
