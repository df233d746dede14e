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
//   - A chunk that is not of the oldest part waits, too, until the results of all
//     that is under way fit into the log, besides the oldest part of each job.
//   - A chunk of a committed part is not published. Its digest, made again from
//     the corpus, must be the committed one: a corpus that has changed is an
//     error, never a mixture.
//   - A chunk of which the broker has the task or the result when the drive begins
//     is not published again. So to drive a job again after a loss publishes what
//     is missing and no more.
//   - While a drive rests and nothing comes in, it makes sure that what it waits for
//     is still there: it ends with protocol.ErrLost rather than wait for what was lost.
//   - A job is sealed with its totals only after all its chunks are stored.
//   - While people want the job paused, nothing more is published: what is in
//     the window is finished, and then the job rests.
//
// Run belongs to one goroutine; what it starts has ended when it returns.
package producer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Errors that end a drive.
var (
	// ErrJobFailed says that the aggregator has given the job up, or people have.
	ErrJobFailed = errors.New("job failed")
	// ErrNoRoom says that the broker cannot hold the results of one part.
	ErrNoRoom = errors.New("the stream of results is too small for a part")
)

// Options says what to drive and how. Job, Spec and Window are required.
type Options struct {
	Job       string
	Spec      puzzle.Spec
	Window    int                 // parts on their way at once
	Lane      queue.Lane          // empty means queue.Normal
	Origin    *wire.Origin        // where the corpus is, for others who could drive it; nil: nobody could
	Published func(records int64) // told the number of records handed over so far; may be nil
	Metrics   *Metrics            // nil means none
	Log       *slog.Logger        // nil means no logs
}

// Run creates the job, drives the corpus to its end and seals the job. It waits
// for an aggregator to take the job up before it publishes, because only the
// aggregator knows which parts are committed.
func Run(ctx context.Context, conn *queue.Conn, c *corpus.Corpus, opts Options) error {
	p := &producer{conn: conn, opts: opts, window: protocol.NewWindow(opts.Spec.PartChunks, opts.Window)}
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
	conn   *queue.Conn
	opts   Options
	epoch  uint32
	tasks  *queue.Publisher
	news   chan *queue.Standing // holds what was heard last, until it is looked at
	heard  time.Time            // when what was heard last of the ledger was written
	again  atomic.Bool          // the job had failed
	window *protocol.Window     // decides what becomes of each chunk

	crowded bool // there was no room among the results at a time
	stalled bool // nothing came in between what was heard last and before that
}

func (p *producer) run(ctx context.Context, c *corpus.Corpus) error {
	id := p.opts.Job
	_, err := p.conn.CreateJob(ctx, &wire.Job{ID: id, Spec: p.opts.Spec})
	if err != nil {
		return err
	}
	if p.epoch, err = p.conn.NextEpoch(ctx, id, p.opts.Origin); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	p.news = make(chan *queue.Standing, 1)
	beside := make(chan error, 2)
	for _, run := range []func(context.Context) error{p.listen, p.live} {
		go func() {
			beside <- run(ctx)
			stop()
		}()
	}
	err = p.drive(ctx, c)
	stop()
	for range cap(beside) {
		if end := <-beside; err != nil && errors.Is(err, context.Canceled) && !errors.Is(end, context.Canceled) {
			err = end // it was told to stop for that
		}
	}
	return err
}

// beat is how often a producer says that it lives.
const beat = 3 * time.Second

// live says that somebody drives the job, until ctx ends.
func (p *producer) live(ctx context.Context) error {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := p.conn.TouchJob(ctx, p.opts.Job); err != nil {
			return err
		}
	}
}

// listen hears what others say of the job, until ctx ends or the job does
// without being done.
func (p *producer) listen(ctx context.Context) error {
	served := false
	for s, err := range p.conn.WatchStanding(ctx, p.opts.Job) {
		if err != nil {
			return fmt.Errorf("wait for the aggregator: %w", err)
		}
		ledger := s.Ledger
		if !served && ledger != nil && ledger.State.Ended() && !s.Ended() {
			ledger = nil // it ended before this drive, which the aggregator has yet to hear of
			p.again.Store(true)
		}
		if why := protocol.Refusal(ledger, s.Order); why != "" {
			return fmt.Errorf("%w: %s", ErrJobFailed, why)
		}
		if ledger == nil {
			continue
		}
		served = true // from now on its end is the end of this drive
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
	if err := p.lookUp(ctx); err != nil {
		return err
	}
	if err := p.checkRoom(ctx); err != nil {
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

// lookUp finds out which chunks the broker has. The job must be open by then, since
// its failure purges them, and what is heard of the ledger must be newer. Tasks
// that a failure has left in workers' hands are no answer to come.
func (p *producer) lookUp(ctx context.Context) error {
	if p.again.Load() {
		return nil
	}
	stored, err := p.conn.Stored(ctx, p.opts.Job)
	if err != nil {
		return withoutStream(err)
	}
	p.window.Stored(stored)
	s, err := p.conn.Standing(ctx, p.opts.Job)
	if err != nil {
		return err
	}
	return p.hear(s)
}

// hear takes in where the job stands, unless something newer is known.
func (p *producer) hear(s *queue.Standing) error {
	if s.Ledger == nil || s.Heard.Before(p.heard) {
		return nil
	}
	p.stalled = s.Heard.After(p.heard) && p.window.Stalls(s.Ledger)
	p.heard = s.Heard
	return p.window.Hear(s.Ledger, s.Order)
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
	return withoutStream(sent)
}

// split hands the corpus over chunk by chunk.
func (p *producer) split(ctx context.Context, c *corpus.Corpus) error {
	for chunk, err := range Chunks(p.opts.Spec, c) {
		if err == nil {
			err = p.handOver(ctx, chunk)
		}
		if err != nil {
			return err
		}
	}
	return p.window.End()
}

// handOver publishes the next chunk, or does without where its part is committed
// or the broker has it.
func (p *producer) handOver(ctx context.Context, chunk *puzzle.Chunk) error {
	step, err := p.next(ctx)
	if err != nil {
		return err
	}
	switch step {
	case protocol.Compare:
		p.opts.Metrics.skipped.Inc()
	case protocol.Pass:
		p.opts.Metrics.passed.Inc()
	default:
		if err := p.publish(ctx, chunk); err != nil {
			return err
		}
	}
	if err := p.window.Add(chunk.Digest(), chunk.Records()); err != nil {
		return err
	}
	p.opts.Metrics.records.Add(float64(chunk.Records()))
	if p.opts.Published != nil {
		p.opts.Published(p.window.Count().Records)
	}
	return nil
}

// next waits until something can be done with the next chunk.
func (p *producer) next(ctx context.Context) (protocol.Step, error) {
	rests := false
	for {
		select {
		case s := <-p.news:
			if err := p.hear(s); err != nil {
				return 0, err
			}
		default:
		}
		step := p.window.Next()
		if step == protocol.Publish && !p.window.First() {
			switch fits, err := p.hasRoom(ctx); {
			case err != nil:
				return 0, err
			case !fits:
				if err := p.awaitRoom(ctx); err != nil {
					return 0, err
				}
				continue
			}
		}
		paused := step == protocol.Rest && p.window.Paused()
		switch {
		case paused && !rests:
			p.opts.Log.Info("job paused", "job", p.opts.Job, "chunks", p.window.Count().Chunks)
		case rests && !paused:
			p.opts.Log.Info("job goes on", "job", p.opts.Job)
		}
		if step != protocol.Rest {
			return step, nil
		}
		rests = paused
		if err := p.checkLoss(ctx); err != nil {
			return 0, err
		}
		if err := p.await(ctx); err != nil {
			return 0, err
		}
	}
}

func (p *producer) publish(ctx context.Context, chunk *puzzle.Chunk) error {
	id := wire.ID{Job: p.opts.Job, Epoch: p.epoch}
	id.Chunk, id.Part = p.window.Chunk()
	data, err := wire.AppendTask(nil, &wire.Task{ID: id, Chunk: *chunk})
	if err != nil {
		return fmt.Errorf("chunk %d: %w", id.Chunk, err)
	}
	waited := p.opts.Metrics.waiting()
	err = withoutStream(p.tasks.Publish(ctx, id, data))
	waited()
	if err == nil {
		p.opts.Metrics.chunks.Inc()
		p.opts.Metrics.bytes.Add(float64(len(data)))
	}
	return err
}

// await waits for news of the job.
func (p *producer) await(ctx context.Context) error {
	defer p.opts.Metrics.waiting()()
	select {
	case s := <-p.news:
		return p.hear(s)
	case <-ctx.Done():
		return fmt.Errorf("wait for the aggregator: %w", ctx.Err())
	}
}

// totals says what the corpus was.
func (p *producer) totals(c *corpus.Corpus) (*wire.Totals, error) {
	t := p.window.Totals()
	t.Format = c.Format()
	for _, s := range c.Sources() {
		source := wire.Source{Name: s.Name, Bytes: s.Bytes}
		if _, err := hex.Decode(source.SHA256[:], []byte(s.SHA256)); err != nil {
			return nil, fmt.Errorf("checksum of %s: %w", s.Name, err)
		}
		t.Sources = append(t.Sources, source)
	}
	if _, err := hex.Decode(t.CorpusSHA256[:], []byte(c.Sum())); err != nil {
		return nil, fmt.Errorf("checksum of the corpus: %w", err)
	}
	return t, nil
}
