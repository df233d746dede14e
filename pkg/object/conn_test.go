package object

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence: who waits for an answer waits as long as something is being sent, and
// a minute more.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := conn{near}
		defer c.Close()
		answer := make(chan error)
		begin := time.Now()
		go func() {
			_, err := c.Read(make([]byte, 1))
			answer <- err
		}()
		for range 10 { // an upload of five minutes
			go func() {
				<-time.After(silence / 2)
				_, _ = far.Read(make([]byte, 1))
			}()
			if _, err := c.Write([]byte{1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-answer; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the answer: %v", err)
		}
		// From the last write on, which took half a minute to be received.
		if took := time.Since(begin); took < 5*silence || took > 6*silence {
			t.Errorf("it was waited for %s", took)
		}
		if _, err := c.Write([]byte{1}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write that nobody takes: %v", err)
		}
	})
}
