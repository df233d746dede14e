package aggregator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Variables that make this test binary an aggregator that dies.
const (
	urlVariable    = "AGGREGATOR_TEST_URL"
	outputVariable = "AGGREGATOR_TEST_OUTPUT"
	lastVariable   = "AGGREGATOR_TEST_LAST" // what it logs last
)

// TestDyingAggregator is what TestDiesBeforePurge runs as a process of its own.
// By itself it does nothing.
func TestDyingAggregator(t *testing.T) {
	url := os.Getenv(urlVariable)
	if url == "" {
		return
	}
	conn, err := queue.Connect(testContext(t), queue.Options{URL: url})
	ok(t, err)
	log := slog.New(lastWords{slog.DiscardHandler, os.Getenv(lastVariable)})
	t.Fatal(Run(testContext(t), conn, Options{Output: os.Getenv(outputVariable), Log: log}))
}

// lastWords kills the process when it has a certain thing to say.
type lastWords struct {
	slog.Handler
	words string
}

func (lastWords) Enabled(context.Context, slog.Level) bool { return true }

func (l lastWords) Handle(_ context.Context, r slog.Record) error {
	if r.Message != l.words {
		return nil
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {}
}

// TestDiesBeforePurge lets aggregators die after they have committed a part and
// before they have purged its results, and after they have finished the dataset
// and before they have said so. What is needed is still in the log, what is not
// is purged by the next one, and the dataset is whole.
func TestDiesBeforePurge(t *testing.T) {
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
	ok(t, err)
	t.Cleanup(func() { server.Close() })
	conn, err := queue.Connect(testContext(t), queue.Options{Server: server})
	ok(t, err)
	t.Cleanup(conn.Close)
	ok(t, conn.Setup(testContext(t), queue.Limits{}))
	j, output := newJob(t, "j", 1, 2, 6), t.TempDir()
	j.create(t, conn)
	j.send(t, conn, 0, 1, 2, 3, 4, 5)
	j.seal(t, conn)
	dies := func(last string) {
		t.Helper()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDyingAggregator$")
		child.Env = append(os.Environ(), urlVariable+"="+server.URL(), outputVariable+"="+output, lastVariable+"="+last)
		out, err := child.CombinedOutput()
		if exit, _ := errors.AsType[*exec.ExitError](err); exit == nil || exit.ExitCode() != -1 {
			t.Fatalf("it does not die saying %q: %v\n%s", last, err, out)
		}
	}
	wantParts := func(want int) {
		t.Helper()
		parts, err := filepath.Glob(filepath.Join(output, "job=j", "results", "part-*.parquet"))
		if ok(t, err); len(parts) != want {
			t.Errorf("%d parts are committed, want %d", len(parts), want)
		}
	}
	for part := range 3 {
		dies("part committed")
		wantParts(part + 1)
		for r, err := range conn.Results(testContext(t)) { // the oldest: of the part that was committed last
			if ok(t, err); r.ID.Chunk != int64(2*part) {
				t.Errorf("the log begins with chunk %d, want %d", r.ID.Chunk, 2*part)
			}
			break
		}
	}
	dies("job done")
	stop := serve(t, conn, Options{Output: output, Alone: true})
	j.awaitDone(t, conn)
	next := newJob(t, "next", 2, 2, 2) // whose results come last: when it is done, all others have been seen to
	next.create(t, conn)
	next.send(t, conn, 0, 1)
	next.seal(t, conn)
	next.awaitDone(t, conn)
	stop()
	j.check(t, output)
	wantLogged(t, conn, 0)
}

// TestResultsLostWithTheLog purges results that an aggregator has counted and has
// to read again: driving the job anew replaces them.
func TestResultsLostWithTheLog(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 3, 6)
	stop := serve(t, conn, Options{Output: output, Memory: 1, Refresh: time.Millisecond})
	j.create(t, conn)
	j.send(t, conn, 0, 1)
	await(t, conn, j.id, "two chunks", func(l *wire.Ledger) bool { return l.Received.Chunks == 2 })
	ok(t, conn.PurgePart(testContext(t), j.id, 0))
	j.send(t, conn, 2) // now the part seems to be full
	for chunk := range 6 {
		send(t, conn, j.again(chunk, 2))
	}
	j.seal(t, conn)
	j.awaitDone(t, conn)
	stop()
	j.check(t, output)
}

// spoken sends the part of each commit that is logged.
type spoken struct {
	slog.Handler
	parts chan int64
}

func (spoken) Enabled(context.Context, slog.Level) bool { return true }

func (s spoken) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == "part committed" && a.Key == "part" {
			s.parts <- a.Value.Int64()
		}
		return true
	})
	return nil
}

// TestTwoAggregators runs two in one folder, which the lock of the verb would not
// let happen on one machine. They purge what the other may still need, so
// neither may come to the end; but every part is committed by one of them, and
// the next aggregator alone finishes a dataset that is right.
func TestTwoAggregators(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 2, 20)
	j.create(t, conn)
	log := spoken{slog.DiscardHandler, make(chan int64, 100)}
	stopA := serve(t, conn, Options{Output: output, Log: slog.New(log)})
	stopB := serve(t, conn, Options{Output: output, Log: slog.New(log)})
	for chunk := range 20 {
		j.send(t, conn, chunk)
	}
	j.seal(t, conn)
	committed := map[int64]bool{}
	for late := time.After(patience); len(committed) < 10; {
		select {
		case part := <-log.parts:
			committed[part] = true
		case <-late:
			t.Fatalf("only %v are committed", committed)
		}
	}
	stopA()
	stopB()
	stop := serve(t, conn, Options{Output: output, Alone: true})
	j.awaitDone(t, conn)
	stop()
	j.check(t, output)
}
