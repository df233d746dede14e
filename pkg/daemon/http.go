package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Endpoints is what a process tells over HTTP. None of it may be nil but Pages.
type Endpoints struct {
	Alive   func() error // why the process must be started again
	Ready   func() error // why it cannot do its work now
	Metrics http.Handler
	Pages   http.Handler // whatever else is asked for; it must not take longer than stop may wait
}

// Serve answers /livez, /readyz and /metrics at addr, a host:port, until stop
// is called, and all else with the pages. It returns where. A probe is answered with 200, or with 503 and the
// reason. Without a host it is the loopback, which only processes of this
// machine reach: the answers are for everybody who can ask.
func Serve(addr string, e Endpoints) (url string, stop func() error, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, fmt.Errorf("serve http at %s: %w", addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return "", nil, fmt.Errorf("serve http at %s: %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /livez", probe(e.Alive))
	mux.Handle("GET /readyz", probe(e.Ready))
	mux.Handle("GET /metrics", e.Metrics)
	if e.Pages != nil {
		mux.Handle("/", e.Pages)
	}
	server := &http.Server{
		Handler:           mux,
		ReadTimeout:       httpTimeout,
		ReadHeaderTimeout: httpTimeout,
		WriteTimeout:      httpTimeout,
		IdleTimeout:       httpIdle,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), httpTimeout)
		defer cancel()
		err := server.Shutdown(ctx)
		if ended := <-ended; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		if err != nil {
			return fmt.Errorf("serve http at %s: %w", addr, err)
		}
		return nil
	}, nil
}

const (
	httpTimeout = 10 * time.Second
	httpIdle    = time.Minute
)

// probe answers whether all is well.
func probe(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}
