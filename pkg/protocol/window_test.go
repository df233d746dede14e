package protocol_test

import (
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/wire"
)

// What follows was found by TestSimulation, and is said once more by itself.

// digest is that of a chunk of a corpus.
func digest(chunk byte) [sha256.Size]byte { return [sha256.Size]byte{chunk} }

// done is the ledger of a finished job with one chunk in each part.
func done(chunks ...byte) *wire.Ledger {
	l := &wire.Ledger{State: wire.Done}
	for i, c := range chunks {
		l.Add(wire.Part{Number: int64(i), Digest: wire.SumPart([][sha256.Size]byte{digest(c)})})
	}
	return l
}

func hear(t *testing.T, w *protocol.Window, ledger *wire.Ledger, order wire.Order) {
	t.Helper()
	if err := w.Hear(ledger, order); err != nil {
		t.Fatal(err)
	}
}

// An output that is lost takes committed parts with it which a drive has passed
// by: it ends, since it would wait for them for ever. What it has not come to yet
// it still brings.
func TestCommittedPartsGo(t *testing.T) {
	for passed, want := range []error{nil, protocol.ErrLost, protocol.ErrLost} {
		w := protocol.NewWindow(1, 2)
		committed := done(1, 2)
		committed.State = wire.Open
		hear(t, w, committed, wire.Proceed)
		for chunk := range byte(passed) {
			if err := w.Add(digest(chunk+1), 5); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Hear(&wire.Ledger{State: wire.Open}, wire.Proceed); !errors.Is(err, want) {
			t.Errorf("%d parts passed by: %v, want %v", passed, err, want)
		}
		if passed == 0 && w.Next() != protocol.Publish {
			t.Error("what has gone is not brought again")
		}
	}
}

// A corpus that has more than a finished job's is another corpus. Its submit does
// not wait for a window that will never move.
func TestLongerCorpusOfAFinishedJob(t *testing.T) {
	w := protocol.NewWindow(1, 1)
	hear(t, w, done(1, 2), wire.Proceed)
	for chunk := range byte(2) {
		if step := w.Next(); step != protocol.Compare {
			t.Fatalf("chunk %d: %v", chunk, step)
		}
		if err := w.Add(digest(chunk+1), 5); err != nil {
			t.Fatal(err)
		}
	}
	if step := w.Next(); step != protocol.Compare {
		t.Fatalf("the chunk beyond: %v", step)
	}
	if err := w.Add(digest(3), 5); !errors.Is(err, protocol.ErrOtherCorpus) {
		t.Errorf("the chunk beyond: %v", err)
	}
}

// A submit that rests because of a pause goes on when the job is done all the
// same, by what was queued or by another submit: nobody can resume it any more.
func TestPausedJobThatIsDone(t *testing.T) {
	w := protocol.NewWindow(2, 1)
	hear(t, w, &wire.Ledger{State: wire.Open}, wire.Proceed)
	if err := w.Add(digest(1), 5); err != nil { // the first chunk of a part
		t.Fatal(err)
	}
	hear(t, w, &wire.Ledger{State: wire.Open}, wire.Pause)
	if step := w.Next(); step != protocol.Rest {
		t.Errorf("while the job is paused: %v", step)
	}
	l := &wire.Ledger{State: wire.Done, Parts: []wire.Part{{Digest: wire.SumPart([][sha256.Size]byte{digest(1), digest(2)})}}}
	hear(t, w, l, wire.Pause)
	if step := w.Next(); step != protocol.Compare {
		t.Errorf("when it is done: %v", step)
	}
	if err := w.Add(digest(2), 5); err != nil {
		t.Error(err)
	}
}

func TestRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		state   wire.State // 0: no ledger
		order   wire.Order
		refused bool
	}{
		"new":                     {0, wire.Proceed, false},
		"cancelled while new":     {0, wire.Cancel, true},
		"open":                    {wire.Open, wire.Proceed, false},
		"paused":                  {wire.Open, wire.Pause, false},
		"being cancelled":         {wire.Open, wire.Cancel, true},
		"cancelled":               {wire.Cancelled, wire.Cancel, true},
		"cancelled, order lost":   {wire.Cancelled, wire.Proceed, true},
		"failed":                  {wire.Failed, wire.Proceed, true},
		"done":                    {wire.Done, wire.Proceed, false},
		"done before it could be": {wire.Done, wire.Cancel, false},
	} {
		var l *wire.Ledger
		if test.state != 0 {
			l = &wire.Ledger{State: test.state, Reason: "a reason"}
		}
		if why := protocol.Refusal(l, test.order); (why != "") != test.refused {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// Neither chunks nor records that have been told of are fewer later.
func TestToldProgressDoesNotFall(t *testing.T) {
	c := protocol.NewCollector(2)
	c.Recall(&wire.Ledger{State: wire.Open, Received: wire.Count{Chunks: 2, Records: 5}}, &wire.Job{ID: "j"})
	id := wire.ID{Job: "j"}
	c.Receive(id, 1, func() (*wire.Result, error) { return &wire.Result{ID: id, Boards: 7}, nil })
	if got, want := c.Ledger().Received, (wire.Count{Chunks: 2, Records: 7}); got != want {
		t.Errorf("received %v, want %v", got, want)
	}
}

// The place of a result in a log that was replaced by an older one may be taken
// by any other result.
func TestAnotherResultInItsPlace(t *testing.T) {
	c := protocol.NewCollector(2)
	r := wire.Result{ID: wire.ID{Job: "j", Chunk: 1, Epoch: 3}, Boards: 7, Digest: digest(1)}
	c.Receive(r.ID, 1, func() (*wire.Result, error) { return &r, nil })
	c.Forget(1)
	for name, change := range map[string]func(*wire.Result){
		"another job":    func(r *wire.Result) { r.ID.Job = "k" },
		"another chunk":  func(r *wire.Result) { r.ID.Chunk = 0 },
		"another drive":  func(r *wire.Result) { r.ID.Epoch++ },
		"other records":  func(r *wire.Result) { r.Digest = digest(2) },
		"fewer records":  func(r *wire.Result) { r.Boards-- },
		"none, it fails": func(r *wire.Result) { *r = wire.Result{ID: r.ID, Failure: "why"} },
	} {
		other := r
		if change(&other); c.At(1).Same(&other) {
			t.Errorf("%s is taken for the same", name)
		}
	}
	same := r
	same.Boards, same.Rejected = 5, 2 // solved by another worker, who gave up two boards
	if !c.At(1).Same(&same) {
		t.Error("it is not taken for itself")
	}
}

// A result of a drive that the collector has not heard of ends the job for that
// drive too: it is not to be opened again by the very record that is on its way.
func TestFailureOfADriveNotHeardOf(t *testing.T) {
	c := protocol.NewCollector(2)
	c.Driven(0)
	id := wire.ID{Job: "j", Epoch: 1}
	c.Receive(id, 1, func() (*wire.Result, error) { return &wire.Result{ID: id, Failure: "why"}, nil })
	if !c.Ledger().Ended(&wire.Job{ID: "j", Epoch: 1}) {
		t.Error("the drive that failed opens the job again")
	}
	if c.Ledger().Ended(&wire.Job{ID: "j", Epoch: 2}) {
		t.Error("another drive does not open the job again")
	}
}

// What a failure was to purge, and did not because the aggregator died, is purged
// before anybody hears that the job is open again.
func TestFailureIsPurgedBeforeAnotherDrive(t *testing.T) {
	c := protocol.NewCollector(2)
	c.Recall(&wire.Ledger{State: wire.Failed, Epoch: 2}, &wire.Job{ID: "j", Epoch: 3})
	c.Refresh()
	for _, want := range []protocol.Step{protocol.PurgeJob, protocol.Tell, protocol.Rest} {
		if step, _ := c.Next(); step != want {
			t.Errorf("it is to %v, want %v", step, want)
		}
	}
}

// A failure ends the job for every drive that has begun, whatever has been heard of
// them, and leaves nothing on the broker.
func TestFailureEndsEveryDrive(t *testing.T) {
	c := protocol.NewCollector(2)
	c.Driven(1)
	c.Fail(errors.New("why"))
	if step, _ := c.Next(); step != protocol.LookUp {
		t.Errorf("it is to %v before it tells", step)
	}
	c.Driven(2) // which had begun, and is found by looking up
	for _, want := range []protocol.Step{protocol.Tell, protocol.PurgeJob, protocol.Rest} {
		if step, _ := c.Next(); step != want {
			t.Errorf("it is to %v, want %v", step, want)
		}
	}
	if l := c.Ledger(); !l.Ended(&wire.Job{ID: "j", Epoch: 2}) || l.Ended(&wire.Job{ID: "j", Epoch: 3}) {
		t.Errorf("it ends for the drives up to %d, want 2", l.Epoch)
	}
}

// A refusal that cannot be stored either is no reason to refuse again at once.
func TestRefusalThatCannotBeStored(t *testing.T) {
	h := protocol.NewHandling(1, false)
	for _, step := range []struct {
		want protocol.Step
		came protocol.Outcome
	}{{protocol.LookUp, protocol.Done}, {protocol.Solve, protocol.Done}, {protocol.Store, protocol.TooLarge}, {protocol.Refuse, protocol.Done}, {protocol.Store, protocol.TooLarge}} {
		if h.Next() != step.want {
			t.Fatalf("it is to %v, want %v", h.Next(), step.want)
		}
		h.Did(step.came)
	}
	if h.Next() != protocol.Delay {
		t.Errorf("it is to %v, want %v", h.Next(), protocol.Delay)
	}
}

// A part that is committed while an older store comes back, in which another submit
// seals the job with an empty corpus, fails the job: it is never the empty part.
func TestEmptyCorpusAfterAnother(t *testing.T) {
	c := protocol.NewCollector(2)
	c.Restore(wire.Part{Number: 0, Digest: wire.SumPart([][sha256.Size]byte{digest(1)})}, wire.Count{Chunks: 1, Records: 5})
	empty := []wire.Part{{Digest: wire.SumPart(nil)}}
	c.Seal(&wire.Totals{PartsSHA256: wire.SumParts(empty)})
	if step, part := c.Next(); step != protocol.LookUp || !c.Ended() {
		t.Errorf("it is to %v part %d, want a failure", step, part)
	}
}
