package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

func newResume() *cobra.Command {
	return newJobVerb(&cobra.Command{
		Use:   "resume JOB",
		Short: "Let a job go on that was paused, or interrupted, or has lost messages",
		Long: `Takes back flipmill pause. Where chunks of the job are neither committed nor on the
server and nobody hands them over, because its submit was interrupted or messages
were lost, it reads the corpus again and hands over those alone. Whether a submit
is alive shows within 15 seconds. A job that has failed begins again with what is
committed: first remove the cause.

The job's record says where its corpus is. If it cannot be read from here, or came
by standard input, the command is printed that does the same elsewhere. A server that
has lost its store gets the record back from the job's aggregator, which takes some
seconds; resume waits for it while the store is not older than 15 seconds. Where
there is no such aggregator, flipmill submit begins again and keeps the parts that
are committed.`,
		Example: `  flipmill resume boards --wait`,
	}, func(ctx context.Context, v *jobVerb) error {
		if err := v.conn.Ensure(ctx, queue.Limits{}); err != nil { // a stream may be among what is lost
			return err
		}
		err := v.conn.PutOrder(ctx, v.id, wire.Proceed)
		if errors.Is(err, queue.ErrNotFound) {
			if err := v.awaitRecord(ctx); err != nil {
				return err
			}
			err = v.conn.PutOrder(ctx, v.id, wire.Proceed)
		}
		var job *wire.Job
		if errors.Is(err, queue.ErrEnded) {
			if job, err = v.failed(ctx, err); errors.Is(err, queue.ErrEnded) && v.c.Wait {
				return v.tell(ctx) // who waits for a job's end is told which it was
			}
		} else if err == nil {
			job, err = v.forsaken(ctx)
		}
		if err != nil {
			return err
		}
		if job != nil {
			if err := v.redrive(ctx, "resume", job); err != nil {
				return err
			}
		}
		return v.tell(ctx)
	})
}

// awaitRecord waits until an aggregator has put back a record that the server has
// lost: it begins to do so as soon as it notices. A server that has had its store for
// longer would know the job by now.
func (v *jobVerb) awaitRecord(ctx context.Context) error {
	unknown := fmt.Errorf("%w: nothing is known of job %s; if it was begun, flipmill submit begins again and keeps what is committed", queue.ErrNotFound, v.id)
	if _, ago, err := v.conn.Began(ctx); err != nil {
		return err
	} else if ago > view.Silence {
		return unknown
	}
	fmt.Fprintf(v.err, "no record of job %s: if the server has lost its store, the job's aggregator puts it back; waiting up to %v\n", v.id, view.Silence)
	ctx, cancel := context.WithTimeoutCause(ctx, view.Silence, errTimeUp)
	defer cancel()
	for _, err := range v.conn.WatchStanding(ctx, v.id) {
		switch {
		case err == nil:
			return nil
		case errors.Is(context.Cause(ctx), errTimeUp):
			return unknown
		default:
			return err
		}
	}
	return nil
}

// tell prints where the job stands, with --wait when it has ended.
func (v *jobVerb) tell(ctx context.Context) error {
	s, err := v.conn.Standing(ctx, v.id)
	if err != nil {
		return err
	}
	now := view.NewStatus(s, time.Now())
	if v.c.Wait {
		if now, err = v.follow(ctx, func(*view.Status) error { return nil }); err != nil {
			return err
		}
	}
	if err := v.print(now, now.Line()+"\n", false); err != nil {
		return err
	}
	if v.c.Wait {
		return outcome(now)
	}
	return nil
}

// failed returns the job if it has failed: then it can be driven again. If it has
// ended otherwise, the error is that.
func (v *jobVerb) failed(ctx context.Context, ended error) (*wire.Job, error) {
	s, err := v.conn.Standing(ctx, v.id)
	if err == nil && s.State() != wire.Failed.String() {
		err = ended
	}
	if err != nil {
		return nil, err
	}
	return s.Job, nil
}

// forsaken returns the job if chunks of it are missing that nobody hands over.
func (v *jobVerb) forsaken(ctx context.Context) (*wire.Job, error) {
	stored, err := v.conn.Stored(ctx, v.id)
	if err != nil {
		return nil, err
	}
	s, err := v.conn.Standing(ctx, v.id) // after what is stored, see Locate
	if err != nil {
		return nil, err
	}
	if s.Job.Totals != nil {
		if !lacks(s, stored) {
			return nil, nil
		}
		return s.Job, nil
	}
	fmt.Fprintf(v.err, "looking whether the submit of job %s is alive\n", v.id)
	driven, err := v.driven(ctx, s)
	if driven || err != nil {
		return nil, err
	}
	return s.Job, nil
}

// lacks reports whether a chunk of a sealed job is neither committed nor stored.
func lacks(s *queue.Standing, stored map[int64]bool) bool {
	for chunk := range s.Job.Totals.Chunks {
		committed := false
		if s.Ledger != nil {
			_, committed = s.Ledger.Part(chunk / int64(s.Job.Spec.PartChunks))
		}
		if !committed && !stored[chunk] {
			return true
		}
	}
	return false
}

// driven listens whether somebody drives the job: then its record is written again
// every few seconds.
func (v *jobVerb) driven(ctx context.Context, s *queue.Standing) (bool, error) {
	patience := min(view.Silence, view.Silence-time.Since(s.Driven)) // a clock may be behind
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errTimeUp)
	defer cancel()
	for now, err := range v.conn.WatchStanding(ctx, v.id) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errTimeUp):
			return false, nil
		case err != nil:
			return false, err
		case !now.Driven.Equal(s.Driven):
			return true, nil
		}
	}
	return false, nil
}

// redrive drives the corpus of a job once more, which hands over what is missing.
func (v *jobVerb) redrive(ctx context.Context, verb string, job *wire.Job) error {
	c := *v.c
	c.HTTP = ""
	if err := reach(ctx, job, &c); err != nil {
		return err
	}
	open := func(ctx context.Context) (*corpus.Corpus, error) {
		puzzles, err := openCorpus(ctx, job.Spec, job.Origin.Paths, nil)
		if err != nil {
			return nil, elsewhere(job, err)
		}
		return puzzles, nil
	}
	s := &submission{c: &c, verb: verb, job: job.ID, spec: job.Spec, origin: job.Origin, open: open, stderr: v.err, log: v.log}
	return s.run(ctx)
}

// reach goes to the folder from which the job's corpus can be read, and makes sure
// that it still is what it was, if that is known.
func reach(ctx context.Context, job *wire.Job, c *config.Config) error {
	o := job.Origin
	switch {
	case o == nil:
		return fmt.Errorf("nobody knows where the corpus of job %s is: submit it again", job.ID)
	case !slices.Contains(queue.Lanes(), queue.Lane(o.Lane)):
		return fmt.Errorf("the origin of job %s names the lane %q", job.ID, o.Lane)
	case slices.Contains(o.Paths, corpus.Stdin):
		return elsewhere(job, errors.New("it came by standard input, which is to come again"))
	}
	if job.Spec.Generate.Kind != "" {
		return nil // it is the same everywhere
	}
	if slices.ContainsFunc(o.Paths, func(path string) bool { return !object.Is(path) }) { // a bucket is the same from everywhere
		if err := c.Anchor(); err != nil {
			return err
		}
		if err := os.Chdir(o.Directory); err != nil {
			return elsewhere(job, err)
		}
	}
	if job.Totals == nil {
		return nil
	}
	sources, err := corpus.Fingerprint(ctx, o.Paths, nil)
	if err != nil {
		return elsewhere(job, err)
	}
	if was, is := hex.EncodeToString(job.Totals.CorpusSHA256[:]), corpus.Sum(sources); was != is {
		return elsewhere(job, fmt.Errorf("it is another one here: sha256 %.12s, it was %.12s", is, was))
	}
	return nil
}

// elsewhere says how to drive a job whose corpus cannot be read here.
func elsewhere(job *wire.Job, cause error) error {
	o := job.Origin
	words := slices.Concat([]string{"cd", o.Directory, "&&", "flipmill", "submit"}, o.Flags)
	if slices.ContainsFunc(o.Paths, func(path string) bool { return strings.HasPrefix(path, "-") && path != corpus.Stdin }) {
		words = append(words, "--")
	}
	words = append(words, o.Paths...)
	for i, word := range words {
		words[i] = shellWord(word)
	}
	return fmt.Errorf("the corpus of job %s cannot be read here: %w; where it can be, as on %s, run\n  %s", job.ID, cause, o.Host, strings.Join(words, " "))
}

// shellWord quotes a word for a shell, if need be.
func shellWord(word string) string {
	if word == "&&" || regexp.MustCompile(`^[\w%+,./:=@-]+$`).MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// originOf says where the corpus is that is being handed over, and how.
func originOf(c *config.Config, job string, paths []string) (*wire.Origin, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("say where the corpus is: %w", err)
	}
	directory, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("say where the corpus is: %w", err)
	}
	return &wire.Origin{
		Host: host, Directory: directory, Paths: paths, Lane: c.Lane, Window: c.Window,
		Flags: append([]string{"--job=" + job}, c.JobFlags("lane", "window")...),
	}, nil
}
