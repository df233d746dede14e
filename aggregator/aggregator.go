// Package aggregator turns results into the dataset: it collects the chunks of
// a part, stitches their row groups into files, commits them, and at the end of
// a job writes statistics and manifest.
//
// Terms: a chunk's result is accepted when it is the first, or of a newer drive
// of the corpus; a part is full when all its chunks are accepted, and committed
// when its files are durable. The ledger is what the job's producer and people
// are told of all that. The holder of a job is the one aggregator that serves it,
// until the ledger names another.
//
//	err := aggregator.Run(ctx, conn, aggregator.Options{Output: "datasets"})
//
// Invariants:
//   - A part's results are purged from the log only after its files are durable,
//     and the ledger was written since, which only the holder can. So neither a
//     restart nor the next holder needs to be told anything: the files say what
//     is committed, the log has the rest.
//   - Copies of a result change nothing, before and after the commit.
//   - A job is done only when every record of its corpus is in a committed part
//     and the manifest is written.
//
// One goroutine, the loop, owns all state, but for the ledgers in its hands, which
// another keeps fresh. What Run starts has ended when it returns.
package aggregator

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/wire"
)

// defaultMemory holds two parts of the default size.
const defaultMemory = 64 << 20

// Options says where datasets go. Output is required: a folder, or a URL of one in a bucket.
type Options struct {
	Output   string                                // where the datasets are
	Identity string                                // of the output, the same for all who share it; empty where the broker is this process's own: then nobody else serves jobs, and none is brought back
	Name     string                                // of this process, for people
	Lease    time.Duration                         // how long a holder of jobs may be silent before others take them; 0 means 15 s
	Memory   int64                                 // bytes of results kept; beyond, they are read again from the log; 0 means 64 MiB
	Received func(job string, received wire.Count) // told what has been accepted so far; may be nil
	Metrics  *Metrics                              // nil means none
	Turned   func()                                // told with every turn of the loop, one each 3 s at least; may be nil
	Log      *slog.Logger                          // nil means no logs
}

// Run serves jobs until ctx ends; its error is then ctx's.
func Run(ctx context.Context, conn *queue.Conn, opts Options) error {
	if opts.Memory == 0 {
		opts.Memory = defaultMemory
	}
	if opts.Lease == 0 {
		opts.Lease = defaultLease
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
	group, inner := errgroup.WithContext(ctx)
	a := &aggregator{
		conn: conn, opts: opts, log: opts.Log, holder: newHolder(opts.Name), group: group, results: make(chan *queue.Result),
		jobs: map[string]*job{}, others: map[string]*other{}, losses: map[string]int{}, left: map[string]uint64{},
	}
	standings := make(chan *queue.Standing)
	group.Go(func() error { return pump(inner, conn.WatchStandings(inner), standings) })
	group.Go(func() error { return a.keep(inner) })
	group.Go(func() error { return a.bringBack(inner) })
	group.Go(func() error { return a.loop(inner, standings) })
	err := group.Wait()
	a.releaseAll(ctx)
	if err != nil {
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

// aggregator is the loop's state, but for what keep has to do with.
type aggregator struct {
	conn    *queue.Conn
	opts    Options
	log     *slog.Logger
	holder  string             // who we are
	group   *errgroup.Group    // of all that Run has started
	results chan *queue.Result // of all jobs that are held

	jobs   map[string]*job   // that are held
	others map[string]*other // open ones of our output that are not
	losses map[string]int    // how often a job was taken from us
	left   map[string]uint64 // last revision of ours of a job that was left, until it is heard of

	free  <-chan time.Time // when one of the others may be taken; nil if none may
	retry <-chan time.Time // when to try again for the jobs that wait; nil if none does
	pause time.Duration    // before that; grows from one vain attempt to the next

	mu   sync.Mutex
	hold []*held // of jobs
}

// job is a job that the aggregator serves.
type job struct {
	id     string
	held   *held
	stop   func() // ends the following of its results
	dir    *dataset.Dir
	old    *dataset.Dir        // the finished dataset that dir is to replace; nil unless parts are made again
	chunks *protocol.Collector // decides; proceed carries out
	totals *wire.Totals        // nil until the job is sealed

	record    *wire.Job // as it was heard of last
	kept      []byte    // of it, in the output
	forgetful bool      // that it cannot be kept has been told

	announced bool // its end has been logged
}

// sweepTurns is how many refreshes go between two sweeps of the log.
const sweepTurns = 10

func (a *aggregator) loop(ctx context.Context, standings <-chan *queue.Standing) error {
	refresh, sweep := time.NewTicker(a.refreshTime()), time.NewTicker(sweepTurns*a.refreshTime())
	defer refresh.Stop()
	defer sweep.Stop()
	for {
		a.opts.Metrics.look(a.jobs)
		a.opts.Turned()
		var err error
		select {
		case s := <-standings:
			err = a.hear(ctx, s)
		case r := <-a.results:
			err = a.receive(ctx, r)
		case <-a.free:
			err = a.takeFree(ctx)
		case <-refresh.C:
			err = a.refresh(ctx)
		case <-sweep.C:
			err = a.sweep(ctx)
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

// open finds out how far a job has come, from its files alone.
func (a *aggregator) open(s *queue.Standing, h *held) (*job, error) {
	j, err := a.find(s.Job, s.Ledger)
	if dataset.Passes(err) {
		return nil, err // a folder that cannot be read now says nothing about the job
	}
	j.held, j.stop = h, func() {}
	if err != nil {
		j.chunks.Fail(err)
		return j, nil
	}
	if err := j.dir.Clean(); err != nil {
		a.log.Warn("what dead aggregators have left is not removed", "job", j.id, "error", err)
	}
	found := len(j.chunks.Ledger().Parts)
	a.log.Info("job taken up", "job", j.id, "committed_parts", found)
	if s.Ledger != nil && s.Ledger.State != wire.Done && len(s.Ledger.Parts) > found {
		a.log.Warn("committed parts have gone from the output; the same submit brings them again", "job", j.id,
			"committed", len(s.Ledger.Parts), "found", found)
	}
	j.chunks.Refresh()
	return j, nil
}

// find reads what is committed of a job that is open, and what an earlier process
// has said of it, if anything: that it was done begins a retry.
func (a *aggregator) find(record *wire.Job, before *wire.Ledger) (j *job, err error) {
	j = &job{id: record.ID, chunks: protocol.NewCollector(record.Spec.PartChunks)}
	if before != nil {
		j.chunks.Recall(before, record)
	}
	if j.dir, err = dataset.Open(a.opts.Output, j.id, record.Spec); err != nil {
		return j, err
	}
	if err := j.turnToRetry(before != nil && before.State == wire.Done); err != nil {
		return j, err
	}
	footers, err := j.dir.Committed()
	if err != nil {
		return j, err
	}
	for _, f := range footers {
		mark, err := markOf(f)
		if err != nil {
			return j, err
		}
		j.chunks.Restore(mark, wire.Count{Chunks: int64(f.Chunks), Records: f.Records})
	}
	return j, nil
}

// markOf returns what the ledger says of a committed part.
func markOf(f dataset.Footer) (wire.Part, error) {
	sum, err := hex.DecodeString(f.InputSHA256)
	if err != nil || len(sum) < wire.PartDigestSize {
		return wire.Part{}, fmt.Errorf("part %d: input_sha256 %q is no SHA-256", f.Part, f.InputSHA256)
	}
	return wire.Part{Number: int64(f.Part), Digest: [wire.PartDigestSize]byte(sum)}, nil
}

// receive takes in one result from the log.
func (a *aggregator) receive(ctx context.Context, r *queue.Result) error {
	j := a.jobs[r.ID.Job]
	if j == nil {
		return nil // it was on its way when the job was left
	}
	switch verdict := j.chunks.Receive(r.ID, r.Seq, r.Parse); verdict {
	case protocol.Accepted:
		a.opts.Metrics.results.WithLabelValues(verdict.String()).Inc()
		if !a.fits() {
			j.chunks.Forget(r.ID.Chunk)
		}
		if a.opts.Received != nil {
			a.opts.Received(j.id, j.chunks.Received())
		}
	case protocol.Duplicate, protocol.Stale:
		a.opts.Metrics.results.WithLabelValues(verdict.String()).Inc()
		a.log.Debug("result ignored", "job", j.id, "chunk", r.ID.Chunk, "part", r.ID.Part, "verdict", verdict.String())
	}
	return a.proceed(ctx, j)
}

// fits reports whether the memory budget holds all results that are kept.
func (a *aggregator) fits() bool {
	var bytes int64
	for _, j := range a.jobs {
		bytes += j.chunks.InMemory()
	}
	return bytes <= a.opts.Memory
}

// proceed does what is to be done for a job, until that is nothing. A job that
// has become somebody else's is left as it is: to purge anything, one must have
// written the ledger since it was durable.
func (a *aggregator) proceed(ctx context.Context, j *job) error {
	for {
		var err error
		switch step, part := j.chunks.Next(); step {
		case protocol.Commit:
			err = a.commit(ctx, j, part)
		case protocol.Finish:
			err = a.finish(ctx, j)
		case protocol.LookUp:
			err = a.lookUp(ctx, j)
		case protocol.Tell:
			if err = j.held.write(ctx, j.chunks.Ledger()); errors.Is(err, queue.ErrConflict) {
				a.lose(j)
				return nil
			}
			a.announce(j)
		case protocol.Purge:
			err = a.conn.PurgePart(ctx, j.id, part)
		case protocol.PurgeJob:
			if err = a.conn.PurgeTasks(ctx, j.id); err == nil {
				err = a.conn.PurgeResults(ctx, j.id)
			}
		default:
			if j.chunks.Ended() {
				a.leave(j)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lookUp reads the number of the latest drive, which the loop may yet have to hear
// of.
func (a *aggregator) lookUp(ctx context.Context, j *job) error {
	record, err := a.conn.Job(ctx, j.id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	if err == nil {
		j.chunks.Driven(record.Epoch)
	}
	return err
}

// announce logs and counts the end of a job, once.
func (a *aggregator) announce(j *job) {
	l := j.chunks.Ledger()
	if j.announced || !l.State.Ended() {
		return
	}
	j.announced = true
	a.opts.Metrics.jobs.WithLabelValues(l.State.String()).Inc()
	switch l.State {
	case wire.Done:
		a.log.Info("job done", "job", j.id, "records", l.Committed.Records, "parts", len(l.Parts))
	case wire.Failed:
		if a.opts.Identity != "" { // else this process ends with it, and says why
			a.log.Error("job failed", "job", j.id, "error", l.Reason)
		}
	default:
		a.log.Info("job cancelled", "job", j.id)
	}
}

// commit makes a full part durable. Where the log no longer has what it had, it
// returns queue.ErrNotFound, which ends Run: whoever calls it again begins with
// the log as it is.
func (a *aggregator) commit(ctx context.Context, j *job, part int64) error {
	footer, err := a.stitch(ctx, j, part)
	if errors.Is(err, queue.ErrNotFound) {
		return fmt.Errorf("part %d of job %s: %w", part, j.id, err)
	}
	var mark wire.Part
	if err == nil {
		mark, err = markOf(footer)
	}
	if err != nil {
		return a.waitOrFail(ctx, j, err)
	}
	a.log.Info("part committed", "job", j.id, "part", part, "records", footer.Records)
	j.chunks.Committed(mark)
	return nil
}

// stitch writes a full part. From here on it does not look at ctx, but where
// results must be read again: a part is soon written, and half of one is waste.
func (a *aggregator) stitch(ctx context.Context, j *job, number int64) (dataset.Footer, error) {
	part, err := j.dir.NewPart(int(number))
	if err != nil {
		return dataset.Footer{}, err
	}
	defer part.Abort()
	start := time.Now()
	var all tally.Tally
	first, end := j.chunks.Span(number)
	for chunk := first; chunk < end; chunk++ {
		h := j.chunks.At(chunk)
		result := h.Result
		if result == nil {
			if result, err = a.reread(ctx, h); err != nil {
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

// reread reads a result again that memory did not hold.
func (a *aggregator) reread(ctx context.Context, h *protocol.Held) (*wire.Result, error) {
	a.opts.Metrics.rereads.Inc()
	r, err := a.conn.ReadResult(ctx, h.Seq)
	if err != nil {
		return nil, err
	}
	result, err := r.Parse()
	if err != nil || !h.Same(result) {
		return nil, fmt.Errorf("%w: another one, of chunk %d of job %s, is in its place", queue.ErrNotFound, r.ID.Chunk, r.ID.Job)
	}
	return result, nil
}

// finish completes a dataset of which every part is committed.
func (a *aggregator) finish(ctx context.Context, j *job) error {
	in := dataset.Input{
		Records: j.totals.Records, Chunks: j.totals.Chunks,
		CorpusSHA256: hex.EncodeToString(j.totals.CorpusSHA256[:]),
	}
	for _, s := range j.totals.Sources {
		in.Sources = append(in.Sources, dataset.Source{Name: s.Name, Bytes: s.Bytes, SHA256: hex.EncodeToString(s.SHA256[:])})
	}
	manifest, err := j.dir.Finish(in)
	if err == nil && j.old != nil {
		err = j.old.Replace(j.dir)
	}
	if err != nil {
		return a.waitOrFail(ctx, j, err)
	}
	a.log.Info("dataset complete", "job", j.id)
	a.dropRecord(j)
	j.chunks.Retryable(j.dir.Retryable(manifest))
	j.chunks.Finished()
	return nil
}
