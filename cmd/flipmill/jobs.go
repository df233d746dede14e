package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// jobVerb is what the verbs that look at a job or give it an order have in
// common: a connection, and the job's id as their argument. They need neither
// producer nor workers nor aggregator, because they ask the broker's records.
type jobVerb struct {
	c    *config.Config
	conn *queue.Conn
	out  io.Writer
	err  io.Writer
	log  *slog.Logger
	id   string // empty for list
}

// newJobVerb completes a command whose work is run.
func newJobVerb(cmd *cobra.Command, run func(context.Context, *jobVerb) error) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = wantArgs(1, 1, "one JOB, as flipmill list shows it")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := load(cmd)
		if err != nil {
			return err
		}
		v := &jobVerb{
			c: c, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(),
			log: daemon.NewLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel),
		}
		if len(args) > 0 {
			v.id = args[0]
			if err := puzzle.CheckJob(v.id); err != nil {
				return withCode(exitUsage, err)
			}
		}
		if v.conn, err = connect(cmd.Context(), c, cmd.Name(), v.log); err != nil {
			return err
		}
		defer v.conn.Close()
		err = run(cmd.Context(), v)
		if errors.Is(err, queue.ErrNotFound) {
			return withCode(exitNotFound, err)
		}
		return err
	}
	config.Flags(cmd)
	return cmd
}

// view is what the verbs tell of a job. It is made in one place from the job's
// records, so that whoever is asked says the same.
type view struct {
	Job       string     `json:"job"`
	State     string     `json:"state"`
	Reason    string     `json:"reason,omitempty"` // why it failed, or what it waits for
	Records   *int64     `json:"records"`          // in the corpus; null until it is read to its end
	Chunks    *int64     `json:"chunks"`
	Percent   *float64   `json:"percent"` // of the records; 100 only when the dataset is committed
	Received  count      `json:"received"`
	Committed count      `json:"committed"`
	Parts     int        `json:"parts"`     // committed
	Retryable int64      `json:"retryable"` // rejects for which a retry may help, of a job that is done
	Drives    uint32     `json:"drives"`
	Output    string     `json:"output,omitempty"` // identity of the output that has the dataset
	Holder    string     `json:"holder,omitempty"` // aggregator that serves the job
	Heard     *time.Time `json:"heard"`            // when an aggregator last wrote the ledger
	Silent    *float64   `json:"silent_seconds"`   // since then, while the job is under way
	Trouble   *trouble   `json:"trouble"`          // what went wrong last with a task, while the job is under way
}

// trouble is what a worker wrote down.
type trouble struct {
	Chunk     int64     `json:"chunk"`
	Delivered int64     `json:"delivered"` // how often the task had been delivered by then
	Message   string    `json:"message"`
	At        time.Time `json:"at"`
}

type count struct {
	Chunks  int64 `json:"chunks"`
	Records int64 `json:"records"`
}

// silence is how long nothing is heard of a living aggregator, at most: it
// writes the ledger of a job that is under way every few seconds.
const silence = 15 * time.Second

func newView(s *queue.Standing, now time.Time) *view {
	v := &view{Job: s.Job.ID, State: s.State(), Drives: s.Job.Epoch}
	if t := s.Job.Totals; t != nil {
		v.Records, v.Chunks = &t.Records, &t.Chunks
	}
	if l := s.Ledger; l != nil {
		v.Reason, v.Parts = l.Reason, len(l.Parts)
		v.Retryable = l.Retryable
		v.Output, v.Holder = l.Output, l.Holder
		v.Received, v.Committed = count(l.Received), count(l.Committed)
		heard := s.Heard.UTC()
		v.Heard = &heard
		if !s.Ended() {
			silent := max(0, now.Sub(heard).Seconds())
			v.Silent = &silent
		}
	}
	if all := s.Troubles.Latest; len(all) > 0 && !s.Ended() {
		t := all[len(all)-1]
		v.Trouble = &trouble{t.Chunk, t.Delivered, t.Message, time.UnixMilli(t.At).UTC()}
	}
	if percent, known := progress(s); known {
		v.Percent = &percent
	}
	return v
}

// progress returns how many percent of the records are solved, with one digit
// after the point. It is unknown while the corpus is being read, never falls,
// and is 100 only when the dataset is committed.
func progress(s *queue.Standing) (percent float64, known bool) {
	switch {
	case s.Ended() && s.Ledger.State == wire.Done:
		return 100, true
	case s.Job.Totals == nil:
		return 0, false
	case s.Ledger == nil || s.Job.Totals.Records == 0:
		return 0, true
	}
	percent = 100 * float64(s.Ledger.Received.Records) / float64(s.Job.Totals.Records)
	return min(math.Floor(10*percent)/10, 99.9), true
}

// percent writes the progress for people.
func (v *view) percent() string {
	if v.Percent == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", *v.Percent)
}

// total writes the number of records for people.
func (v *view) total() string {
	if v.Records == nil {
		return "-"
	}
	return thousands(*v.Records)
}

// aggregator says what is heard of the aggregator.
func (v *view) aggregator() string {
	none := "no aggregator"
	if v.Output != "" {
		none += " of output " + v.Output
	}
	switch {
	case v.Heard == nil:
		return "no aggregator has taken the job up"
	case v.Silent == nil:
		return "wrote the last word at " + v.Heard.Format(time.RFC3339)
	case v.unserved():
		return fmt.Sprintf("%s has been heard of for %.0f s", none, *v.Silent)
	case v.Holder == "":
		return none + " has the job at the moment"
	}
	return fmt.Sprintf("%s, heard of %.0f s ago", v.Holder, *v.Silent)
}

// unserved reports whether no aggregator seems to be there for a job that is
// under way.
func (v *view) unserved() bool {
	return v.Heard == nil || v.Silent != nil && *v.Silent > silence.Seconds()
}

// line is the view as one line.
func (v *view) line() string {
	text := fmt.Sprintf("%s  %s  %s  %s of %s records received, %s committed in %d parts",
		v.Job, v.State, v.percent(), thousands(v.Received.Records), v.total(), thousands(v.Committed.Records), v.Parts)
	if v.unserved() {
		text += "; " + v.aggregator()
	}
	if v.Reason != "" {
		text += "; " + v.Reason
	}
	return text
}

// outcome is the error with which those end who waited for the job's end.
func (v *view) outcome() error {
	if v.State == wire.Done.String() {
		return nil
	}
	err := fmt.Errorf("job %s is %s", v.Job, v.State)
	if v.Reason != "" {
		err = fmt.Errorf("%w: %s", err, v.Reason)
	}
	return withCode(exitJobFailed, err)
}

// text is the trouble for people.
func (t *trouble) text() string {
	return fmt.Sprintf("chunk %d, at delivery %d, at %s: %s", t.Chunk, t.Delivered, t.At.Format(time.RFC3339), t.Message)
}

// print writes what a verb has found out, as text or, where that is wanted, as
// JSON: a document for people's eyes too, or one line of many.
func (v *jobVerb) print(value any, text string, oneLine bool) error {
	data := []byte(text)
	if v.c.JSON {
		var err error
		if oneLine {
			data, err = json.Marshal(value)
		} else {
			data, err = json.MarshalIndent(value, "", "  ")
		}
		if err != nil {
			return fmt.Errorf("write the outcome: %w", err)
		}
		data = append(data, '\n')
	}
	if _, err := v.out.Write(data); err != nil {
		return fmt.Errorf("write the outcome: %w", err)
	}
	return nil
}
