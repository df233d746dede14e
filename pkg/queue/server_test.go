package queue

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// A fresh store has nothing of an earlier one, and leaves nothing.
func TestFreshStore(t *testing.T) {
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "store")
	use := func(o ServerOptions) (results int) {
		s := start(t, o)
		c := connect(t, Options{Server: s})
		ok(t, c.Setup(ctx, Limits{}))
		ok(t, c.PublishResult(ctx, wire.ID{Job: "j"}, nil))
		results = stored(t, c, resultsStream)
		c.Close()
		s.Close()
		return results
	}
	use(ServerOptions{StoreDir: dir})
	if n := use(ServerOptions{StoreDir: dir, Fresh: true}); n != 1 {
		t.Errorf("%d results in a fresh store, want the one just stored", n)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the fresh store is still there: %v", err)
	}
	if n := use(ServerOptions{StoreDir: dir}); n != 1 {
		t.Errorf("%d results in a new store", n)
	}
}

// Streams in memory may be larger together than the machine's memory, or GOMEMLIMIT:
// it is what is in them that counts.
func TestRoomInMemory(t *testing.T) {
	c := connect(t, Options{Server: start(t, ServerOptions{StoreDir: t.TempDir()})})
	ok(t, c.Setup(testContext(t), Limits{Memory: true, TaskBytes: 1 << 44, ResultBytes: 1 << 44}))
}

// Of many that want one store at a time, each gets it alone, even though each
// removes it.
func TestLockOfRemovedStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var inside atomic.Int32
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for got := 0; got < 50; {
				f, err := lockDir(dir)
				if err != nil {
					continue // in use
				}
				got++
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				inside.Add(-1)
				removeLocked(dir)
				f.Close()
			}
		})
	}
	running.Wait()
}

// A folder in which nothing can be made is an error, not an endless try.
func TestStoreWhereNoneCanBe(t *testing.T) {
	if s, err := StartServer(ServerOptions{StoreDir: "/proc/flipmill"}); err == nil {
		s.Close()
		t.Error("there is a store in /proc")
	}
}
