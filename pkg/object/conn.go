package object

import (
	"context"
	"net"
	"net/http"
	"time"
)

// conn is a connection that breaks when it is silent. While something is sent it is
// not: whoever waits for the answer to a long upload must not take it for broken, as
// the client's own time limit does.
type conn struct{ net.Conn }

func (c conn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c conn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(silence)); err != nil { // of the reading that waits, too
		return 0, err
	}
	return c.Conn.Write(p)
}

// listen makes the connections of a transport such ones.
func listen(transport *http.Transport) {
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn{c}, nil
	}
}
