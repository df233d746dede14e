package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/view"
)

// meter is how far a verb has come. A verb that takes long makes one, shows it
// while it works, and counts:
//
//	m := newMeter("verify", "records", nil)
//	defer m.show(stderr, c.Progress)()
type meter struct {
	verb  string
	unit  string                      // what is counted
	done  atomic.Int64                // set from any goroutine
	total func() (n int64, sure bool) // how many there are in the end; 0 while nothing is known
}

func newMeter(verb, unit string, total func() (n int64, sure bool)) *meter {
	return &meter{verb: verb, unit: unit, total: total}
}

// newToldMeter is a meter for work that tells, by tell, how far it has come and of how
// many.
func newToldMeter(verb, unit string) (m *meter, tell func(done, of int64)) {
	var total atomic.Int64
	m = newMeter(verb, unit, func() (int64, bool) { return total.Load(), true })
	return m, func(done, of int64) {
		m.done.Store(done)
		total.Store(of)
	}
}

// reading estimates the number of records in a corpus from the part of its bytes
// that has been read; published tells the records in that part. Of a generated
// corpus, progress is that of boards, whose number is known.
func reading(spec puzzle.Spec, published *atomic.Int64, progress func() (read, total int64)) func() (int64, bool) {
	return func() (int64, bool) {
		read, total := progress()
		if spec.Generate.Kind != "" {
			return total, true
		}
		n := published.Load()
		switch {
		case read == 0 || total == 0:
			return 0, false
		case read >= total:
			return n, false // the last bytes may not be parsed yet
		}
		return int64(float64(n) / float64(read) * float64(total)), false
	}
}

// How often progress is shown: a bar moves, a program waits for it, a log is
// read later.
const (
	barInterval  = 100 * time.Millisecond
	jsonInterval = time.Second
	lineInterval = 5 * time.Second
)

// isTerminal reports whether people see at once what is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// show shows the meter until stop is called: as a bar, plain lines, lines of JSON,
// or not at all. The mode auto is a bar where w is a terminal and lines elsewhere.
func (m *meter) show(w io.Writer, mode string) (stop func()) {
	if mode == "auto" {
		mode = "plain"
		if isTerminal(w) {
			mode = "bar"
		}
	}
	start := time.Now()
	var show, last func()
	interval := lineInterval
	switch mode {
	case "none":
		return func() {}
	case "bar":
		bar := m.bar(w)
		interval = barInterval
		show = func() { m.move(bar, w, time.Since(start), false) }
		last = func() { // stays on the screen
			if m.move(bar, w, time.Since(start), true) {
				fmt.Fprintln(w)
			}
		}
	case "json":
		interval = jsonInterval
		show = func() { fmt.Fprintf(w, "%s\n", m.now(time.Since(start), false).json()) }
		last = func() { fmt.Fprintf(w, "%s\n", m.now(time.Since(start), true).json()) }
	default:
		show = func() { fmt.Fprintln(w, m.now(time.Since(start), false)) }
		last = func() {}
	}
	ended, shown := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(shown)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-ended:
				last()
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-shown
	}
}

// bar is the picture only. The words beside it are those of a line in a log: the
// library's own rate is of the time since it drew something first.
func (m *meter) bar(w io.Writer) *progressbar.ProgressBar {
	return progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(m.verb),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetSpinnerChangeInterval(0), // nobody would stop what turns it
	)
}

// move moves the bar, if there is something to show; the writer is a terminal,
// whose errors nobody could see. While the total is unknown something turns instead.
func (m *meter) move(bar *progressbar.ProgressBar, w io.Writer, elapsed time.Duration, ended bool) bool {
	p := m.now(elapsed, ended)
	if p.Done == 0 {
		return false // nothing can be said of the rate yet
	}
	if p.Total != nil {
		if bar.GetMax64() != *p.Total {
			bar.ChangeMax64(*p.Total)
		}
		shown := p.Done
		if !ended {
			shown = min(shown, *p.Total-1) // a full bar does not move any more, and the total may be an estimate
		}
		_ = bar.Set64(shown)
	}
	bar.Describe(p.within(lineWidth(w) - barLeast))
	return true
}

// barLeast is what the bar takes of a line besides the words: percentage and frame,
// and a few steps of the bar itself.
const barLeast = 18

// lineWidth is how many characters a line of a terminal has, or enough where there is none.
func lineWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 100
}

// progress is what is told of a meter, and a line of --progress json.
// docs/operations.md says what its fields mean.
type progress struct {
	Verb      string   `json:"progress"`
	Unit      string   `json:"unit"`
	Done      int64    `json:"done"`
	Total     *int64   `json:"total"`
	Estimated bool     `json:"estimated"`
	Seconds   float64  `json:"seconds"`
	Rate      float64  `json:"rate"`
	Left      *float64 `json:"seconds_left"`
	Ended     bool     `json:"ended"`
}

func (m *meter) now(elapsed time.Duration, ended bool) progress {
	p := progress{Verb: m.verb, Unit: m.unit, Done: m.done.Load(), Seconds: elapsed.Seconds(), Ended: ended}
	if p.Seconds > 0 {
		p.Rate = float64(p.Done) / p.Seconds
	}
	if total, sure := m.total(); total > 0 && total >= p.Done {
		p.Total, p.Estimated = &total, !sure
		if p.Rate > 0 {
			p.Left = new(float64(total-p.Done) / p.Rate)
		}
	}
	return p
}

func (p progress) json() []byte {
	line, err := json.Marshal(p)
	if err != nil {
		panic("BUG: progress: " + err.Error())
	}
	return line
}

// String is the progress as a line of a log.
func (p progress) String() string {
	parts := p.parts()
	if p.Total != nil && *p.Total > 0 {
		parts = slices.Insert(parts, 1, fmt.Sprintf("%d%%", p.Done*100 / *p.Total))
	}
	return p.Verb + ": " + strings.Join(parts, ", ")
}

// within is the progress in as many words as there is room for beside a bar, which
// shows the percentage.
func (p progress) within(room int) string {
	text, separator := p.Verb, ": "
	for _, part := range p.parts() {
		if longer := text + separator + part; len(longer) <= room {
			text, separator = longer, ", "
		}
	}
	return text
}

// parts says how much is done, how fast, and when it will be all.
func (p progress) parts() []string {
	done := view.Thousands(p.Done)
	if p.Total != nil {
		about := ""
		if p.Estimated && !p.Ended {
			about = "about "
		}
		done += " of " + about + view.Thousands(*p.Total)
	}
	parts := []string{done + " " + p.Unit, view.Thousands(int64(p.Rate)) + "/s"}
	if p.Left != nil && !p.Ended {
		parts = append(parts, time.Duration(*p.Left*float64(time.Second)).Round(time.Second).String()+" left")
	}
	return parts
}
