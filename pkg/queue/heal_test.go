package queue

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// heard is a slog handler that hands over what is logged.
type heard struct {
	slog.Handler
	said chan string
}

func (h heard) Enabled(context.Context, slog.Level) bool { return true }

func (h heard) Handle(_ context.Context, r slog.Record) error {
	h.said <- r.Message
	return nil
}

// A full disk makes a broker in this process wait. When there is room, it goes
// on: with what it had acknowledged, and with what was sent meanwhile.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	fill := smallDisk(t, dir)
	said := make(chan string, 100)
	s, err := StartServer(ServerOptions{StoreDir: filepath.Join(dir, "store"), Log: slog.New(heard{slog.DiscardHandler, said})})
	ok(t, err)
	defer s.Close()
	conn, err := Connect(testContext(t), Options{Server: s})
	ok(t, err)
	defer conn.Close()
	ok(t, conn.Setup(testContext(t), Limits{TaskBytes: 1 << 20, ResultBytes: 8 << 20}))
	const results = 40
	sent := make(chan error, 1)
	half := make(chan struct{})
	go func() {
		defer close(sent)
		for chunk := range int64(results) {
			if chunk == results/2 {
				<-half
			}
			if err := conn.PublishResult(testContext(t), wire.ID{Job: "j", Chunk: chunk}, make([]byte, 100<<10)); err != nil {
				sent <- err
				return
			}
			if chunk == results/2-1 {
				half <- struct{}{}
			}
		}
	}()
	<-half
	empty := fill()
	half <- struct{}{}
	await := func(part string) {
		t.Helper()
		for {
			select {
			case text := <-said:
				if strings.Contains(text, part) {
					return
				}
			case <-testContext(t).Done():
				t.Fatalf("the broker does not say %q", part)
			}
		}
	}
	await("waits for room on the disk")
	empty()
	await("is there again")
	ok(t, <-sent)
	found := map[int64]bool{}
	for r, err := range conn.Results(testContext(t)) {
		ok(t, err)
		found[r.ID.Chunk] = true
		if len(found) == results {
			break
		}
	}
}

// smallDisk makes dir a disk that fill fills up, and empty empties. Who may not
// mount one gets a limit for the size of files instead.
func smallDisk(t *testing.T, dir string) (fill func() (empty func())) {
	t.Helper()
	if err := syscall.Mount("flipmill-test", dir, "tmpfs", 0, "size=24m"); err == nil {
		t.Cleanup(func() { ok(t, syscall.Unmount(dir, 0)) })
		filler := filepath.Join(dir, "filler")
		return func() func() {
			if err := os.WriteFile(filler, make([]byte, 32<<20), 0o600); err == nil {
				t.Error("the disk is not small")
			}
			return func() { ok(t, os.Remove(filler)) }
		}
	}
	signal.Ignore(syscall.SIGXFSZ)
	t.Cleanup(func() { signal.Reset(syscall.SIGXFSZ) })
	var unlimited syscall.Rlimit
	ok(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited))
	empty := func() { ok(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited)) }
	t.Cleanup(empty)
	return func() func() {
		limited := unlimited
		limited.Cur = 1 << 20
		ok(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited))
		return empty
	}
}
