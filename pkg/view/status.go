package view

import (
	"fmt"
	"math"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Status is what people are told of a job. It is made in one place from the job's
// records, so that whoever is asked says the same.
type Status struct {
	Job       string     `json:"job"`
	State     string     `json:"state"`
	Reason    string     `json:"reason,omitempty"` // why it failed, or what it waits for
	Records   *int64     `json:"records"`          // in the corpus; null until it is read to its end
	Chunks    *int64     `json:"chunks"`
	Percent   *float64   `json:"percent"` // of the records; 100 only when the dataset is committed
	Received  Count      `json:"received"`
	Committed Count      `json:"committed"`
	Parts     int        `json:"parts"`     // committed
	Retryable int64      `json:"retryable"` // rejects for which a retry may help, of a job that is done
	Drives    uint32     `json:"drives"`
	Output    string     `json:"output,omitempty"` // identity of the output that has the dataset
	Holder    string     `json:"holder,omitempty"` // aggregator that serves the job
	Heard     *time.Time `json:"heard"`            // when an aggregator last wrote the ledger
	Silent    *float64   `json:"silent_seconds"`   // since then, while the job is under way
	Trouble   *Trouble   `json:"trouble"`          // what went wrong last with a task, while the job is under way
}

// Trouble is what a worker wrote down.
type Trouble struct {
	Chunk     int64     `json:"chunk"`
	Delivered int64     `json:"delivered"` // how often the task had been delivered by then
	Message   string    `json:"message"`
	At        time.Time `json:"at"`
}

// Count is a number of chunks with the records in them.
type Count struct {
	Chunks  int64 `json:"chunks"`
	Records int64 `json:"records"`
}

// Silence is how long nothing is heard of a living aggregator, at most: it
// writes the ledger of a job that is under way every few seconds.
const Silence = 15 * time.Second

// NewStatus says how a job is.
func NewStatus(s *queue.Standing, now time.Time) *Status {
	v := &Status{Job: s.Job.ID, State: s.State(), Drives: s.Job.Epoch}
	if t := s.Job.Totals; t != nil {
		v.Records, v.Chunks = &t.Records, &t.Chunks
	}
	if l := s.Ledger; l != nil {
		v.Reason, v.Parts = l.Reason, len(l.Parts)
		v.Retryable = l.Retryable
		v.Output, v.Holder = l.Output, l.Holder
		v.Received, v.Committed = Count(l.Received), Count(l.Committed)
		heard := s.Heard.UTC()
		v.Heard = &heard
		if !s.Ended() {
			silent := max(0, now.Sub(heard).Seconds())
			v.Silent = &silent
		}
	}
	if all := s.Troubles.Latest; len(all) > 0 && !s.Ended() {
		t := NewTrouble(all[len(all)-1])
		v.Trouble = &t
	}
	if percent, known := progress(s); known {
		v.Percent = &percent
	}
	return v
}

// NewTrouble says what went wrong.
func NewTrouble(t wire.Trouble) Trouble {
	return Trouble{t.Chunk, t.Delivered, t.Message, time.UnixMilli(t.At).UTC()}
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

// Progress writes the progress for people.
func (s *Status) Progress() string {
	if s.Percent == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", *s.Percent)
}

// Total writes the number of records for people.
func (s *Status) Total() string {
	if s.Records == nil {
		return "-"
	}
	return Thousands(*s.Records)
}

// Aggregator says what is heard of the aggregator.
func (s *Status) Aggregator() string {
	none := "no aggregator"
	if s.Output != "" {
		none += " of output " + s.Output
	}
	switch {
	case s.Heard == nil:
		return "no aggregator has taken the job up"
	case s.Silent == nil:
		return "wrote the last word at " + s.Heard.Format(time.RFC3339)
	case s.Unserved():
		return fmt.Sprintf("%s has been heard of for %.0f s", none, *s.Silent)
	case s.Holder == "":
		return none + " has the job at the moment"
	}
	return fmt.Sprintf("%s, heard of %.0f s ago", s.Holder, *s.Silent)
}

// Unserved reports whether no aggregator seems to be there for a job that is
// under way.
func (s *Status) Unserved() bool {
	return s.Heard == nil || s.Silent != nil && *s.Silent > Silence.Seconds()
}

// Line is the status as one line.
func (s *Status) Line() string {
	text := fmt.Sprintf("%s  %s  %s  %s of %s records received, %s committed in %s",
		s.Job, s.State, s.Progress(), Thousands(s.Received.Records), s.Total(), Thousands(s.Committed.Records), Times(s.Parts, "part", "parts"))
	if s.Unserved() {
		text += "; " + s.Aggregator()
	}
	if s.Reason != "" {
		text += "; " + Harmless(s.Reason)
	}
	return text
}

// String is the trouble for people.
func (t *Trouble) String() string {
	return fmt.Sprintf("chunk %d, at delivery %d, at %s: %s", t.Chunk, t.Delivered, t.At.Format(time.RFC3339), Harmless(t.Message))
}
