//go:build cluster

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flipmill/flipmill/aggregator"
	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/flipmill/flipmill/producer"
	"github.com/flipmill/flipmill/worker"
)

// shop is all roles in this process, each to be started when the test wants it.
type shop struct {
	t    *testing.T
	ctx  context.Context
	conn *queue.Conn
	spec puzzle.Spec

	running sync.WaitGroup
	mu      sync.Mutex
	got     []string      // the job of each chunk, in the order in which the worker solved them
	grown   chan struct{} // closed, and replaced, with each chunk
}

func newShop(t *testing.T) *shop {
	t.Helper()
	cmd := newSubmit()
	if err := cmd.ParseFlags([]string{"--size", "1x1", "--part-chunks", "1"}); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(cmd.Flags())
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, grown: make(chan struct{})}
	if s.spec, err = specOf(c); err != nil {
		t.Fatal(err)
	}
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), processPatience)
	t.Cleanup(cancel)
	if s.conn, err = queue.Connect(ctx, queue.Options{Server: server}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.conn.Close)
	if err := s.conn.Setup(ctx, queue.Limits{}); err != nil {
		t.Fatal(err)
	}
	s.ctx, cancel = context.WithCancel(ctx)
	t.Cleanup(func() {
		cancel()
		s.running.Wait()
	})
	output := t.TempDir()
	s.start("aggregator", func() error {
		return aggregator.Run(s.ctx, s.conn, aggregator.Options{Output: output})
	})
	return s
}

// solved is the worker's log, from which a shop knows what was solved.
type solved struct {
	slog.Handler
	shop *shop
	job  string
	keys []string
}

func (solved) Enabled(context.Context, slog.Level) bool { return true }

func (l solved) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		l.keys = append(slices.Clip(l.keys), a.Key)
		if a.Key == "job" {
			l.job = a.Value.String()
		}
	}
	return l
}

func (l solved) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "chunk solved" {
		if !slices.Equal(l.keys, []string{"job", "chunk", "part"}) {
			l.shop.t.Errorf("a chunk is solved, of which the log says %v", l.keys)
		}
		l.shop.mu.Lock()
		defer l.shop.mu.Unlock()
		l.shop.got = append(l.shop.got, l.job)
		close(l.shop.grown)
		l.shop.grown = make(chan struct{})
	}
	return nil
}

// start runs a role until it ends, or the test does.
func (s *shop) start(name string, run func() error) {
	s.running.Go(func() {
		if err := run(); err != nil && !errors.Is(err, context.Canceled) {
			s.t.Errorf("%s: %v", name, err)
		}
	})
}

// submit hands over a job of 1×1 boards.
func (s *shop) submit(job string, boards int, lane queue.Lane, published func(int64)) error {
	text := strings.NewReader(strings.Repeat("0\n1\n", boards/2))
	c, err := corpus.Open(s.ctx, []string{corpus.Stdin}, corpus.Options{Format: corpus.Lines, Size: s.spec.Size}, text)
	if err != nil {
		return err
	}
	defer c.Close()
	return producer.Run(s.ctx, s.conn, c, producer.Options{Job: job, Spec: s.spec, Window: window, Lane: lane, Published: published})
}

const window = 2 // parts, here of one chunk each

// results returns how many results of a job came since the n-th of all.
func (s *shop) results(job string, since int) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.got[since:] {
		if of == job {
			n++
		}
	}
	return n
}

// before returns how many results came between the n-th and the job's first one,
// which is waited for.
func (s *shop) before(job string, since int) int {
	s.t.Helper()
	for {
		s.mu.Lock()
		got, grown := s.got[since:], s.grown
		s.mu.Unlock()
		if n := slices.Index(got, job); n >= 0 {
			return n
		}
		select {
		case <-grown:
		case <-s.ctx.Done():
			s.t.Fatalf("no result of job %s", job)
		}
	}
}

func (s *shop) awaitDone(job string) {
	s.t.Helper()
	for l, err := range s.conn.WatchLedger(s.ctx, job) {
		if err != nil {
			s.t.Fatalf("job %s: %v", job, err)
		}
		if l.State == wire.Done {
			return
		}
	}
}

// TestShares: whoever submits a small job waits for the window of a big one in
// the same lane, not for its corpus, and in a higher lane for nothing.
func TestShares(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	const chunks = 30
	full, middle := make(chan struct{}), make(chan struct{})
	big := int64(0)
	s.start("big job", func() error {
		return s.submit("big", chunks*65_000, queue.Normal, func(records int64) {
			if big++; big == window {
				close(full)
			} else if big == 5 {
				close(middle)
			}
		})
	})
	<-full

	// The queue is full of the big job; then two small ones come, then a worker.
	for job, lane := range map[string]queue.Lane{"same": queue.Normal, "higher": queue.High} {
		if err := s.submit(job, 10, lane, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.start("worker", func() error {
		return worker.Run(s.ctx, s.ctx, s.conn, worker.Options{Slots: 1, Log: slog.New(solved{Handler: slog.DiscardHandler, shop: s})})
	})
	s.awaitDone("same")
	s.awaitDone("higher")
	if n := s.before("higher", 0); n != 0 {
		t.Errorf("a job of a higher lane waits for %d chunks", n)
	}
	if n := s.before("same", 0); n > window+1 { // the one of the job in the higher lane too
		t.Errorf("a job of the same lane waits for %d chunks of a window of %d", n, window)
	}

	// Another one comes while the big job is well under way.
	<-middle
	if err := s.submit("late", 10, queue.Normal, nil); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	stored := len(s.got)
	s.mu.Unlock()
	s.awaitDone("late")
	if s.before("late", 0) >= stored { // else it was done even before submit returned
		if n := s.before("late", stored); n > window {
			t.Errorf("a job that comes late waits for %d chunks of a window of %d", n, window)
		}
	}
	if s.results("big", 0) >= chunks {
		t.Error("the big job was done before: this proves nothing")
	}
	s.awaitDone("big")
}

// TestEdges: jobs of every size that is one off from something come to an end,
// with every record in its place.
func TestEdges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(records int) *dataset.Manifest {
		t.Helper()
		job := fmt.Sprint("of-", records)
		cmd := command(t, dir, "run", "-", "--size", "1x1", "--part-chunks", "2", "--job", job, "--json", "--progress", "none")
		cmd.Stdin = strings.NewReader(strings.Repeat("1\n", records))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%d records: %v", records, err)
		}
		var s summary
		if err := json.Unmarshal(out, &s); err != nil || s.Records != int64(records) || s.Solved != int64(records) {
			t.Errorf("of %d records %+v, %v", records, s, err)
		}
		path := filepath.Join(dir, "out", "job="+job)
		flipmill(t, dir, "verify", path)
		m, err := dataset.ReadManifest(path)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	part := int(run(200_000).Parts[0].Records)
	chunk := part / 2
	for _, test := range []struct{ records, chunks, parts int }{
		{0, 0, 1}, // an empty dataset has a schema too
		{1, 1, 1},
		{chunk - 1, 1, 1}, {chunk, 1, 1}, {chunk + 1, 2, 1},
		{part - 1, 2, 1}, {part, 2, 1}, {part + 1, 3, 2},
	} {
		m := run(test.records)
		if m.Input.Chunks != int64(test.chunks) || len(m.Parts) != test.parts {
			t.Errorf("%d records are %d chunks in %d parts, want %+v", test.records, m.Input.Chunks, len(m.Parts), test)
		}
	}
}
