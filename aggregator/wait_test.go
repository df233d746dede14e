package aggregator

import (
	"bytes"
	"context"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// A full disk fails no job: it waits, says why, and goes on when there is room.
func TestFullDisk(t *testing.T) {
	conn := limitedBroker(t, queue.Limits{Memory: true})
	output, makeRoom := fullDisk(t)
	j := newJob(t, "j", 1, 3, 8)
	var log bytes.Buffer // of the loop, which has ended when it is read
	var left int         // files, the most that a vain attempt has left
	stop := serve(t, conn, Options{Output: output, Log: slog.New(looking{slog.NewTextHandler(&log, nil), func() {
		left = max(left, len(tree(t, output)))
	}})})
	j.create(t, conn)
	j.send(t, conn, 0, 1, 2)
	await(t, conn, "j", "a reason", func(l *wire.Ledger) bool { return l.Reason != "" })
	j.send(t, conn, 3, 4, 5, 6, 7)
	j.seal(t, conn)
	l := await(t, conn, "j", "a reason, in vain again", func(l *wire.Ledger) bool { return l.Received.Chunks == 8 && l.Reason != "" })
	if len(l.Parts) > 0 {
		t.Errorf("%d parts are committed on a full disk", len(l.Parts))
	}
	makeRoom()
	j.awaitDone(t, conn)
	stop()
	if left > 0 {
		t.Errorf("vain attempts leave %d files", left)
	}
	j.check(t, output)
	wantLogged(t, conn, 0)
	for _, message := range []string{"job waits for its output, nothing is lost", l.Reason, "job goes on"} {
		if !strings.Contains(log.String(), message) {
			t.Errorf("the log does not say %q:\n%s", message, log.String())
		}
	}
}

// looking looks when a vain attempt is logged: it is over then, and the next one
// has not begun.
type looking struct {
	slog.Handler
	look func()
}

func (l looking) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "job waits for its output") {
		l.look()
	}
	return l.Handler.Handle(ctx, r)
}

// fullDisk returns a folder in which a part has no room until makeRoom is
// called. Who may mount gets a file system of that size; for others it is the
// limit of the size of files, which the rest of the test, in memory, does not
// meet.
func fullDisk(t *testing.T) (dir string, makeRoom func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("flipmill-test", dir, "tmpfs", 0, "size=4k"); err == nil {
		t.Cleanup(func() { ok(t, syscall.Unmount(dir, 0)) })
		return dir, func() { ok(t, syscall.Mount("flipmill-test", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m")) }
	}
	signal.Ignore(syscall.SIGXFSZ)
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	var unlimited syscall.Rlimit
	ok(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited))
	makeRoom = func() { ok(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited)) }
	t.Cleanup(makeRoom)
	limited := unlimited
	limited.Cur = 4 << 10
	ok(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited))
	return dir, makeRoom
}
