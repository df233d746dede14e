// Package producer drives a corpus: it cuts the records into numbered chunks
// and publishes them, in order, as tasks.
//
// Terms: a chunk is up to 65,536 consecutive records, a part is PartChunks
// consecutive chunks; where they end is a function of the corpus and the spec.
// The window is how many parts, counted from the oldest one that is not
// committed, may be on their way.
//
//	err := producer.Run(ctx, conn, corpus, producer.Options{Job: "levels", Spec: spec, Window: 2})
//
// Invariants:
//   - A chunk is published only while its part is inside the window, so neither
//     queue can fill up with parts that wait for a missing chunk.
//   - A chunk of a committed part is not published. Its digest, made again from
//     the corpus, must be the committed one: a corpus that has changed is an
//     error, never a mixture.
//   - A job is sealed with its totals only after all its chunks are stored.
//   - While people want the job paused, nothing more is published: what is in
//     the window is finished, and then the job rests.
//
// Run belongs to one goroutine; what it starts has ended when it returns.
package producer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Errors that end a job.
var (
	// ErrJobFailed says that the aggregator has given the job up, or people have.
	ErrJobFailed = errors.New("job failed")
	// ErrOtherCorpus says that committed parts come from another corpus.
	ErrOtherCorpus = errors.New("committed parts were made from another corpus")
)

// Options says what to drive and how. Job, Spec and Window are required.
type Options struct {
	Job       string
	Spec      puzzle.Spec
	Window    int                 // parts on their way at once
	Lane      queue.Lane          // empty means queue.Normal
	Published func(records int64) // told the number of records handed over so far; may be nil
	Metrics   *Metrics            // nil means none
	Log       *slog.Logger        // nil means no logs
}

// Run creates the job, drives the corpus to its end and seals the job. It waits
// for an aggregator to take the job up before it publishes, because only the
// aggregator knows which parts are committed.
func Run(ctx context.Context, conn *queue.Conn, c *corpus.Corpus, opts Options) error {
	p := &producer{conn: conn, opts: opts}
	if p.opts.Lane == "" {
		p.opts.Lane = queue.Normal
	}
	if p.opts.Log == nil {
		p.opts.Log = slog.New(slog.DiscardHandler)
	}
	if p.opts.Metrics == nil {
		p.opts.Metrics = NewMetrics(nil)
	}
	if err := p.run(ctx, c); err != nil {
		return fmt.Errorf("drive job %s: %w", opts.Job, err)
	}
	return nil
}

// maxUnderWay bounds the tasks, in bytes, that are sent and not yet stored.
const maxUnderWay = 4 << 20

// producer drives one corpus. Its fields are owned by the goroutine of run.
type producer struct {
	conn  *queue.Conn
	opts  Options
	epoch uint32
	tasks *queue.Publisher
	news  chan *queue.Standing // holds what was heard last, until it is looked at
	now   *queue.Standing      // what was looked at last; it has a ledger

	chunks  int64
	records int64

	parts   []wire.Part         // handed over completely
	digests [][sha256.Size]byte // of the chunks so far of the part being handed over

	// The part being handed over, if it was committed when its first chunk came:
	// its chunks are compared instead of published.
	committed *wire.Part
}

func (p *producer) run(ctx context.Context, c *corpus.Corpus) error {
	id := p.opts.Job
	_, err := p.conn.CreateJob(ctx, &wire.Job{ID: id, Spec: p.opts.Spec})
	if err != nil {
		return err
	}
	if p.epoch, err = p.conn.NextEpoch(ctx, id); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	p.news = make(chan *queue.Standing, 1)
	heard := make(chan error, 1)
	go func() {
		heard <- p.listen(ctx)
		stop()
	}()
	err = p.drive(ctx, c)
	stop()
	if end := <-heard; err != nil && !errors.Is(end, context.Canceled) {
		return end // and err says only that it was told to stop
	}
	return err
}

// listen hears what others say of the job, until ctx ends or the job does
// without being done.
func (p *producer) listen(ctx context.Context) error {
	for s, err := range p.conn.WatchStanding(ctx, p.opts.Job) {
		switch {
		case err != nil:
			return fmt.Errorf("wait for the aggregator: %w", err)
		case s.Ledger == nil && s.Order != wire.Cancel:
			continue
		case s.Ended() && s.Ledger.State == wire.Failed:
			return fmt.Errorf("%w: %s", ErrJobFailed, s.Ledger.Reason)
		case s.Order == wire.Cancel && !(s.Ended() && s.Ledger.State == wire.Done):
			return fmt.Errorf("%w: it was cancelled", ErrJobFailed)
		}
		select {
		case <-p.news: // nobody has looked at it, and it is old
		default:
		}
		p.news <- s
	}
	return nil
}

// drive hands the corpus over and seals the job.
func (p *producer) drive(ctx context.Context, c *corpus.Corpus) error {
	id := p.opts.Job
	if err := p.await(ctx); err != nil {
		return err
	}
	p.tasks = p.conn.Publisher(p.opts.Lane, maxUnderWay)
	if err := p.publishAll(ctx, c); err != nil {
		return err
	}
	totals, err := p.totals(c)
	if err != nil {
		return err
	}
	p.opts.Log.Info("corpus read", "job", id, "records", totals.Records, "chunks", totals.Chunks)
	return p.conn.SealJob(ctx, id, totals)
}

// publishAll returns when all chunks are stored, or, after an error, when no
// more are being sent.
func (p *producer) publishAll(ctx context.Context, c *corpus.Corpus) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := p.split(ctx, c)
	if err != nil {
		cancel()
	}
	// Without the cancellation, which ends the sending, not the waiting for that.
	sent := p.tasks.Flush(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	return sent
}

// split hands the corpus over chunk by chunk.
func (p *producer) split(ctx context.Context, c *corpus.Corpus) error {
	s := newSplitter(p.opts.Spec)
	var rec corpus.Record
	for {
		switch err := c.Next(&rec); {
		case err == io.EOF:
			if s.records > 0 {
				if err := p.handOver(ctx, s.take()); err != nil {
					return err
				}
			}
			if len(p.digests) > 0 || p.chunks == 0 { // an empty corpus has one empty part
				return p.endPart()
			}
			return nil
		case err != nil:
			return err
		}
		if !s.add(&rec) {
			if err := p.handOver(ctx, s.take()); err != nil {
				return err
			}
			s.add(&rec)
		}
	}
}

// handOver publishes the next chunk, or notes its digest where its part is
// committed.
func (p *producer) handOver(ctx context.Context, chunk *puzzle.Chunk) error {
	partChunks := int64(p.opts.Spec.PartChunks)
	id := wire.ID{Job: p.opts.Job, Chunk: p.chunks, Part: p.chunks / partChunks, Epoch: p.epoch}
	if id.Chunk%partChunks == 0 {
		if err := p.beginPart(ctx, id.Part); err != nil {
			return err
		}
	}
	if p.committed == nil {
		if err := p.rest(ctx); err != nil {
			return err
		}
		if err := p.publish(ctx, id, chunk); err != nil {
			return err
		}
	} else {
		p.opts.Metrics.skipped.Inc()
	}
	p.digests = append(p.digests, chunk.Digest())
	p.chunks++
	p.records += int64(chunk.Records())
	p.opts.Metrics.records.Add(float64(chunk.Records()))
	if p.opts.Published != nil {
		p.opts.Published(p.records)
	}
	if p.chunks%partChunks == 0 {
		return p.endPart()
	}
	return nil
}

// beginPart waits until the part is inside the window.
func (p *producer) beginPart(ctx context.Context, part int64) error {
	for part >= p.now.Ledger.Oldest()+int64(p.opts.Window) {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	if found, ok := p.now.Ledger.Part(part); ok {
		p.committed = &found
	}
	return nil
}

func (p *producer) publish(ctx context.Context, id wire.ID, chunk *puzzle.Chunk) error {
	data, err := wire.AppendTask(nil, &wire.Task{ID: id, Chunk: *chunk})
	if err != nil {
		return fmt.Errorf("chunk %d: %w", id.Chunk, err)
	}
	waited := p.opts.Metrics.waiting()
	err = p.tasks.Publish(ctx, id, data)
	waited()
	if err == nil {
		p.opts.Metrics.chunks.Inc()
		p.opts.Metrics.bytes.Add(float64(len(data)))
	}
	return err
}

// endPart notes the mark of the part, and compares it if the part was committed
// already. What other drives of another corpus have left besides, the aggregator
// finds from the totals.
func (p *producer) endPart() error {
	part := wire.Part{Number: int64(len(p.parts)), Digest: wire.SumPart(p.digests)}
	if p.committed != nil && part != *p.committed {
		return fmt.Errorf("part %d: %w", part.Number, ErrOtherCorpus)
	}
	p.parts, p.digests, p.committed = append(p.parts, part), p.digests[:0], nil
	return nil
}

// rest waits while people want the job paused.
func (p *producer) rest(ctx context.Context) error {
	select {
	case p.now = <-p.news:
	default:
	}
	if p.now.Order != wire.Pause {
		return nil
	}
	p.opts.Log.Info("job paused", "job", p.opts.Job, "chunks", p.chunks)
	for p.now.Order == wire.Pause {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	p.opts.Log.Info("job goes on", "job", p.opts.Job)
	return nil
}

// await waits for news of the job.
func (p *producer) await(ctx context.Context) error {
	defer p.opts.Metrics.waiting()()
	select {
	case p.now = <-p.news:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the aggregator: %w", ctx.Err())
	}
}

// totals says what the corpus was.
func (p *producer) totals(c *corpus.Corpus) (*wire.Totals, error) {
	t := &wire.Totals{Records: p.records, Chunks: p.chunks, Format: c.Format(), PartsSHA256: wire.SumParts(p.parts)}
	for _, s := range c.Sources() {
		source := wire.Source{Name: s.Name, Bytes: s.Bytes}
		if _, err := hex.Decode(source.SHA256[:], []byte(s.SHA256)); err != nil {
			return nil, fmt.Errorf("checksum of %s: %w", s.Name, err)
		}
		t.Sources = append(t.Sources, source)
	}
	if _, err := hex.Decode(t.CorpusSHA256[:], []byte(corpus.Sum(c.Sources()))); err != nil {
		return nil, fmt.Errorf("checksum of the corpus: %w", err)
	}
	return t, nil
}
