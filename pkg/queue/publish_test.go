package queue

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// A full stream makes the publisher wait, and nothing is lost.
func TestFullStreamWaits(t *testing.T) {
	ctx := testContext(t)
	const chunks, size = 40, 8 << 10
	log, messages := newLogs()
	c := connect(t, Options{Server: start(t, ServerOptions{}), Log: log})
	ok(t, c.Setup(ctx, Limits{TaskBytes: 8 * size}))
	p := c.Publisher(Normal, 4*size)
	published := make(chan error)
	go func() {
		for chunk := range int64(chunks) {
			if err := p.Publish(ctx, wire.ID{Job: "j", Chunk: chunk}, make([]byte, size)); err != nil {
				published <- err
				return
			}
		}
		published <- p.Flush(ctx)
	}()
	if m := <-messages; m != "waiting for the broker" {
		t.Errorf("logged %q", m)
	}
	tasks := tasksOf(t, c, Normal)
	seen := make(map[int64]bool)
	for len(seen) < chunks {
		d := next(t, tasks)
		seen[d.ID.Chunk] = true
		ok(t, d.DoubleAck(ctx))
	}
	ok(t, <-published)
	if n := stored(t, c, tasksStream); n != 0 {
		t.Errorf("%d tasks left", n)
	}
}

// Waiting for room ends with the context, and so does a flush.
func TestFullStreamUntilContextEnds(t *testing.T) {
	log, messages := newLogs()
	c := connect(t, Options{Server: start(t, ServerOptions{}), Log: log})
	ok(t, c.Setup(testContext(t), Limits{ResultBytes: 1 << 10, TaskBytes: 1 << 10}))
	ctx, cancel := context.WithCancel(testContext(t))
	p := c.Publisher(Normal, 2048) // less than one task: it goes alone
	ok(t, p.Publish(ctx, wire.ID{Job: "j"}, make([]byte, 4096)))
	<-messages
	errs := make(chan error)
	go func() { errs <- p.Flush(ctx) }()
	go func() { errs <- p.Publish(ctx, wire.ID{Job: "j", Chunk: 1}, nil) }()
	go func() { errs <- c.PublishResult(ctx, wire.ID{Job: "j"}, make([]byte, 4096)) }()
	<-messages
	cancel()
	for range 3 {
		if err := <-errs; err != nil {
			wantError(t, err, context.Canceled)
		}
	}
	wantError(t, p.Flush(testContext(t)), context.Canceled)
}

// A job that was deleted and comes again at once, its drives counted from the
// first again, gets its tasks and results stored: the broker remembers for a while
// what it has seen, and must not take them for copies.
func TestJobComesAgain(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	tasks := tasksOf(t, c, Normal)
	id := wire.ID{Job: "j", Chunk: 1, Epoch: 1}
	p := c.Publisher(Normal, 1<<20)
	for range 2 {
		ok(t, p.Publish(ctx, id, nil))
		ok(t, p.Flush(ctx))
		d := next(t, tasks)
		ok(t, c.PublishResult(ctx, id, nil))
		ok(t, d.DoubleAck(ctx))
		if n := stored(t, c, resultsStream); n != 1 {
			t.Errorf("%d results are stored, want 1", n)
		}
		forget(t, c, "j")
	}
}

func TestTooLarge(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	id := wire.ID{Job: "j" + strings.Repeat("9", 62), Chunk: 1<<63 - 1, Epoch: 1<<32 - 1}
	ok(t, c.PublishResult(ctx, id, make([]byte, c.MaxData())))
	wantError(t, c.PublishResult(ctx, id, make([]byte, c.MaxData()+1)), ErrTooLarge)
	p := c.Publisher(Normal, 1<<20)
	ok(t, p.Publish(ctx, id, make([]byte, c.MaxData()+1)))
	wantError(t, p.Flush(ctx), ErrTooLarge)
	wantError(t, p.Publish(ctx, id, nil), ErrTooLarge)
	huge := &wire.Ledger{State: wire.Failed, Reason: strings.Repeat("x", 2<<20)}
	wantError(t, writeLedger(ctx, c, "j", huge), ErrTooLarge)
}

func TestInvalidID(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	for _, id := range []wire.ID{{}, {Job: "j.*"}, {Job: "j", Chunk: -1}} {
		if c.PublishResult(ctx, id, nil) == nil || c.Publisher(Low, 1).Publish(ctx, id, nil) == nil {
			t.Errorf("published under %+v", id)
		}
	}
	if c.PurgePart(ctx, "*", 1) == nil || c.PurgePart(ctx, "j", -1) == nil || c.PurgeTasks(ctx, ">") == nil || c.PurgeResults(ctx, "*") == nil {
		t.Error("purged by a pattern")
	}
}

// The broker goes away and comes back under everyone's hands.
func TestRestart(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	dir := t.TempDir()
	address := freeAddress(t)
	s := start(t, ServerOptions{StoreDir: dir, Listen: address})
	c := connect(t, Options{URL: "nats://" + address})
	ok(t, c.Setup(ctx, Limits{}))
	publish(t, c, Normal, 0)
	ok(t, c.PublishResult(ctx, wire.ID{Job: "j", Chunk: 0}, []byte("0")))
	ok(t, writeLedger(ctx, c, "j", &wire.Ledger{State: wire.Open}))
	tasks := tasksOf(t, c, Lanes()...)
	ok(t, next(t, tasks).DoubleAck(ctx))

	var running sync.WaitGroup
	before, results := make(chan struct{}, 2), make(chan string, 2)
	running.Go(func() {
		for r, err := range c.Results(ctx, "j") {
			if err != nil {
				t.Error(err)
				return
			}
			if results <- string(r.Data); r.ID.Chunk == 1 {
				return
			}
			before <- struct{}{}
		}
	})
	running.Go(func() {
		for l, err := range c.WatchLedger(ctx, "j") {
			if err != nil {
				t.Error(err)
				return
			}
			if l.State == wire.Done {
				return
			}
			before <- struct{}{}
		}
	})
	<-before
	<-before
	s.Close()
	running.Go(func() {
		if d, err := tasks.Next(ctx); err != nil || d.ID.Chunk != 1 {
			t.Errorf("task after the restart: %+v, %v", d, err)
		} else if err := d.DoubleAck(ctx); err != nil {
			t.Error(err)
		}
	})
	p := c.Publisher(Normal, 1<<20)
	ok(t, p.Publish(ctx, wire.ID{Job: "j", Chunk: 1}, []byte("1")))
	running.Go(func() {
		if err := c.PublishResult(ctx, wire.ID{Job: "j", Chunk: 1}, []byte("1")); err != nil {
			t.Error(err)
		}
		if err := writeLedger(ctx, c, "j", &wire.Ledger{State: wire.Done}); err != nil {
			t.Error(err)
		}
	})
	start(t, ServerOptions{StoreDir: dir, Listen: address})
	ok(t, p.Flush(ctx))
	running.Wait()
	if got := (<-results) + (<-results); got != "01" {
		t.Errorf("results came as %q", got)
	}
}

// Many publishers at once, one follower: everything once and in order of storage.
func TestResultsInOrder(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	const chunks = 200
	var running sync.WaitGroup
	for w := range int64(4) {
		running.Go(func() {
			for chunk := w; chunk < chunks; chunk += 4 {
				id := wire.ID{Job: "j", Chunk: chunk, Part: chunk / 10}
				if err := c.PublishResult(ctx, id, bytes.Repeat(fmt.Append(nil, chunk), 1000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := make(map[int64]bool)
	last := uint64(0)
	for r, err := range c.Results(ctx, "j") {
		ok(t, err)
		if r.Seq != last+1 || seen[r.ID.Chunk] {
			t.Fatalf("result %+v at %d after %d", r.ID, r.Seq, last)
		}
		last = r.Seq
		if seen[r.ID.Chunk] = true; len(seen) == chunks {
			break
		}
	}
	running.Wait()
	for _, err := range c.Results(canceled(), "j") {
		wantError(t, err, context.Canceled)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Parts 1 and 17 share a partition, parts 1 and 1 of another job a number.
func TestPurgePart(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	var seqs []uint64
	for _, id := range []wire.ID{{Job: "j", Part: 1, Chunk: 16}, {Job: "j", Part: 1, Chunk: 17}, {Job: "j", Part: 17, Chunk: 300}, {Job: "j", Part: 11, Chunk: 111}, {Job: "k", Part: 1, Chunk: 16}} {
		ok(t, c.PublishResult(ctx, id, nil))
		seqs = append(seqs, uint64(len(seqs)+1))
	}
	ok(t, c.PurgePart(ctx, "j", 1))
	ok(t, c.PurgePart(ctx, "j", 1))
	for i, seq := range seqs {
		_, err := c.ReadResult(ctx, seq)
		if i < 2 {
			wantError(t, err, ErrNotFound)
		} else {
			ok(t, err)
		}
	}
	var left []uint64
	for r, err := range c.Results(ctx, "j") {
		ok(t, err)
		if left = append(left, r.Seq); len(left) == 2 {
			break
		}
	}
	if fmt.Sprint(left) != "[3 4]" {
		t.Errorf("left %v", left)
	}
}
