package daemon_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/daemon"
)

// get returns the status and the body of an answer.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 2 * time.Minute}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	var alive, ready error
	url, stop, err := daemon.Serve(":0", daemon.Endpoints{
		Alive:   func() error { return alive },
		Ready:   func() error { return ready },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "boards 3") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Errorf("serves at %s, want the loopback", url)
	}
	expect := func(path string, status int, text string) {
		t.Helper()
		if code, body := get(t, url+path); code != status || !strings.Contains(body, text) {
			t.Errorf("%s: %d %q, want %d %q", path, code, body, status, text)
		}
	}
	expect("/livez", http.StatusOK, "ok")
	expect("/readyz", http.StatusOK, "ok")
	expect("/metrics", http.StatusOK, "boards 3")
	expect("/", http.StatusNotFound, "")
	ready = errors.New("not connected")
	expect("/readyz", http.StatusServiceUnavailable, "not connected")
	for _, host := range []string{"", "0.0.0.0", "127.0.0.1"} {
		addr := net.JoinHostPort(host, url[strings.LastIndex(url, ":")+1:])
		if err := daemon.Ask(t.Context(), addr, "/livez"); err != nil {
			t.Error(err)
		}
		if err := daemon.Ask(t.Context(), addr, "/readyz"); err == nil || !strings.Contains(err.Error(), "not connected") {
			t.Errorf("asked at %s whether it is ready, it says %v", addr, err)
		}
	}
	expect("/livez", http.StatusOK, "ok")
	alive = errors.New("the loop stands still")
	expect("/livez", http.StatusServiceUnavailable, "the loop stands still")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		conn.Close()
		t.Error("it still listens after stop")
	}
}

func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, addr := range []string{"9464", taken.Addr().String()} {
		if url, _, err := daemon.Serve(addr, daemon.Endpoints{}); err == nil || !strings.Contains(err.Error(), "serve http") {
			t.Errorf("%s: serves at %q, error %v", addr, url, err)
		}
	}
}
