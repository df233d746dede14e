// Package aggregator turns results into the dataset: it collects the chunks of
// a part, stitches their row groups into files, commits them, and at the end of
// a job writes statistics and manifest.
//
// Terms: a chunk's result is accepted when it is the first, or of a newer drive
// of the corpus; a part is full when all its chunks are accepted, and committed
// when its files are durable. The ledger is what the job's producer and people
// are told of all that.
//
//	err := aggregator.Run(ctx, conn, aggregator.Options{Output: "datasets"})
//
// Invariants:
//   - A part's results are purged from the log only after its files are durable.
//     So a restart needs no memory: the files say what is committed, the log
//     has the rest.
//   - Copies of a result change nothing, before and after the commit.
//   - A job is done only when every record of its corpus is in a committed part
//     and the manifest is written.
//
// One goroutine, the loop, owns all state; what Run starts has ended when it
// returns.
package aggregator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/wire"
)

// defaultMemory holds two parts of the default size.
const defaultMemory = 64 << 20

// Options says where datasets go. Output is required.
type Options struct {
	Output   string                                // folder of the datasets
	Alone    bool                                  // no other process writes there: what killed ones left half done is removed
	Memory   int64                                 // bytes of results kept; beyond, they are read again from the log; 0 means 64 MiB
	Received func(job string, received wire.Count) // told what has been accepted so far; may be nil
	Refresh  time.Duration                         // how often the ledger of an open job is written at least; 0 means 3 s
	Metrics  *Metrics                              // nil means none
	Turned   func()                                // told with every turn of the loop, one each Refresh at least; may be nil
	Log      *slog.Logger                          // nil means no logs
}

// Run serves all jobs until ctx ends; its error is then ctx's.
func Run(ctx context.Context, conn *queue.Conn, opts Options) error {
	if opts.Memory == 0 {
		opts.Memory = defaultMemory
	}
	if opts.Refresh == 0 {
		opts.Refresh = defaultRefresh
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Metrics == nil {
		opts.Metrics = NewMetrics(nil)
	}
	if opts.Turned == nil {
		opts.Turned = func() {}
	}
	a := &aggregator{conn: conn, opts: opts, log: opts.Log, jobs: map[string]*job{}}
	group, ctx := errgroup.WithContext(ctx)
	jobs := make(chan *wire.Job)
	results := make(chan *queue.Result)
	orders := make(chan queue.Ordered)
	group.Go(func() error { return pump(ctx, conn.WatchJobs(ctx), jobs) })
	group.Go(func() error { return pump(ctx, conn.Results(ctx), results) })
	group.Go(func() error { return pump(ctx, conn.WatchOrders(ctx), orders) })
	group.Go(func() error { return a.loop(ctx, jobs, results, orders) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("aggregator: %w", err)
	}
	return nil
}

// pump sends what a sequence yields to a channel.
func pump[T any](ctx context.Context, from func(func(T, error) bool), to chan<- T) error {
	for v, err := range from {
		if err != nil {
			return err
		}
		select {
		case to <- v:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// aggregator is the loop's state.
type aggregator struct {
	conn *queue.Conn
	opts Options
	log  *slog.Logger
	jobs map[string]*job

	retry <-chan time.Time // when to try again for the jobs that wait; nil if none does
	pause time.Duration    // before that; grows from one vain attempt to the next
}

// job is a job that the aggregator serves.
type job struct {
	id      string
	dir     *dataset.Dir
	chunks  *collector
	totals  *wire.Totals // nil until the job is sealed
	ledger  wire.Ledger
	dropped bool // done, failed or cancelled: further results are garbage
	waits   bool // nothing can be written at present; retry will try again
}

// drop forgets the results of a job that needs no more.
func (j *job) drop() {
	j.dropped = true
	j.chunks.open, j.chunks.inMemory = nil, 0
}

func (a *aggregator) loop(ctx context.Context, jobs <-chan *wire.Job, results <-chan *queue.Result, orders <-chan queue.Ordered) error {
	refresh := time.NewTicker(a.opts.Refresh)
	defer refresh.Stop()
	for {
		a.opts.Metrics.look(a.jobs)
		a.opts.Turned()
		var err error
		select {
		case record := <-jobs:
			err = a.takeUp(ctx, record)
		case r := <-results:
			err = a.receive(ctx, r)
		case o := <-orders:
			err = a.obey(ctx, o)
		case <-refresh.C:
			err = a.refresh(ctx)
		case <-a.retry:
			err = a.tryAgain(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// takeUp begins to serve a job, or notes that it was sealed.
func (a *aggregator) takeUp(ctx context.Context, record *wire.Job) error {
	j := a.jobs[record.ID]
	if j == nil {
		var err error
		if j, err = a.open(ctx, record); err != nil {
			return err
		}
		a.jobs[record.ID] = j
	}
	if j.dropped || j.totals != nil || record.Totals == nil {
		return nil
	}
	j.totals = record.Totals
	if err := j.chunks.seal(record.Totals.Chunks); err != nil {
		return a.fail(ctx, j, err)
	}
	return a.advance(ctx, j, j.chunks.last())
}

// open finds out how far a job has come, from its files alone.
func (a *aggregator) open(ctx context.Context, record *wire.Job) (*job, error) {
	j := &job{id: record.ID, chunks: newCollector(record.Spec.PartChunks), ledger: wire.Ledger{State: wire.Open}}
	known, err := a.conn.Ledger(ctx, j.id)
	if err == nil && known.State != wire.Open {
		j.drop()
		return j, nil
	}
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		return nil, err
	}
	if err == nil {
		j.ledger.Received = known.Received // until the log is read again
	}
	order, err := a.conn.Order(ctx, j.id) // before it can end otherwise
	if err != nil {
		return nil, err
	}
	var footers []dataset.Footer
	if j.dir, err = dataset.Open(a.opts.Output, j.id, record.Spec); err == nil {
		footers, err = j.dir.Committed()
	}
	if err == nil && a.opts.Alone {
		err = j.dir.Clean()
	}
	switch {
	case passes(err):
		return nil, err // a folder that cannot be read now says nothing about the job
	case err != nil:
		return j, a.fail(ctx, j, err)
	}
	for _, f := range footers {
		j.chunks.restore(int64(f.Part), wire.Count{Chunks: int64(f.Chunks), Records: f.Records})
		if err := j.note(f); err != nil {
			return j, a.fail(ctx, j, err)
		}
	}
	if order == wire.Cancel {
		return j, a.cancel(ctx, j)
	}
	a.log.Info("job taken up", "job", j.id, "committed_parts", len(footers))
	return j, a.publish(ctx, j)
}

// note enters a committed part into the ledger, in order.
func (j *job) note(f dataset.Footer) error {
	sum, err := hex.DecodeString(f.InputSHA256)
	if err != nil || len(sum) < wire.PartDigestSize {
		return fmt.Errorf("part %d: input_sha256 %q is no SHA-256", f.Part, f.InputSHA256)
	}
	j.ledger.Add(wire.Part{Number: int64(f.Part), Digest: [wire.PartDigestSize]byte(sum)})
	return nil
}

// publish tells the world where the job stands. What has been received does not
// fall, though a restart has to find it again.
func (a *aggregator) publish(ctx context.Context, j *job) error {
	if j.chunks.received.Records >= j.ledger.Received.Records {
		j.ledger.Received = j.chunks.received
	}
	j.ledger.Committed = j.chunks.kept
	return a.conn.PutLedger(ctx, j.id, &j.ledger)
}

// receive takes in one result from the log.
func (a *aggregator) receive(ctx context.Context, r *queue.Result) error {
	j, err := a.jobOf(ctx, r.ID.Job)
	if err != nil {
		return err
	}
	m := a.opts.Metrics
	if j == nil || j.dropped {
		m.results.WithLabelValues("stale").Inc()
		return a.conn.PurgePart(ctx, r.ID.Job, r.ID.Part)
	}
	result, err := r.Parse()
	if err != nil {
		return a.fail(ctx, j, fmt.Errorf("read the result of chunk %d: %w", r.ID.Chunk, err))
	}
	if result.Failure != "" {
		return a.fail(ctx, j, fmt.Errorf("chunk %d: %s", r.ID.Chunk, result.Failure))
	}
	v, err := j.chunks.receive(result, r.Seq)
	switch {
	case err != nil:
		return a.fail(ctx, j, err)
	case v == stale:
		m.results.WithLabelValues("stale").Inc()
		return a.conn.PurgePart(ctx, j.id, r.ID.Part)
	case v == duplicate:
		m.results.WithLabelValues("duplicate").Inc()
		a.log.Debug("copy of a result ignored", "job", j.id, "chunk", r.ID.Chunk, "part", r.ID.Part)
		return nil
	}
	m.results.WithLabelValues("accepted").Inc()
	if !a.fits() {
		j.chunks.forget(r.ID.Chunk)
	}
	if a.opts.Received != nil {
		a.opts.Received(j.id, j.chunks.received)
	}
	return a.advance(ctx, j, r.ID.Part)
}

// fits reports whether the memory budget holds all results that are kept.
func (a *aggregator) fits() bool {
	var bytes int64
	for _, j := range a.jobs {
		bytes += j.chunks.inMemory
	}
	return bytes <= a.opts.Memory
}

// jobOf returns the job that a result belongs to, nil if there is none. A
// result may overtake the record of its job.
func (a *aggregator) jobOf(ctx context.Context, id string) (*job, error) {
	if j := a.jobs[id]; j != nil {
		return j, nil
	}
	record, err := a.conn.Job(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := a.takeUp(ctx, record); err != nil {
		return nil, err
	}
	return a.jobs[id], nil
}

// advance commits a part if it is full, and finishes the job if that was all.
func (a *aggregator) advance(ctx context.Context, j *job, part int64) error {
	if j.dropped || j.waits {
		return nil
	}
	if j.chunks.full(part) {
		footer, err := a.commit(ctx, j, part)
		if err == nil {
			err = j.note(footer)
		}
		if errors.Is(err, errLost) {
			a.log.Warn("results are lost; the same submit brings them again", "job", j.id, "part", part, "error", err)
			return nil
		}
		if err != nil {
			return a.waitOrFail(ctx, j, err)
		}
		j.chunks.commit(part)
		a.log.Info("part committed", "job", j.id, "part", part, "records", footer.Records)
		if err := a.publish(ctx, j); err != nil {
			return err
		}
		if err := a.conn.PurgePart(ctx, j.id, part); err != nil {
			return err
		}
	}
	if j.chunks.done() {
		return a.finish(ctx, j)
	}
	return nil
}

// errLost says that the log no longer has what it had.
var errLost = errors.New("result lost")

// commit stitches a full part. From here on it does not look at ctx, but where
// results must be read again: a part is soon written, and half of one is waste.
func (a *aggregator) commit(ctx context.Context, j *job, number int64) (dataset.Footer, error) {
	part, err := j.dir.NewPart(int(number))
	if err != nil {
		return dataset.Footer{}, err
	}
	defer part.Abort()
	start := time.Now()
	var all tally.Tally
	first, end := j.chunks.span(number)
	for chunk := first; chunk < end; chunk++ {
		h := j.chunks.at(chunk)
		result := h.result
		if result == nil {
			if result, err = a.reread(ctx, h.seq); errors.Is(err, queue.ErrNotFound) {
				j.chunks.lose(chunk)
				return dataset.Footer{}, fmt.Errorf("chunk %d: %w: %w", chunk, errLost, err)
			} else if err != nil {
				return dataset.Footer{}, fmt.Errorf("read chunk %d again: %w", chunk, err)
			}
		}
		counts, err := tally.Parse(result.Tally)
		if err != nil {
			return dataset.Footer{}, fmt.Errorf("statistics of chunk %d: %w", chunk, err)
		}
		all.Merge(counts)
		err = part.Add(dataset.Chunk{
			First: result.First, Records: int(result.Records()), Digest: result.Digest,
			Results: result.Results, Rejects: result.Rejects, Tally: counts,
		})
		if err != nil {
			return dataset.Footer{}, err
		}
	}
	footer, err := part.Commit()
	if err == nil {
		a.opts.Metrics.committed(&all, time.Since(start))
	}
	return footer, err
}

func (a *aggregator) reread(ctx context.Context, seq uint64) (*wire.Result, error) {
	a.opts.Metrics.rereads.Inc()
	r, err := a.conn.ReadResult(ctx, seq)
	if err != nil {
		return nil, err
	}
	return r.Parse()
}

// finish completes a dataset of which every part is committed.
func (a *aggregator) finish(ctx context.Context, j *job) error {
	if wire.SumParts(j.ledger.Parts) != j.totals.PartsSHA256 {
		return a.fail(ctx, j, errors.New("parts were made from another corpus than the one that was read to its end"))
	}
	in := dataset.Input{
		Records: j.totals.Records, Chunks: j.totals.Chunks,
		CorpusSHA256: hex.EncodeToString(j.totals.CorpusSHA256[:]),
	}
	for _, s := range j.totals.Sources {
		in.Sources = append(in.Sources, dataset.Source{Name: s.Name, Bytes: s.Bytes, SHA256: hex.EncodeToString(s.SHA256[:])})
	}
	if _, err := j.dir.Finish(in); err != nil {
		return a.waitOrFail(ctx, j, err)
	}
	j.drop()
	j.ledger.State = wire.Done
	a.opts.Metrics.jobs.WithLabelValues("done").Inc()
	a.log.Info("job done", "job", j.id, "records", j.totals.Records, "parts", j.chunks.parts())
	return a.publish(ctx, j)
}

// fail gives a job up: what is wrong with it, waiting cannot heal. It returns an
// error only if that could not be told.
func (a *aggregator) fail(ctx context.Context, j *job, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	j.drop()
	j.ledger.State, j.ledger.Reason = wire.Failed, cause.Error()
	a.opts.Metrics.jobs.WithLabelValues("failed").Inc()
	a.log.Error("job failed", "job", j.id, "error", cause)
	return a.publish(ctx, j)
}
