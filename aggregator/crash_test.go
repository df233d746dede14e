package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Variables that make this test binary an aggregator that something befalls.
const (
	urlVariable    = "AGGREGATOR_TEST_URL"
	outputVariable = "AGGREGATOR_TEST_OUTPUT"
	wordsVariable  = "AGGREGATOR_TEST_WORDS"  // when it logs what
	signalVariable = "AGGREGATOR_TEST_SIGNAL" // with which signal
)

// TestDyingAggregator is what other tests run as a process of its own. By itself
// it does nothing.
func TestDyingAggregator(t *testing.T) {
	url := os.Getenv(urlVariable)
	if url == "" {
		return
	}
	conn, err := queue.Connect(testContext(t), queue.Options{URL: url})
	ok(t, err)
	signal, err := strconv.Atoi(os.Getenv(signalVariable))
	ok(t, err)
	log := slog.New(&lastWords{slog.DiscardHandler, os.Getenv(wordsVariable), syscall.Signal(signal)})
	t.Fatal(Run(testContext(t), conn, Options{Output: os.Getenv(outputVariable), Lease: quick, Log: log}))
}

// dyingAggregator returns the command for such a process.
func dyingAggregator(t *testing.T, url, output, words string, signal syscall.Signal) *exec.Cmd {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDyingAggregator$")
	child.Env = append(os.Environ(), urlVariable+"="+url, outputVariable+"="+output, wordsVariable+"="+words, signalVariable+"="+strconv.Itoa(int(signal)))
	return child
}

// lastWords sends a signal to this process when it has a certain thing to say for
// the first time. What it says after that goes to standard output.
type lastWords struct {
	slog.Handler
	words  string // empty: they have been said
	signal syscall.Signal
}

func (*lastWords) Enabled(context.Context, slog.Level) bool { return true }

func (l *lastWords) Handle(_ context.Context, r slog.Record) error {
	if l.words == "" {
		fmt.Println(r.Message)
	}
	if r.Message != l.words {
		return nil
	}
	l.words = ""
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// To this thread, so that it does not get any further.
	if err := syscall.Tgkill(os.Getpid(), syscall.Gettid(), l.signal); err != nil {
		return err
	}
	if l.signal == syscall.SIGKILL {
		select {}
	}
	return nil
}

// openBroker returns a connection to a broker that other processes reach too.
func openBroker(t *testing.T) (conn *queue.Conn, url string) {
	t.Helper()
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
	ok(t, err)
	t.Cleanup(func() { server.Close() })
	conn, err = queue.Connect(testContext(t), queue.Options{Server: server})
	ok(t, err)
	t.Cleanup(conn.Close)
	ok(t, conn.Setup(testContext(t), queue.Limits{}))
	return conn, server.URL()
}

// TestDiesBeforePurge lets aggregators die after they have committed a part and
// before they have purged its results, and after they have finished the dataset
// and before they have said so. What is needed is still in the log, what is not
// is purged by the next one, and the dataset is whole.
func TestDiesBeforePurge(t *testing.T) {
	conn, url := openBroker(t)
	j, output := newJob(t, "j", 1, 2, 6), t.TempDir()
	j.create(t, conn)
	j.send(t, conn, 0, 1, 2, 3, 4, 5)
	j.seal(t, conn)
	dies := func(last string) {
		t.Helper()
		out, err := dyingAggregator(t, url, output, last, syscall.SIGKILL).CombinedOutput()
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
		for r, err := range conn.Results(testContext(t), "j") { // the oldest: of the part that was committed last
			if ok(t, err); r.ID.Chunk != int64(2*part) {
				t.Errorf("the log begins with chunk %d, want %d", r.ID.Chunk, 2*part)
			}
			break
		}
	}
	dies("dataset complete")
	stop := serve(t, conn, Options{Output: output, Lease: quick})
	j.awaitDone(t, conn)
	awaitSwept(t, conn)
	stop()
	j.check(t, output)
}

// TestResultsLostWithTheLog purges results that an aggregator has counted and has
// to read again: driving the job anew replaces them.
func TestResultsLostWithTheLog(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 3, 6)
	stop := serve(t, conn, Options{Output: output, Memory: 1, Lease: quick})
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
