package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Ask asks a process of this host that was told to [Serve] at addr a probe, such
// as /readyz, and returns the reason if all is not well.
func Ask(ctx context.Context, addr, probe string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("ask %s: %w", addr, err)
	}
	switch ip := net.ParseIP(host); {
	case host == "", ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip.Equal(net.IPv6zero):
		host = "::1"
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + probe
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", addr, err)
	}
	// A proxy that the environment names knows nothing of this host.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", addr, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		// The reason is one line; whatever else listens there may say more.
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s: %s: %s", url, response.Status, strings.TrimSpace(string(reason)))
	}
	return nil
}

// askTimeout is how long a probe may take; whoever runs health checks has a
// limit of its own.
const askTimeout = 5 * time.Second
