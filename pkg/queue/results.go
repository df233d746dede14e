package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Result is a stored result.
type Result struct {
	Seq  uint64  // its place in the log, for ReadResult
	ID   wire.ID // Job, Part and Chunk, from the subject; Epoch is in the payload
	Data []byte
}

// Parse reads the result. It must be the one that the subject names.
func (r *Result) Parse() (*wire.Result, error) {
	w, err := wire.ParseResult(r.Data)
	if err != nil {
		return nil, err
	}
	if w.ID.Job != r.ID.Job || w.ID.Part != r.ID.Part || w.ID.Chunk != r.ID.Chunk {
		return nil, fmt.Errorf("result %s of part %d under the subject of chunk %d in part %d of job %s", w.ID, w.ID.Part, r.ID.Chunk, r.ID.Part, r.ID.Job)
	}
	return w, nil
}

// Results follows the log: all results of a job from the oldest that is not
// purged, in the order they were stored, then each new one, without end. It ends
// with an error, that of ctx included.
func (c *Conn) Results(ctx context.Context, job string) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		if err := puzzle.CheckJob(job); err != nil {
			yield(nil, fmt.Errorf("follow results: %w", err))
			return
		}
		c.warnDrift(ctx, resultsStream)
		for m, err := range c.follow(ctx, resultsStream, resultsOf(job)) {
			if err != nil {
				yield(nil, fmt.Errorf("follow results of job %s: %w", job, err))
				return
			}
			if r := c.storedResult(m.meta.Sequence.Stream, m.Subject(), m.Data()); r != nil && !yield(r, nil) {
				return
			}
		}
	}
}

// storedResult returns nil for a message that no worker of ours can have sent.
func (c *Conn) storedResult(seq uint64, subject string, data []byte) *Result {
	id, err := parseResultSubject(subject)
	if err != nil {
		c.log.Warn("result put aside", "seq", seq, "error", err)
		return nil
	}
	return &Result{Seq: seq, ID: id, Data: data}
}

// ReadResult returns the result at a place in the log, or ErrNotFound where
// there is none any more.
func (c *Conn) ReadResult(ctx context.Context, seq uint64) (*Result, error) {
	stream, err := c.stream(ctx, resultsStream)
	if err != nil {
		return nil, err
	}
	var msg *jetstream.RawStreamMsg
	err = c.do(ctx, func(ctx context.Context) (err error) {
		if msg, err = stream.GetMsg(ctx, seq); errors.Is(err, jetstream.ErrMsgNotFound) {
			err = c.isGone(ctx, seq)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read result at %d: %w", seq, err)
	}
	if r := c.storedResult(msg.Sequence, msg.Subject, msg.Data); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("read result at %d: %w", seq, ErrNotFound)
}

// isGone returns ErrMsgNotFound if the log has no message at a place. Any of its
// copies answers GetMsg, also one that is behind and does not have the message
// yet: only the leader knows.
func (c *Conn) isGone(ctx context.Context, seq uint64) error {
	m, err := c.nc.RequestWithContext(ctx, api+"STREAM.MSG.GET."+resultsStream, fmt.Appendf(nil, `{"seq":%d}`, seq))
	if err != nil {
		return err
	}
	var answer struct{ Error *jetstream.APIError }
	switch err := json.Unmarshal(m.Data, &answer); {
	case err != nil:
		return err
	case answer.Error == nil:
		return errBehind
	case answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return jetstream.ErrMsgNotFound
	}
	return answer.Error
}

// errBehind says that a copy of a stream does not have yet what its leader has.
var errBehind = fmt.Errorf("%w: the copy that answered is behind", ErrUnreachable)

// PurgePart removes the results of a part: call it only when the part's file is
// durable.
func (c *Conn) PurgePart(ctx context.Context, job string, part int64) error {
	id := wire.ID{Job: job, Part: part, Chunk: part} // any chunk of the part will do
	if err := id.Validate(); err != nil {
		return fmt.Errorf("purge part: %w", err)
	}
	subject := fmt.Sprintf("%s.%d.%s.%d.*", resultPrefix, part%Partitions, job, part)
	if err := c.purge(ctx, resultsStream, subject); err != nil {
		return fmt.Errorf("purge part %d of job %s: %w", part, job, err)
	}
	return nil
}

func (c *Conn) purge(ctx context.Context, name, subject string) error {
	stream, err := c.stream(ctx, name)
	if err != nil {
		return err
	}
	return c.do(ctx, func(ctx context.Context) error {
		return stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
}
