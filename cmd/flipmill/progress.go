package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/flipmill/flipmill/pkg/view"
)

// meter is how far a job has come. Its fields may be set from any goroutine.
type meter struct {
	published atomic.Int64 // records handed to the queue
	solved    atomic.Int64 // records whose result has arrived
	read      func() (bytes, total int64)
	done      string // what becomes of records; empty: they are solved
}

// total estimates the number of records in the corpus from the part that has
// been read; 0 while nothing is known.
func (m *meter) total() int64 {
	read, total := m.read()
	published := m.published.Load()
	if read == 0 || total == 0 {
		return 0
	}
	if read >= total {
		return published
	}
	return int64(float64(published) / float64(read) * float64(total))
}

// How often progress is shown: a bar moves, a log is read later.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 5 * time.Second
)

// showProgress shows the meter until ctx ends: a bar, plain lines, or nothing.
// The mode auto is a bar where w is a terminal and lines elsewhere.
func showProgress(ctx context.Context, w io.Writer, mode string, m *meter) {
	if mode == "auto" {
		mode = "plain"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			mode = "bar"
		}
	}
	var show func()
	interval := lineInterval
	switch mode {
	case "none":
		return
	case "bar":
		bar := newBar(w, m)
		defer fmt.Fprintln(w)
		show = func() { moveBar(bar, m) }
		interval = barInterval
	default:
		start := time.Now()
		show = func() { fmt.Fprintln(w, m.line(time.Since(start))) }
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			show()
		case <-ctx.Done():
			if mode == "bar" { // the last state stays on the screen
				show()
			}
			return
		}
	}
}

func newBar(w io.Writer, m *meter) *progressbar.ProgressBar {
	return progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(cmp.Or(m.done, "solving")),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("boards"),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(barInterval/2),
		progressbar.OptionSetWidth(30),
	)
}

// moveBar sets the bar; the writer is a terminal, whose errors nobody could see.
func moveBar(bar *progressbar.ProgressBar, m *meter) {
	solved := m.solved.Load()
	if solved == 0 {
		return // nothing can be said of the rate yet
	}
	if total := max(m.total(), solved); total > 0 && bar.GetMax64() != total {
		bar.ChangeMax64(total)
	}
	_ = bar.Set64(solved)
}

// line is the meter as one line of a log.
func (m *meter) line(elapsed time.Duration) string {
	solved, total := m.solved.Load(), m.total()
	rate := float64(solved) / elapsed.Seconds()
	text := fmt.Sprintf("%s %s records, %s boards/s", cmp.Or(m.done, "solved"), view.Thousands(solved), view.Thousands(int64(rate)))
	if total <= 0 || solved > total {
		return text
	}
	text += fmt.Sprintf(", %d%% of about %s", solved*100/max(1, total), view.Thousands(total))
	if rate > 0 {
		left := time.Duration(float64(total-solved) / rate * float64(time.Second))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}
