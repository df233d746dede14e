//go:build cluster

package queue

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// The broker comes back without the log, or with one that ends earlier. A
// follower that went on would never see what is stored in the same places anew.
func TestLostLogEndsFollowers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		damage func(store, older string) error
	}{
		{"empty store", func(store, _ string) error { return os.RemoveAll(store) }},
		{"older store", func(store, older string) error {
			if err := os.RemoveAll(store); err != nil {
				return err
			}
			return os.CopyFS(store, os.DirFS(older))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := testContext(t)
			dir, older := t.TempDir(), t.TempDir()
			address := freeAddress(t)
			s := start(t, ServerOptions{StoreDir: dir, Listen: address})
			c := connect(t, Options{URL: "nats://" + address})
			ok(t, c.Setup(ctx, Limits{}))
			ok(t, c.PublishResult(ctx, wire.ID{Job: "j", Chunk: 0}, []byte("0")))
			s.Close()
			ok(t, os.CopyFS(older, os.DirFS(filepath.Join(dir, "jetstream"))))
			s = start(t, ServerOptions{StoreDir: dir, Listen: address})
			ok(t, c.PublishResult(ctx, wire.ID{Job: "j", Chunk: 1}, []byte("1")))

			read, ended := make(chan struct{}, 2), make(chan error, 1)
			go func() {
				for _, err := range c.Results(ctx, "j") {
					if err != nil {
						ended <- err
						return
					}
					read <- struct{}{}
				}
			}()
			<-read
			<-read
			s.Close()
			ok(t, test.damage(filepath.Join(dir, "jetstream"), older))
			start(t, ServerOptions{StoreDir: dir, Listen: address})
			wantError(t, <-ended, ErrNotFound)
		})
	}
}

func TestDeletedLogEndsFollowers(t *testing.T) {
	t.Parallel() // it waits for the next check
	ctx := testContext(t)
	c := setUp(t, Limits{})
	ok(t, c.PublishResult(ctx, wire.ID{Job: "j", Chunk: 0}, []byte("0")))
	for _, err := range c.Results(ctx, "j") {
		if err != nil {
			wantError(t, err, ErrNotFound)
			break
		}
		ok(t, c.js.DeleteStream(ctx, resultsStream))
		ok(t, c.Setup(ctx, Limits{}))
	}
}

// TestFollowOverLostConnections: the connection is lost again and again when a follower
// makes its consumer anew. It goes on each time at once: if it waited until the time of
// a request is over that nobody has heard, this would take longer than the test may.
func TestFollowOverLostConnections(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := start(t, ServerOptions{Listen: "127.0.0.1:0"})
	admin := connect(t, Options{Server: s})
	ok(t, admin.Setup(ctx, Limits{}))
	create(t, admin, "j")
	url, cuts := cutAt(t, s, "$JS.API.CONSUMER.", 1, 15)
	c := connect(t, Options{URL: url})
	for s, err := range c.WatchStanding(ctx, "j") {
		ok(t, err)
		if s.Job == nil || cuts.Load() == 0 {
			t.Errorf("got %+v after %d cuts", s, cuts.Load())
		}
		break
	}
}

// TestSilentServer: the way to a server goes silent, and nobody is told. The client gives
// it up and connects anew, by a way that works. By itself it would not within the time
// that the test has.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := start(t, ServerOptions{Listen: "127.0.0.1:0"})
	admin := connect(t, Options{Server: s})
	ok(t, admin.Setup(ctx, Limits{}))
	create(t, admin, "j")
	mute := make(chan struct{})
	url := muteUntil(t, s, mute, "never said")
	c := connect(t, Options{URL: url + "," + s.URL()})
	for c.nc.ConnectedUrl() != url { // it chooses any of the two
		c = connect(t, Options{URL: url + "," + s.URL()})
	}
	wantState(t, c, "j", "open")
	close(mute)
	wantState(t, c, "j", "open")
}
