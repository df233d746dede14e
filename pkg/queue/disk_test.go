package queue

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// A broker with its streams in memory does not notice that its disk is full.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	fill := smallDisk(t, dir)
	s, err := StartServer(ServerOptions{StoreDir: filepath.Join(dir, "store")})
	ok(t, err)
	defer s.Close()
	conn, err := Connect(testContext(t), Options{Server: s})
	ok(t, err)
	defer conn.Close()
	ok(t, conn.Setup(testContext(t), Limits{Memory: true, TaskBytes: 1 << 20, ResultBytes: 8 << 20}))
	empty := fill()
	defer empty()
	const results = 40
	for chunk := range int64(results) {
		ok(t, conn.PublishResult(testContext(t), wire.ID{Job: "j", Chunk: chunk}, make([]byte, 100<<10)))
	}
	found := map[int64]bool{}
	for r, err := range conn.Results(testContext(t), "j") {
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
