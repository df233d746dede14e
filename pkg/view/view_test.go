package view_test

import (
	"slices"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

// What is said of a job follows from its records alone.
func TestLine(t *testing.T) {
	heard := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	job := func(totals *wire.Totals) *wire.Job {
		return &wire.Job{ID: "j", Spec: puzzle.Spec{PartChunks: 2}, Totals: totals}
	}
	ledger := func(state wire.State, records int64) *wire.Ledger {
		return &wire.Ledger{State: state, Received: wire.Count{Records: records}}
	}
	sealed := &wire.Totals{Records: 3000, Chunks: 3}
	for name, test := range map[string]struct {
		standing queue.Standing
		after    time.Duration
		want     string
	}{
		"new":      {queue.Standing{Job: job(nil)}, 0, "j  open  -  0 of - records received, 0 committed in 0 parts; no aggregator has taken the job up"},
		"unsealed": {queue.Standing{Job: job(nil), Ledger: ledger(wire.Open, 2000), Heard: heard}, time.Second, "j  open  -  2,000 of - records received, 0 committed in 0 parts"},
		"sealed":   {queue.Standing{Job: job(sealed), Ledger: ledger(wire.Open, 2000), Heard: heard}, time.Second, "j  open  66.6%  2,000 of 3,000 records received, 0 committed in 0 parts"},
		"last part": {queue.Standing{Job: job(sealed), Ledger: ledger(wire.Open, 3000), Heard: heard}, -time.Hour, // a clock that is behind
			"j  open  99.9%  3,000 of 3,000 records received, 0 committed in 0 parts"},
		"silent": {queue.Standing{Job: job(sealed), Ledger: ledger(wire.Open, 0), Heard: heard}, 75 * time.Second,
			"j  open  0.0%  0 of 3,000 records received, 0 committed in 0 parts; no aggregator has been heard of for 75 s"},
		"lost output": {queue.Standing{Job: job(nil), Ledger: &wire.Ledger{State: wire.Open, Output: "5f0c", Holder: "h"}, Heard: heard}, 75 * time.Second,
			"j  open  -  0 of - records received, 0 committed in 0 parts; no aggregator of output 5f0c has been heard of for 75 s"},
		"empty": {queue.Standing{Job: job(&wire.Totals{}), Ledger: ledger(wire.Open, 0), Heard: heard}, 0, "j  open  0.0%  0 of 0 records received, 0 committed in 0 parts"},
		"done":  {queue.Standing{Job: job(&wire.Totals{}), Ledger: ledger(wire.Done, 0), Heard: heard}, time.Hour, "j  done  100.0%  0 of 0 records received, 0 committed in 0 parts"},
		"failed": {queue.Standing{Job: job(nil), Ledger: &wire.Ledger{State: wire.Failed, Reason: "a bug"}, Heard: heard}, time.Hour,
			"j  failed  -  0 of - records received, 0 committed in 0 parts; a bug"},
		"failed in two lines": {queue.Standing{Job: job(nil), Ledger: &wire.Ledger{State: wire.Failed, Reason: "a bug\n\x1b[2Jhere"}, Heard: heard}, time.Hour,
			"j  failed  -  0 of - records received, 0 committed in 0 parts; a bug\ufffd\ufffd[2Jhere"},
	} {
		if got := view.NewStatus(&test.standing, heard.Add(test.after)).Line(); got != test.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, test.want)
		}
	}
}

// TestOldest: what is missing comes before what is old, and what is solved is no
// matter.
func TestOldest(t *testing.T) {
	e := view.Explanation{Places: []view.Place{
		{Chunk: 0, Where: queue.Solved, Seconds: 99}, {Chunk: 1, Where: queue.Queued, Seconds: 3},
		{Chunk: 2, Where: view.Missing}, {Chunk: 3, Where: queue.Taken, Seconds: 50},
	}}
	var order []int64
	for _, p := range e.Oldest() {
		order = append(order, p.Chunk)
	}
	if want := []int64{2, 3, 1}; !slices.Equal(order, want) {
		t.Errorf("the oldest are %v, want %v", order, want)
	}
}

// TestExplainForged: a number that no chunk can have does not take memory for all
// before it.
func TestExplainForged(t *testing.T) {
	s := &queue.Standing{Job: &wire.Job{ID: "j", Spec: puzzle.Spec{PartChunks: 2}}, Ledger: &wire.Ledger{State: wire.Open}}
	places := map[int64]queue.Place{1: {Where: queue.Queued}, 1 << 62: {Where: queue.Solved}}
	if e := view.Explain(s, places, time.Now()); len(e.Places) != 2 || e.Places[1].Where != queue.Queued {
		t.Errorf("%d places", len(e.Places))
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 100: "100"} {
		if got := view.Thousands(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0.00%", 1: "100.00%", 0.25: "25.00%", 1.0 / 1024: "0.10%", 0.0001: "0.01%", 0.00005: "0.01%",
		1.0 / (1 << 20): "<0.01%", 1 - 1.0/(1<<20): ">99.99%", 0.9999: "99.99%",
	} {
		if got := view.Percent(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 7: "7", 999: "999", 1000: "1k", 1500: "1.5k", 999_900: "1M", 2_500_000: "2.5M", 3e9: "3G", 1e12: "1T", 0.5: "0.5"} {
		if got := view.Short(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}
