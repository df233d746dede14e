package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// writeLedger writes a ledger over the one that is there.
func writeLedger(ctx context.Context, c *Conn, id string, l *wire.Ledger) error {
	revision := uint64(0)
	entry, err := c.entry(ctx, id, ledgerSuffix)
	switch {
	case err == nil:
		revision = entry.Revision()
	case !errors.Is(err, ErrNotFound):
		return err
	}
	_, err = c.PutLedger(ctx, id, l, revision)
	return err
}

// Of those who have read the same, one can write, and the others learn of it.
func TestPutLedgerOnce(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	create(t, c, "j")
	revision := uint64(0)
	for range 10 {
		var mu sync.Mutex
		var written []uint64
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				l := &wire.Ledger{State: wire.Open, Holder: fmt.Sprint(i)}
				now, err := c.PutLedger(ctx, "j", l, revision)
				if err != nil {
					wantError(t, err, ErrConflict)
					return
				}
				mu.Lock()
				written = append(written, now)
				mu.Unlock()
			})
		}
		all.Wait()
		if len(written) != 1 || written[0] <= revision {
			t.Fatalf("after revision %d these were written: %v", revision, written)
		}
		revision = written[0]
		s, err := c.Standing(ctx, "j")
		if ok(t, err); s.Revision != revision {
			t.Errorf("the revision is %d, not %d", s.Revision, revision)
		}
	}
	// A second attempt of the one who has written is no conflict: the answer to
	// the first may have been lost.
	l := &wire.Ledger{State: wire.Open, Holder: "one"}
	first, err := c.PutLedger(ctx, "j", l, revision)
	ok(t, err)
	again, err := c.PutLedger(ctx, "j", l, revision)
	if ok(t, err); again != first {
		t.Errorf("the second attempt wrote revision %d, the first %d", again, first)
	}
}

// All jobs are there at the beginning, whole, and each change comes with its job.
func TestWatchStandings(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	create(t, c, "a", "b")
	parts := []wire.Part{{Number: 0}}
	ok(t, writeLedger(ctx, c, "b", &wire.Ledger{State: wire.Open, Parts: parts}))
	ok(t, c.PutOrder(ctx, "a", wire.Pause))
	forget(t, c, "never")
	_, err := c.bucket.Put(ctx, "bad", []byte("not a job"))
	ok(t, err)
	if _, err = c.Job(ctx, "bad"); err == nil {
		t.Error("a record that is not a job is read")
	}
	var got []string
	for s, err := range c.WatchStandings(ctx) {
		ok(t, err)
		text := s.Job.ID + " " + s.State()
		if s.Ledger != nil {
			text += fmt.Sprint(" ", len(s.Ledger.Parts))
		}
		got = append(got, text)
		if len(got) == 2 {
			slices.Sort(got) // those of the beginning have no order
			create(t, c, "c")
			ok(t, c.PutTrouble(ctx, "a", wire.Trouble{Delivered: 1, Message: "of no interest"}))
			ok(t, writeLedger(ctx, c, "b", &wire.Ledger{State: wire.Done, Parts: parts}))
			ok(t, c.PutOrder(ctx, "c", wire.Cancel))
		}
		if len(got) == 5 {
			break
		}
	}
	if want := []string{"a paused", "b open 1", "c open", "b done 1", "c cancelling"}; !slices.Equal(got, want) {
		t.Errorf("watched %v, want %v", got, want)
	}
}

// The log is swept of the jobs that want nothing, and of no others; what comes
// meanwhile stays.
func TestSweepResults(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	create(t, c, "open", "done")
	ok(t, writeLedger(ctx, c, "done", &wire.Ledger{State: wire.Done}))
	for _, job := range []string{"open", "done", "unknown"} {
		for part := range int64(3) {
			ok(t, c.PublishResult(ctx, wire.ID{Job: job, Part: part, Chunk: part}, nil))
		}
	}
	asked := map[string]bool{}
	ok(t, c.SweepResults(ctx, func(id string, s *Standing) bool {
		if asked[id] = s != nil && s.Ended(); id == "unknown" {
			ok(t, c.PublishResult(ctx, wire.ID{Job: id, Part: 9, Chunk: 9}, nil))
			return s == nil
		}
		return asked[id]
	}))
	if want := map[string]bool{"open": false, "done": true, "unknown": false}; !maps.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
	s, err := c.js.Stream(ctx, resultsStream)
	ok(t, err)
	var left []string
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		if r, err := c.ReadResult(ctx, seq); err == nil {
			left = append(left, fmt.Sprint(r.ID.Job, r.ID.Part))
		}
	}
	if want := "open0 open1 open2 unknown9"; strings.Join(left, " ") != want {
		t.Errorf("left are %v, want %s", left, want)
	}
}
