package queue

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
)

func newJob(t testing.TB, id string) *wire.Job {
	rule, err := puzzle.ParseRule("plus")
	ok(t, err)
	return &wire.Job{ID: id, Spec: puzzle.Spec{Rule: rule, PartChunks: 8}}
}

func TestCreateJob(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	_, err := c.Job(ctx, "j")
	wantError(t, err, ErrNotFound)
	_, err = c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	epoch, err := c.NextEpoch(ctx, "j", nil)
	ok(t, err)
	there, err := c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	if epoch != 1 || there.Epoch != 1 {
		t.Errorf("epoch %d, then record %+v", epoch, there)
	}
	other := newJob(t, "j")
	other.Spec.PartChunks = 9
	_, err = c.CreateJob(ctx, other)
	wantError(t, err, ErrConflict)
	if _, err := c.CreateJob(ctx, newJob(t, "j.ledger")); err == nil {
		t.Error("a job with the key of a ledger is created")
	}
	if _, err := c.Job(ctx, "*"); err == nil {
		t.Error("a job is read by a pattern")
	}
}

func TestSealJob(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	wantError(t, c.SealJob(ctx, "j", &wire.Totals{}), ErrNotFound)
	_, err := c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	totals := &wire.Totals{Records: 10, Chunks: 1, Format: "lines", Sources: []wire.Source{{Name: "f"}}}
	ok(t, c.SealJob(ctx, "j", totals))
	ok(t, c.SealJob(ctx, "j", totals))
	wantError(t, c.SealJob(ctx, "j", &wire.Totals{Records: 11, Chunks: 1}), ErrConflict)
	there, err := c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	if there.Totals == nil || there.Totals.Records != 10 {
		t.Errorf("sealed record is %+v", there)
	}
}

// Nobody's change is lost: concurrent drives get different epochs.
func TestConcurrentChanges(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	_, err := c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	var mu sync.Mutex
	var epochs []uint32
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 5 {
				epoch, err := c.NextEpoch(ctx, "j", nil)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				epochs = append(epochs, epoch)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	slices.Sort(epochs)
	for i, epoch := range epochs {
		if int(epoch) != i+1 {
			t.Fatalf("epochs %v", epochs)
		}
	}
}

// A watcher that is behind when it stops leaves nothing behind.
func TestWatchManyStopEarly(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	for i := range 600 {
		_, err := c.CreateJob(ctx, newJob(t, "j"+string(rune('a'+i%26))+string(rune('a'+i/26))))
		ok(t, err)
	}
	for _, err := range c.WatchStandings(ctx) {
		ok(t, err)
		break
	}
	inner, cancel := context.WithCancel(ctx)
	n := 0
	for _, err := range c.WatchStandings(inner) {
		if err != nil {
			wantError(t, err, context.Canceled)
			break
		}
		if n++; n == 300 {
			cancel()
		}
	}
	cancel()
}

func TestLedger(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	_, err := c.Ledger(ctx, "j")
	wantError(t, err, ErrNotFound)
	if writeLedger(ctx, c, "j.x", &wire.Ledger{State: wire.Open}) == nil {
		t.Error("a ledger of no job is written")
	}
	ok(t, writeLedger(ctx, c, "j", &wire.Ledger{State: wire.Open}))
	want := &wire.Ledger{State: wire.Done, Parts: []wire.Part{{Number: 0, Digest: [16]byte{1}}}, Received: wire.Count{Chunks: 1, Records: 2}}
	for l, err := range c.WatchLedger(ctx, "j") {
		ok(t, err)
		if l.State == wire.Done {
			break
		}
		ok(t, writeLedger(ctx, c, "j", want))
	}
	got, err := c.Ledger(ctx, "j")
	ok(t, err)
	if got.State != want.State || !slices.Equal(got.Parts, want.Parts) || got.Received != want.Received {
		t.Errorf("got %+v", got)
	}
}

// What is purged is of one job, also where another's name begins with its.
func TestPurgeJob(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	publish(t, c, Low, 1, 2)
	publish(t, c, High, 3)
	for _, job := range []string{"j", "j2"} {
		ok(t, c.PublishResult(ctx, wire.ID{Job: job, Chunk: 1}, nil))
	}
	ok(t, c.PurgeTasks(ctx, "j"))
	ok(t, c.PurgeResults(ctx, "j"))
	if tasks, results := stored(t, c, tasksStream), stored(t, c, resultsStream); tasks != 0 || results != 1 {
		t.Errorf("%d tasks, %d results left", tasks, results)
	}
}

// A job comes back where the broker has nothing of it, to the output that has begun
// it, and not where it is there, is another output's, or was deleted.
func TestBringBackJob(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	bringBack := func(id string) error {
		job := newJob(t, id)
		job.Epoch = 7
		return c.BringBackJob(ctx, job, &wire.Ledger{State: wire.Open, Output: "here", Parts: []wire.Part{{Number: 0}}})
	}
	create(t, c, "there", "deleted", "purged")
	kv, err := c.jobs(ctx)
	ok(t, err)
	ok(t, kv.Delete(ctx, "deleted"))
	ok(t, kv.Purge(ctx, "purged"))
	for id, output := range map[string]string{"begun": "here", "others": "elsewhere"} { // the record has yet to come
		ok(t, writeLedger(ctx, c, id, &wire.Ledger{State: wire.Open, Output: output}))
	}
	ok(t, bringBack("lost"))
	ok(t, bringBack("begun"))
	for _, id := range []string{"lost", "begun"} {
		s, err := c.Standing(ctx, id)
		ok(t, err)
		if s.Job.Epoch != 7 || s.Ledger.Output != "here" || (id == "lost") != (len(s.Ledger.Parts) == 1) {
			t.Errorf("%s: got %+v and %+v", id, s.Job, s.Ledger)
		}
	}
	for _, id := range []string{"lost", "there", "deleted", "purged", "others"} {
		wantError(t, bringBack(id), ErrConflict)
	}
	there, err := c.Standing(ctx, "there")
	ok(t, err)
	if there.Job.Epoch != 0 || there.Ledger != nil {
		t.Errorf("what was there has become %+v and %+v", there.Job, there.Ledger)
	}
}

// A broker has begun when its store did, however often it is started since, and anew
// when the store is another one.
func TestBegan(t *testing.T) {
	ctx := testContext(t)
	dir := t.TempDir()
	began := func(setUp bool) (time.Time, time.Duration, error) {
		s := start(t, ServerOptions{StoreDir: dir})
		defer s.Close()
		c := connect(t, Options{Server: s})
		defer c.Close()
		if setUp {
			ok(t, c.Setup(ctx, Limits{}))
		}
		return c.Began(ctx)
	}
	_, _, err := began(false)
	wantError(t, err, ErrNotFound)
	first, ago, err := began(true)
	ok(t, err)
	again, later, err := began(false)
	ok(t, err)
	if ago < 0 || later <= ago || !again.Equal(first) {
		t.Errorf("began at %v, %v ago; after a restart at %v, %v ago", first, ago, again, later)
	}
	ok(t, os.RemoveAll(filepath.Join(dir, server.JetStreamStoreDir)))
	other, _, err := began(true)
	ok(t, err)
	if !other.After(first) {
		t.Errorf("the lost store began at %v, the new one at %v", first, other)
	}
}
