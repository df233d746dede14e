package aggregator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// awaitCancelled waits until the job is cancelled and checks what is left of it.
func awaitCancelled(t testing.TB, conn *queue.Conn, output, job string) {
	t.Helper()
	await(t, conn, job, "cancellation", func(l *wire.Ledger) bool { return l.State == wire.Cancelled })
	dir := filepath.Join(output, "job="+job)
	if _, err := os.Stat(filepath.Join(dir, "_CANCELLED")); err != nil {
		t.Errorf("the mark: %v", err)
	}
	for _, name := range []string{"manifest.json", "_SUCCESS"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of a cancelled job: %v", name, err)
		}
	}
}

// A cancelled job ends, its results are purged, and what comes later is garbage,
// also to the next aggregator. Other jobs do not notice.
func TestCancel(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j, other := newJob(t, "j", 1, 2, 6), newJob(t, "other", 2, 2, 6)
	stop := serve(t, conn, Options{Output: output})
	for _, job := range []*testJob{j, other} {
		job.create(t, conn)
		job.send(t, conn, 0, 1, 2)
		awaitParts(t, conn, job.id, 1)
	}
	ok(t, conn.PutOrder(testContext(t), "j", wire.Pause)) // of which an aggregator takes no notice
	ok(t, conn.PutOrder(testContext(t), "j", wire.Cancel))
	awaitCancelled(t, conn, output, "j")
	j.send(t, conn, 3)
	stop()
	j.send(t, conn, 4, 5)
	j.seal(t, conn)
	stop = serve(t, conn, Options{Output: output, Lease: quick})
	other.send(t, conn, 3, 4, 5)
	other.seal(t, conn)
	other.awaitDone(t, conn)
	awaitSwept(t, conn)
	stop()
	awaitCancelled(t, conn, output, "j")
	other.check(t, output)
}

// An order that was given while no aggregator ran is obeyed before anything
// else, even where everything is there to finish the job.
func TestCancelWhileDown(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 2, 3)
	j.create(t, conn)
	j.send(t, conn, 0, 1, 2)
	j.seal(t, conn)
	ok(t, conn.PutOrder(testContext(t), "j", wire.Cancel))
	stop := serve(t, conn, Options{Output: output})
	awaitCancelled(t, conn, output, "j")
	second := newJob(t, "second", 2, 1, 1)
	second.create(t, conn)
	second.send(t, conn, 0)
	second.seal(t, conn)
	second.awaitDone(t, conn)
	stop()
	wantLogged(t, conn, 0)
}

// The ledger shows what has been received long before a part is full, and that
// somebody is there. A restart, which reads the log again, takes nothing back:
// await sees to that.
func TestRefresh(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 3, 3)
	opts := Options{Output: output, Lease: quick}
	stop := serve(t, conn, opts)
	j.create(t, conn)
	received := func(chunks int64) {
		t.Helper()
		await(t, conn, "j", "results", func(l *wire.Ledger) bool { return l.Received.Chunks == chunks })
	}
	j.send(t, conn, 0, 1)
	received(2)
	first, err := conn.Standing(testContext(t), "j")
	ok(t, err)
	for s, err := range conn.WatchStanding(testContext(t), "j") {
		ok(t, err)
		if s.Heard.After(first.Heard) {
			break
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.awaitDone(t, conn) // through the restart
	}()
	stop()
	stop = serve(t, conn, opts)
	j.send(t, conn, 2)
	j.seal(t, conn)
	<-done
	stop()
	j.check(t, output)
}

// A job that has failed leaves nothing on the broker, and is open again when it is
// driven again, whether its aggregator has lived on or not.
func TestDrivenAgainAfterFailure(t *testing.T) {
	for _, restart := range []bool{false, true} {
		conn, output, ctx := broker(t), t.TempDir(), testContext(t)
		j := newJob(t, "j", 1, 2, 5)
		j.create(t, conn)
		_, err := conn.NextEpoch(ctx, "j", nil)
		ok(t, err)
		stop := serve(t, conn, Options{Output: output})
		j.send(t, conn, 0, 1, 2)
		awaitParts(t, conn, "j", 1)
		send(t, conn, &wire.Result{ID: j.results[3].ID, Failure: "a passing trouble"})
		awaitFailed(t, conn, "j", "a passing trouble")
		for purged := false; !purged; {
			stored, err := conn.Stored(ctx, "j")
			ok(t, err)
			purged = len(stored) == 0
		}
		if restart {
			stop()
			stop = serve(t, conn, Options{Output: output})
		}
		j.send(t, conn, 4) // by a worker that had it in its hands
		epoch, err := conn.NextEpoch(ctx, "j", nil)
		ok(t, err)
		for l, err := range conn.WatchLedger(ctx, "j") {
			if ok(t, err); l.State == wire.Open && len(l.Parts) == 1 {
				break
			}
		}
		for chunk := 2; chunk < 5; chunk++ {
			send(t, conn, j.again(chunk, epoch))
		}
		j.seal(t, conn)
		j.awaitDone(t, conn)
		stop()
		j.check(t, output)
		wantLogged(t, conn, 0)
	}
}
