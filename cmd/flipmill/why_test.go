package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Every chunk of an open part is somewhere, and the one that holds the job up is
// named.
func TestExplanation(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	s := &queue.Standing{
		Job:    &wire.Job{ID: "j", Spec: puzzle.Spec{PartChunks: 2}},
		Ledger: &wire.Ledger{State: wire.Open, Parts: []wire.Part{{Number: 0}, {Number: 2}}},
	}
	places := map[int64]queue.Place{
		1: {Where: queue.Solved, Since: ago(90)}, // committed, and not purged yet
		2: {Where: queue.Solved, Since: ago(80)},
		3: {Where: queue.Taken, Lane: queue.Low, Since: ago(70)},
		6: {Where: queue.Queued, Lane: queue.Low, Since: ago(60)},
	}
	e := view.Explain(s, places, now)
	place := func(chunk, part int64, where, lane string, seconds float64, deliveries int64) view.Place {
		return view.Place{Chunk: chunk, Part: part, Where: where, Lane: lane, Seconds: seconds, Deliveries: deliveries}
	}
	want := []view.Place{place(2, 1, "solved", "", 80, 1), place(3, 1, "taken", "low", 70, 1), place(6, 3, "queued", "low", 60, 0)}
	if !slices.Equal(e.Places, want) || *e.Slowest != want[1] {
		t.Errorf("got %+v, slowest %+v", e.Places, e.Slowest)
	}
	s.Job.Totals = &wire.Totals{Records: 8, Chunks: 8}
	e = view.Explain(s, places, now)
	want = append(want, place(7, 3, view.Missing, "", 0, 0))
	if !slices.Equal(e.Places, want) || *e.Slowest != want[3] {
		t.Errorf("sealed: got %+v, slowest %+v", e.Places, e.Slowest)
	}
	text := whyText(e)
	for _, line := range []string{"4 chunks of open parts: 1 missing, 1 queued, 1 solved, 1 taken\n", "slowest: chunk 7 of part 3, missing for 0 s\n", "\n3      1     taken    70       low   1           -      \n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	s.Troubles.Add(wire.Trouble{Chunk: 2, Delivered: 3, Message: "no room", At: ago(9).UnixMilli(), Retry: ago(8).UnixMilli()})
	s.Troubles.Add(wire.Trouble{Chunk: 3, Delivered: 2, Message: "no\n\tanswer", At: ago(5).UnixMilli(), Retry: ago(-7).UnixMilli()})
	e = view.Explain(s, places, now)
	if p, q := e.Places[0], e.Places[1]; p.Deliveries != 3 || p.Error != "no room" || p.Retry != nil || q.Deliveries != 2 || q.Error != "no\n\tanswer" || !q.Retry.Equal(ago(-7)) {
		t.Errorf("with troubles: %+v", e.Places)
	}
	if line := "\n3      1     taken    70       low   2           00:00:07  no\ufffd\ufffdanswer\n"; !strings.Contains(whyText(e), line) {
		t.Errorf("no %q in\n%s", line, whyText(e))
	}
	if got, want := whyText(view.Explain(s, places, now)), "\nlatest trouble: chunk 3, at delivery 2, at 2025-12-31T23:59:55Z: no\ufffd\ufffdanswer\n"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	s.Ledger.State = wire.Done
	if e := view.Explain(s, places, now); len(e.Places) > 0 || e.Slowest != nil || e.Trouble != nil {
		t.Errorf("done: %+v", e)
	}
}
