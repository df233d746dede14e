package queue

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"

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
