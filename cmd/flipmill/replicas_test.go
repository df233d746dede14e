//go:build cluster

package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// replicated is three servers of deployments/nats/cluster.conf that keep a copy of
// everything each.
type replicated struct {
	*secureCluster
	environments map[string][]string // of the servers, by their names
	monitors     map[string]string   // addresses that tell their health
	servers      map[string]*process
	progress     chan struct{} // a chunk or a part has come through; never full
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	r := &replicated{
		environments: map[string][]string{}, monitors: map[string]string{}, servers: map[string]*process{},
		progress: make(chan struct{}, 1<<16),
	}
	r.secureCluster = &secureCluster{cluster: &cluster{t: t, dir: t.TempDir(), heard: func(line string) { tellProgress(line, r.progress) }}}
	identities := r.identities()
	clients, routes, monitors := freeAddresses(t, 3), freeAddresses(t, 3), freeAddresses(t, 3)
	for i := range 3 {
		name := fmt.Sprint("n", i+1)
		r.environments[name] = append(slices.Clone(identities),
			"NATS_NAME="+name, "NATS_LISTEN="+clients[i], "NATS_STORE="+filepath.Join(r.dir, name),
			"NATS_CLUSTER_LISTEN="+routes[i], "NATS_ROUTES=[nats-route://"+strings.Join(routes, ", nats-route://")+"]",
		)
		r.monitors[name] = monitors[i]
		r.startServer(name)
	}
	r.url = "nats://" + strings.Join(clients, ",nats://")
	for _, server := range r.servers {
		server.await("metadata leader", 1)
	}
	r.as(queue.Operator, "setup", "--replicas", "3", "--ack-wait", "5s").succeed()
	return r
}

// startServer starts a server, also one that has died, where it was.
func (r *replicated) startServer(name string) {
	r.t.Helper()
	conf, err := filepath.Abs("../../deployments/nats/cluster.conf")
	check(r.t, err)
	_, monitor, err := net.SplitHostPort(r.monitors[name])
	check(r.t, err)
	r.servers[name] = start(r.t, nil, r.dir, "env", append(slices.Clone(r.environments[name]), "nats-server", "-c", conf, "-m", monitor)...)
}

// TestFreeAddresses asks for so many addresses that, drawn from 20,000, they would
// hold one twice.
func TestFreeAddresses(t *testing.T) {
	t.Parallel()
	given := freeAddresses(t, 500)
	slices.Sort(given)
	if len(slices.Compact(given)) != 500 {
		t.Error("an address is given twice")
	}
}

// leader returns the name of the server that leads a stream.
func (r *replicated) leader(stream string) string {
	r.t.Helper()
	ca, err := os.ReadFile(r.cert)
	check(r.t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	own, err := tls.LoadX509KeyPair(r.cert, r.key)
	check(r.t, err)
	identity, err := nats.NkeyOptionFromSeed(r.seeds[queue.Operator])
	check(r.t, err)
	nc, err := nats.Connect(r.url, identity, nats.CustomInboxPrefix("_INBOX.operator"),
		nats.Secure(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}}), nats.Timeout(processPatience))
	check(r.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	check(r.t, err)
	for late := time.Now().Add(processPatience); ; {
		s, err := js.Stream(r.t.Context(), stream)
		if err == nil && s.CachedInfo().Cluster.Leader != "" {
			return s.CachedInfo().Cluster.Leader
		}
		if time.Now().After(late) {
			r.t.Fatalf("nobody leads %s: %v", stream, err)
		}
	}
}

// awaitProgress waits until a chunk or a part comes through that is not on its way
// already, or the job ends.
func awaitProgress(t *testing.T, progress <-chan struct{}, submit *process) {
	t.Helper()
	for len(progress) > 0 {
		<-progress
	}
	select {
	case <-progress:
	case <-submit.done:
	case <-time.After(processPatience):
		t.Fatalf("nothing comes forward:\n%s", submit.log())
	}
}

// TestServersLost kills, while a job is under way, the servers that lead its
// streams, one after the other, and then two of the three at once, so that
// nothing can be stored until one is there again. Nothing is lost, and nobody has
// to be started again but the servers.
func TestServersLost(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	want := calm(t, r.dir)
	r.as(queue.Aggregator, "aggregator", "-o", "far", "--memory", "1MiB") // it reads most results again
	worker := r.as(queue.Worker, "worker", "--workers", "1")
	submit := r.as(queue.Producer, "submit", append(smallJob, "--window", "1", "--wait")...)
	awaitProgress(t, r.progress, submit)
	for _, stream := range []string{"FLIPMILL_TASKS", "FLIPMILL_RESULTS", "KV_FLIPMILL_JOBS"} {
		name := r.leader(stream)
		r.servers[name].kill()
		awaitProgress(t, r.progress, submit) // with the two that are left
		t.Logf("%s led %s; %d chunks are solved", name, stream, worker.count("chunk solved"))
		r.startServer(name)
		r.servers[name].await("metadata leader", 1)
	}
	t.Logf("two servers die; %d chunks are solved", worker.count("chunk solved"))
	r.servers["n1"].kill()
	r.servers["n3"].kill()
	r.startServer("n1")
	r.startServer("n3")
	submit.succeed()
	wantSame(t, hashes(t, filepath.Join(r.dir, "far", "job=boards")), want)
}
