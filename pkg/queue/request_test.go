package queue

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What the death of a broker looks like to the request under way, and what
// waiting cannot heal.
func TestTransient(t *testing.T) {
	reset := &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{reset, true},
		{fmt.Errorf("publish: %w", reset), true},
		{context.DeadlineExceeded, true},
		{nats.ErrReconnectBufExceeded, true},
		{ErrUnreachable, true},
		{&jetstream.APIError{Code: 409, ErrorCode: errInProcess}, true},
		{&jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}, false},
		{ErrDenied, false},
		{ErrTooLarge, false},
		{ErrClosed, false},
		{ErrNotFound, false},
		{fmt.Errorf("%w: %w", ErrClosed, reset), false},
	} {
		if got := isTransient(test.err); got != test.want {
			t.Errorf("%v: transient is %v", test.err, got)
		}
	}
}

// What is not answered is asked again soon, and a slow broker is given more time with
// each such attempt, up to the timeout. One that was away is not believed to be slow.
func TestAttemptsGrow(t *testing.T) {
	c := connect(t, Options{Server: start(t, ServerOptions{})})
	wants := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}
	attempt, away := 0, false
	ok(t, c.do(testContext(t), func(ctx context.Context) error {
		if attempt == len(wants) {
			return nil
		}
		if !away {
			away = true
			return ErrUnreachable
		}
		deadline, _ := ctx.Deadline()
		if left, want := time.Until(deadline), wants[attempt]; left > want || left < want/2 {
			t.Errorf("attempt %d may take %v, want %v", attempt, left, want)
		}
		attempt++
		return context.DeadlineExceeded
	}))
	if attempt < len(wants) {
		t.Errorf("%d attempts", attempt)
	}
}
