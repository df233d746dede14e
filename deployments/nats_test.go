package deployments_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestLeaf solves a job with a worker that reaches the hub through a leaf node
// only. The files are those that identities makes.
func TestLeaf(t *testing.T) {
	t.Parallel()
	h := newHosts()
	hub, leaf := h.address("hub"), h.address("leaf")
	keys := makeIdentities(t, hub)
	s := &site{t: t, dir: t.TempDir(), url: "nats://" + hub + ":4222"}
	env := append(strings.Fields(read(t, keys+"/nats.env")),
		"NATS_LISTEN="+hub+":4222", "NATS_LEAF_LISTEN="+hub+":7422", "NATS_STORE="+s.dir+"/nats-data",
		"NATS_CERT="+keys+"/server.crt", "NATS_KEY="+keys+"/server.key", "NATS_CA="+keys+"/ca.crt")
	start(t, s.dir, env, "nats-server", "-c", absolute(t, "nats/hub.conf"))
	start(t, s.dir, []string{
		"NATS_LISTEN=" + leaf + ":4222", "NATS_HUB=tls://" + hub + ":7422", "WORKER_SEED=" + strings.TrimSpace(read(t, keys+"/worker.seed")),
		"NATS_CERT=" + keys + "/client.crt", "NATS_KEY=" + keys + "/client.key", "NATS_CA=" + keys + "/ca.crt",
	}, "nats-server", "-c", absolute(t, "nats/leaf.conf"))

	as := func(role string, args ...string) *process {
		t.Helper()
		return s.start(append(args, "--credentials", keys+"/"+role+".seed",
			"--tls-ca", keys+"/ca.crt", "--tls-cert", keys+"/client.crt", "--tls-key", keys+"/client.key")...)
	}
	want := s.writeBoards()
	until(t, func() error {
		if p := as("operator", "setup"); p.exit() != 0 {
			return fmt.Errorf("setup: %s", p.log())
		}
		return nil
	})
	as("aggregator", "aggregator", "-o", "datasets")
	far := &site{t: t, dir: s.dir, url: "nats://" + leaf + ":4222"}
	far.start("worker", "--workers", "1", "--log-level", "debug")
	as("producer", append([]string{"submit", "--wait"}, job()...)...).want(0)
	s.wantSame("datasets", want)

	// The leaf lets nobody be more than a worker.
	if got := answer(t, leaf, "$JS.API.STREAM.INFO.FLIPMILL_TASKS"); !strings.Contains(got, "stream_info_response") {
		t.Errorf("a worker may look at the stream of tasks, and is told %q", got)
	}
	if got := answer(t, leaf, "$JS.API.STREAM.PURGE.FLIPMILL_TASKS"); !strings.Contains(got, "NATS/1.0 503") {
		t.Errorf("a worker may not purge the stream of tasks, and is told %q", got)
	}
}

// answer asks a server without TLS for something, in plain NATS. Where nobody
// may answer the server itself does, with 503.
func answer(t *testing.T, server, subject string) string {
	t.Helper()
	conn, err := net.Dial("tcp", server+":4222")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB _INBOX.worker.x 1\r\nPUB %s _INBOX.worker.x 0\r\n\r\n", subject)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "MSG _INBOX") || strings.HasPrefix(lines.Text(), "HMSG _INBOX") {
			lines.Scan()
			return lines.Text()
		}
	}
	return "nothing"
}
