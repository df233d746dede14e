package queue

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// passage is told what comes to a place of a way, and returns what goes on from there,
// at once or later. An error cuts the connection there.
type passage func(b []byte) ([]byte, error)

// passed lets all pass.
func passed(b []byte) ([]byte, error) { return b, nil }

// detour returns the URL of a way to a server. What clients say goes through said, of
// all of them one after the other, and what they are answered through answered.
func detour(t *testing.T, s *Server, said, answered passage) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	var one sync.Mutex
	orderly := func(b []byte) ([]byte, error) {
		one.Lock()
		defer one.Unlock()
		return said(b)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			far, err := net.Dial("tcp", s.ns.Addr().String())
			if err != nil {
				near.Close()
				continue
			}
			running.Go(func() { pump(far, near, orderly) })
			running.Go(func() { pump(near, far, answered) })
		}
	})
	t.Cleanup(func() { // the clients are closed by then, which are made later
		l.Close()
		running.Wait()
	})
	return "nats://" + l.Addr().String()
}

// pump carries what comes from one connection to another, which ends with it.
func pump(to, from net.Conn, pass passage) {
	defer to.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		b, cut := pass(buffer[:n])
		if cut != nil {
			return
		}
		if _, failed := to.Write(b); failed != nil || err != nil {
			return
		}
	}
}

// cutAt returns the URL of a way to a server that is cut where a client says a word,
// before the server hears of it, and how often that was. The client may say it so often
// before, and as often as is said last it is cut.
func cutAt(t *testing.T, s *Server, word string, before, often int64) (url string, cuts *atomic.Int64) {
	t.Helper()
	cuts = new(atomic.Int64)
	url = detour(t, s, func(b []byte) ([]byte, error) {
		if !bytes.Contains(b, []byte(word)) || cuts.Load() == often {
			return b, nil
		}
		if before--; before >= 0 {
			return b, nil
		}
		cuts.Add(1)
		return nil, errors.New("cut")
	}, passed)
	return url, cuts
}

// muteUntil returns the URL of a way to a server. Once mute is closed, nothing comes
// back until a client has said a word.
func muteUntil(t *testing.T, s *Server, mute <-chan struct{}, word string) string {
	t.Helper()
	said := make(chan struct{})
	say := sync.OnceFunc(func() { close(said) })
	var all []byte
	url := detour(t, s, func(b []byte) ([]byte, error) {
		if all = append(all, b...); closed(mute) && bytes.Contains(all, []byte(word)) {
			say()
		}
		return b, nil
	}, func(b []byte) ([]byte, error) {
		if closed(mute) {
			<-said
		}
		return b, nil
	})
	t.Cleanup(say)
	return url
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
