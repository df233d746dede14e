package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/flipmill/flipmill/producer"
)

func newSubmit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "submit CORPUS...",
		Short: "Hand a corpus over to the workers on a NATS server",
		Long: `Creates a job on a NATS server and hands it the corpus, as fast as aggregator and
workers follow: no more than --window parts are on the server at once. It ends
when the corpus is handed over; with --wait, when the dataset is complete.

Whatever was interrupted or lost, the same command again finishes the job: parts
that are committed are compared with the corpus, and of the others only those
chunks are handed over that the server lacks. flipmill resume does the same, and
knows the command.

With --generate there is no CORPUS: the workers make the boards, and only their
numbers are handed over.`,
		Example: `  flipmill submit boards.txt --size 5x5 --nats-url nats://broker:4222 --wait
  cat boards.txt | flipmill submit - --size 5x5 --job piped
  flipmill submit --generate all --size 4x5 --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			if err := wantCorpus(cmd, c, args); err != nil {
				return err
			}
			spec, err := specOf(c)
			if err != nil {
				return err
			}
			s := &submission{
				c: c, verb: "submit", job: jobOf(c, args), spec: spec, stderr: cmd.ErrOrStderr(),
				log: daemon.NewLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel),
			}
			if s.origin, err = originOf(c, s.job, args); err != nil {
				return err
			}
			s.open = func(ctx context.Context) (*corpus.Corpus, error) { return openCorpus(ctx, spec, args, cmd.InOrStdin()) }
			if err := s.run(cmd.Context()); err != nil {
				return err
			}
			return s.outcome.print(cmd.OutOrStdout(), c.JSON)
		},
	}
	config.Flags(cmd)
	return cmd
}

// submission carries one job from its corpus to the queue.
type submission struct {
	c       *config.Config
	verb    string // who does it
	job     string
	spec    puzzle.Spec
	origin  *wire.Origin
	open    func(context.Context) (*corpus.Corpus, error)
	puzzles *corpus.Corpus // until they are handed over; then nil, and they are opened anew
	stderr  io.Writer
	log     *slog.Logger

	conn      *queue.Conn
	meter     *meter
	published atomic.Int64                  // records
	reading   atomic.Pointer[corpus.Corpus] // puzzles, or those of a later drive
	opts      producer.Options
	output    atomic.Pointer[string] // identity of the one that the job belongs to; nil before that is known
	seen      *monitor
	outcome   *submitted // after a good end
}

func (s *submission) run(ctx context.Context) (err error) {
	drain, abort, stop := daemon.Context(ctx, s.c.StopTimeout)
	defer stop()
	if s.puzzles, err = s.open(drain); drain.Err() != nil {
		return stopped(drain)
	}
	if err != nil {
		return err
	}
	s.seen = newMonitor(0)
	s.reading.Store(s.puzzles)
	s.meter = newMeter(s.verb, "records", reading(s.spec, &s.published, func() (read, total int64) { return s.reading.Load().Progress() }))
	if s.conn, err = connect(drain, s.c, s.verb, s.log); err != nil {
		return err
	}
	defer s.conn.Close()
	unwatch, err := s.seen.serve(s.c.HTTP, s.conn, nil, s.log)
	if err != nil {
		return err
	}
	defer unwatch()
	ended := make(chan error, 1)
	go func() { ended <- s.drive(drain) }()
	select {
	case err = <-ended:
	case <-abort.Done():
	}
	switch {
	case drain.Err() != nil:
		return fmt.Errorf("%w; the same command finishes the rest", stopped(drain))
	case errors.Is(err, producer.ErrJobFailed):
		return withCode(exitJobFailed, err)
	case err != nil:
		return err
	}
	s.outcome, err = s.look(ctx)
	return err
}

// drive hands the corpus over and, if so asked, waits for the end. Where the server
// loses its store meanwhile, it begins again.
func (s *submission) drive(ctx context.Context) error {
	s.opts = producer.Options{
		Job: s.job, Spec: s.spec, Origin: s.origin, Window: s.origin.Window, Lane: queue.Lane(s.origin.Lane), Published: s.count,
		Metrics: producer.NewMetrics(s.seen.registry), Log: s.log,
	}
	defer s.meter.show(s.stderr, s.c.Progress)()
	for {
		if err := s.conn.Ensure(ctx, queue.Limits{}); err != nil {
			return err
		}
		began, _, err := s.conn.Began(ctx)
		if err == nil {
			err = s.driveOnce(ctx)
		}
		if !errors.Is(err, queue.ErrNotFound) || !s.readableAgain() {
			return err
		}
		switch now, _, lost := s.conn.Began(ctx); {
		case lost != nil && !errors.Is(lost, queue.ErrNotFound):
			return err
		case lost == nil && now.Equal(began):
			return err // the job alone is gone: somebody has deleted it
		}
		fmt.Fprintf(s.stderr, "the NATS server has lost its store; what of job %s is not committed is handed over again\n", s.job)
	}
}

func (s *submission) driveOnce(ctx context.Context) error {
	var before uint32 // number of the drive before this one
	switch job, err := s.conn.Job(ctx, s.job); {
	case err == nil:
		if diff := dataset.Difference(job.Spec, s.spec); diff != "" {
			return fmt.Errorf("job %s is on this server with other options: %s; name another --job", s.job, diff)
		}
		before = job.Epoch
	case !errors.Is(err, queue.ErrNotFound):
		return err
	}
	s.seen.works()
	group, ctx := errgroup.WithContext(ctx)
	driven, heard := make(chan struct{}), make(chan struct{}, 1)
	group.Go(func() error {
		defer close(driven)
		err := s.handOver(ctx)
		if err == nil && !s.c.Wait {
			return errDone
		}
		return err
	})
	group.Go(func() error { return s.follow(ctx, before, heard, driven) })
	group.Go(func() error {
		s.sayWhoIsMissing(ctx, heard)
		return nil
	})
	if err := group.Wait(); !errors.Is(err, errDone) {
		return err
	}
	return nil
}

// readableAgain reports whether the corpus can be read more than once.
func (s *submission) readableAgain() bool { return !slices.Contains(s.origin.Paths, corpus.Stdin) }

// handOver drives the corpus, and again whenever the server has lost some of what
// it was given, if the corpus can be read again.
func (s *submission) handOver(ctx context.Context) error {
	for {
		err := s.handOverOnce(ctx)
		if !errors.Is(err, protocol.ErrLost) || !s.readableAgain() {
			return err
		}
		fmt.Fprintf(s.stderr, "%v; what is missing is handed over again\n", err)
	}
}

// handOverOnce closes the corpus itself: when a stop is cut short, reading may still
// wait for a pipe.
func (s *submission) handOverOnce(ctx context.Context) error {
	puzzles := s.puzzles
	s.puzzles = nil
	if puzzles == nil {
		if err := s.conn.Ensure(ctx, queue.Limits{}); err != nil { // a stream may be among what is lost
			return err
		}
		var err error
		if puzzles, err = s.open(ctx); err != nil {
			return err
		}
		s.reading.Store(puzzles)
	}
	defer puzzles.Close()
	return producer.Run(ctx, s.conn, puzzles, s.opts)
}

// count notes how many records are handed over. Who waits for the dataset is not told
// of them, but of those that are in it.
func (s *submission) count(published int64) {
	s.published.Store(published)
	if !s.c.Wait {
		s.meter.done.Store(published)
	}
}

// follow looks where the job stands until it has ended and the corpus is driven:
// a job may have been done before, and still the corpus must be the same. What came
// of the drives before this one is of no interest.
func (s *submission) follow(ctx context.Context, before uint32, heard chan<- struct{}, driven <-chan struct{}) error {
	var last time.Time
	waiting := false
	for now, err := range s.conn.WatchStanding(ctx, s.job) {
		if err != nil {
			return err
		}
		ledger := now.Ledger
		if ledger == nil || now.Job.Epoch <= before || now.Heard.Equal(last) && !now.Ended() {
			continue
		}
		last = now.Heard
		select {
		case heard <- struct{}{}:
		default: // it will hear of the one before
		}
		s.output.Store(&ledger.Output)
		if s.c.Wait {
			s.meter.done.Store(ledger.Committed.Records)
		}
		if waits := !now.Ended() && ledger.Reason != ""; waits != waiting {
			if waiting = waits; waits {
				fmt.Fprintf(s.stderr, "job %s waits: %s\n", s.job, view.Harmless(ledger.Reason))
			}
		}
		switch {
		case !now.Ended():
		case ledger.State == wire.Done:
			select {
			case <-driven:
				return errDone
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			return fmt.Errorf("%w: %s", producer.ErrJobFailed, protocol.Refusal(ledger, now.Order))
		}
	}
	return nil
}

// How long an aggregator may be silent before people are told: to take a job up,
// and later, when it has something to say every few seconds.
const (
	firstSilence = 2 * time.Second
	laterSilence = 10 * time.Second
)

// sayWhoIsMissing tells people, until ctx ends, each time that the aggregator
// falls silent: the job then stands still.
func (s *submission) sayWhoIsMissing(ctx context.Context, heard <-chan struct{}) {
	patience := firstSilence
	for {
		timer := time.NewTimer(patience)
		select {
		case <-heard:
		case <-timer.C:
			of := ""
			if output := s.output.Load(); output != nil && *output != "" {
				of = " of output " + *output
			}
			fmt.Fprintf(s.stderr, "job %s waits for its aggregator: is flipmill aggregator%s running at %s?\n", s.job, of, redact(s.c.NATSURL))
			select {
			case <-heard:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		patience = laterSilence
	}
}

// submitted is what a submission has come to.
type submitted struct {
	Job       string `json:"job"`
	State     string `json:"state"`
	Records   int64  `json:"records"`
	Chunks    int64  `json:"chunks"`
	Committed int64  `json:"committed"` // records that are in the dataset by now
}

func (s *submission) look(ctx context.Context) (*submitted, error) {
	now, err := s.conn.Standing(ctx, s.job)
	if err != nil {
		return nil, err
	}
	totals := now.Job.Totals
	if totals == nil || now.Ledger == nil { // somebody has deleted the job and begun it again
		return nil, fmt.Errorf("job %s has lost its totals", s.job)
	}
	return &submitted{s.job, now.State(), totals.Records, totals.Chunks, now.Ledger.Committed.Records}, nil
}

// print writes the outcome for people, or as JSON.
func (o *submitted) print(w io.Writer, asJSON bool) error {
	text := fmt.Appendf(nil, "job %s: %s records handed over, %s in the dataset, %s\n", o.Job, view.Thousands(o.Records), view.Thousands(o.Committed), o.State)
	if asJSON {
		var err error
		if text, err = document(o); err != nil {
			return fmt.Errorf("write the outcome: %w", err)
		}
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the outcome: %w", err)
	}
	return nil
}
