//go:build cluster

package main

import (
	"flag"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
)

var cut = flag.Duration("cut", 5*time.Second, "for how long TestCutOff cuts off clients")

// link is a way to a server that can be cut: then nothing comes through in either
// direction, and nobody is told.
type link struct {
	url  string
	mu   sync.Mutex
	open chan struct{} // closed while bytes come through
}

func newLink(t *testing.T, server string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	l := &link{url: "nats://" + listener.Addr().String(), open: make(chan struct{})}
	close(l.open)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(server, "nats://"))
			if err != nil {
				near.Close()
				continue
			}
			running.Go(func() { l.pump(near, far) })
			running.Go(func() { l.pump(far, near) })
		}
	})
	t.Cleanup(func() { // after the processes, which were started later, have ended
		listener.Close()
		running.Wait()
	})
	return l
}

// pump carries bytes until one of the ends is closed.
func (l *link) pump(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		open := l.open
		l.mu.Unlock()
		<-open
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// cut cuts the link for a while.
func (l *link) cut(while time.Duration) {
	l.mu.Lock()
	l.open = make(chan struct{})
	l.mu.Unlock()
	<-time.After(while)
	close(l.open)
}

// TestCutOff cuts worker, aggregator and submit off from their servers while a job
// is under way, one after the other, for so long that requests go unanswered and
// tasks are given to others. Each goes on by itself when the link is there again, and
// the dataset is the same.
func TestCutOff(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		progress := make(chan struct{}, 1<<16)
		c := newCluster(t, func(line string) { tellProgress(line, progress) })
		c.run("setup", "--ack-wait", "2s")
		cutOff(t, c, progress, func(_ queue.Role, verb string, args ...string) *process { return c.start(verb, args...) })
	})
	t.Run("three servers", func(t *testing.T) {
		t.Parallel()
		r := newReplicated(t)
		cutOff(t, r.cluster, r.progress, r.as)
	})
}

func cutOff(t *testing.T, c *cluster, progress chan struct{}, as func(role queue.Role, verb string, args ...string) *process) {
	t.Helper()
	want := calm(t, c.dir)
	servers := strings.Split(c.url, ",")
	links := []*link{}
	start := func(role queue.Role, verb string, args ...string) *process {
		l := newLink(t, servers[len(links)%len(servers)])
		links = append(links, l)
		return as(role, verb, append(args, "--nats-url", l.url)...)
	}
	start(queue.Worker, "worker", "--workers", "1")
	start(queue.Aggregator, "aggregator", "-o", "far")
	submit := start(queue.Producer, "submit", append(smallJob, "--window", "1", "--wait")...)
	for _, l := range links {
		awaitProgress(t, progress, submit)
		l.cut(*cut)
	}
	submit.succeed()
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}
