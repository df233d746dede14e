package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/aggregator"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/pages"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/flipmill/flipmill/producer"
	"github.com/flipmill/flipmill/worker"
)

// pipeline is one job with all three roles in this process, around a broker
// that nobody else can reach.
type pipeline struct {
	output  string
	job     string
	spec    puzzle.Spec
	dir     *dataset.Dir
	workers int
	window  int
	puzzles *corpus.Corpus
	http    string   // where seen is served, and the pages; empty for nowhere
	hosts   []string // under which names pages are asked for
	seen    *monitor
	log     *slog.Logger

	published atomic.Int64 // records handed over so far
}

// run drives the job to its end. The broker begins with nothing each time: what
// an interrupted run has committed is in the dataset's files, and the rest is
// driven again. The lock of its folder keeps a second run of the same job away.
//
// When drain ends, the roles put down what they hold; when abort ends, run
// leaves without waiting for them.
func (p *pipeline) run(drain, abort context.Context, progress io.Writer, mode string) (err error) {
	defer func() {
		if drain.Err() != nil { // whatever failed, this is why
			err = context.Cause(drain)
		}
	}()
	temp, err := p.scratch()
	if err != nil {
		return err
	}
	defer os.Remove(temp) // another job may have something in it
	store := filepath.Join(temp, p.job+".nats")
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: store, Fresh: true})
	if errors.Is(err, queue.ErrInUse) {
		return fmt.Errorf("job %s in %s is %w, probably another run of it: wait for that, or name another --job", p.job, p.output, queue.ErrInUse)
	}
	if err != nil {
		return err
	}
	defer server.Close()
	if err := p.dir.Clean(); err != nil {
		return err
	}
	conn, err := queue.Connect(drain, queue.Options{Server: server, Name: "flipmill run", Log: p.log})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Setup(drain, p.limits()); err != nil {
		return fmt.Errorf("prepare the broker: %w", err)
	}
	unwatch, err := p.seen.serve(p.http, conn, p.site, p.log)
	if err != nil {
		return err
	}
	defer unwatch()
	ended := make(chan error, 1)
	go func() { ended <- p.roles(drain, conn, progress, mode) }()
	select {
	case err = <-ended:
	case <-abort.Done():
	}
	return err
}

// scratch makes the folder in which the broker has its own: below the output or,
// where that is in a bucket, one of this process.
func (p *pipeline) scratch() (string, error) {
	if object.Is(p.output) {
		temp, err := os.MkdirTemp("", "flipmill-run-*")
		if err != nil {
			return "", fmt.Errorf("make a folder for what is on its way: %w", err)
		}
		return temp, nil
	}
	temp := filepath.Join(p.output, ".tmp")
	if err := os.MkdirAll(temp, 0o777); err != nil {
		return "", fmt.Errorf("make a folder in the output %s: %w; -o names another output", p.output, err)
	}
	return temp, nil
}

// estimate returns what tells how many records the corpus will have.
func (p *pipeline) estimate() func() (int64, bool) {
	return reading(p.spec, &p.published, p.puzzles.Progress)
}

// site returns the pages of the job.
func (p *pipeline) site(conn *queue.Conn) *pages.Site {
	total := p.estimate()
	return pages.New(pages.Options{
		Conn: conn, Output: p.output, Hosts: p.hosts, Log: p.log,
		Estimate: func(string) int64 {
			n, _ := total()
			return n
		},
	})
}

// limits says what the broker may keep: what can be on its way at once, at one
// message a chunk, and of results twice that, as half is kept free for the part
// that comes first. Memory is used only as far as it fills up.
func (p *pipeline) limits() queue.Limits {
	window := int64(p.window) * int64(p.spec.PartChunks) * queue.MostResult
	return queue.Limits{Memory: true, TaskBytes: min(window, 256<<20), ResultBytes: min(2*window, 1<<30)}
}

// errDone stops the roles when the job has come to its end.
var errDone = errors.New("job done")

// roles runs producer, worker and aggregator until the job is done or one of
// them fails.
func (p *pipeline) roles(ctx context.Context, conn *queue.Conn, progress io.Writer, mode string) error {
	m := newMeter("run", "records", p.estimate())
	defer m.show(progress, mode)()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return aggregator.Run(ctx, conn, aggregator.Options{
			Output:   p.output,
			Received: func(_ string, received wire.Count) { m.done.Store(received.Records) },
			Turned:   p.seen.works,
			Metrics:  aggregator.NewMetrics(p.seen.registry),
			Log:      p.log,
		})
	})
	group.Go(func() error {
		return worker.Run(ctx, ctx, conn, worker.Options{Slots: p.workers, Metrics: worker.NewMetrics(p.seen.registry), Log: p.log})
	})
	group.Go(func() error {
		// Not whoever waits for this: when a stop is cut short, reading may still
		// wait for a pipe.
		defer p.puzzles.Close()
		err := producer.Run(ctx, conn, p.puzzles, producer.Options{
			Job: p.job, Spec: p.spec, Window: p.window, Published: p.published.Store,
			Metrics: producer.NewMetrics(p.seen.registry), Log: p.log,
		})
		if err != nil {
			return err
		}
		return p.awaitEnd(ctx, conn)
	})
	group.Go(func() error {
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), errDone) {
			if err := conn.DropTasks(context.WithoutCancel(ctx)); err != nil {
				p.log.Debug("the end takes a little longer", "error", err)
			}
		}
		return nil
	})
	err := group.Wait()
	if errors.Is(err, errDone) {
		return nil
	}
	if errors.Is(err, producer.ErrJobFailed) {
		return withCode(exitJobFailed, err)
	}
	return err
}

// awaitEnd follows the ledger until the job has ended.
func (p *pipeline) awaitEnd(ctx context.Context, conn *queue.Conn) error {
	for ledger, err := range conn.WatchLedger(ctx, p.job) {
		switch {
		case err != nil:
			return err
		case ledger.State == wire.Done:
			return errDone
		case ledger.State == wire.Failed:
			return fmt.Errorf("%w: %s", producer.ErrJobFailed, ledger.Reason)
		}
	}
	return nil
}
