//go:build cluster

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
)

// drillParts is how many parts of two chunks the corpus of TestRestartedOneByOne has: two for
// each restart, and some at the end.
const drillParts = 20

// drill is a cluster of three servers, three workers, two aggregators and a submit
// that reads a named pipe, so that its job goes on as far as the test lets it.
type drill struct {
	*replicated
	corpus   []byte
	pipe     *os.File
	fed      int // parts that have been written to the pipe
	submit   *process
	services map[string]*process
}

// TestRestartedOneByOne stops every process of a job with SIGTERM and starts it again, one
// after the other: servers, workers, aggregators and submit, with TLS and the
// permissions of their roles. While one is away, the job goes on; the next is
// stopped when it is back. How far the job has come is for the test to say, so that
// all of that happens in its middle, whatever the speed of the machine.
func TestRestartedOneByOne(t *testing.T) {
	t.Parallel()
	d := &drill{replicated: newReplicated(t), services: map[string]*process{}}
	job := []string{"boards.txt", "--size", "2x2", "--part-chunks", "2"}
	writeSmallBoards(t, filepath.Join(d.dir, "boards.txt"), 2*drillParts)
	flipmill(t, d.dir, append([]string{"run", "-o", "calm"}, job...)...)
	want := hashes(t, filepath.Join(d.dir, "calm", "job=boards"))
	d.makePipe()

	for _, name := range []string{"worker 1", "worker 2", "worker 3", "aggregator 1", "aggregator 2"} {
		d.startService(name)
	}
	d.startSubmit(job)
	for _, name := range []string{"n1", "n2", "n3"} {
		d.without(name, d.servers[name], func() {
			d.startServer(name)
			d.awaitHealth(name)
		})
	}
	for name, p := range d.services { // in any order
		d.without(name, p, func() { d.startService(name) })
		p.succeed()
	}
	d.feed(1)
	d.submit.signal(syscall.SIGTERM)
	if code := d.submit.exit(); code != int(exitTerminated) {
		t.Fatalf("submit, told to stop, ends with %d:\n%s", code, d.submit.log())
	}
	check(t, d.pipe.Close())
	d.startSubmit(job)
	d.feed(drillParts - d.fed)
	check(t, d.pipe.Close())
	d.submit.succeed()

	flipmill(t, d.dir, "verify", "far/job=boards")
	wantSame(t, hashes(t, filepath.Join(d.dir, "far", "job=boards")), want)
	for _, p := range d.services {
		p.signal(syscall.SIGTERM)
		p.succeed()
	}
}

// makePipe puts a pipe in the place of the corpus.
func (d *drill) makePipe() {
	d.t.Helper()
	path := filepath.Join(d.dir, "boards.txt")
	var err error
	d.corpus, err = os.ReadFile(path)
	check(d.t, err)
	check(d.t, os.Remove(path))
	check(d.t, syscall.Mkfifo(path, 0o600))
}

// startService starts a worker or an aggregator, and waits until it serves.
func (d *drill) startService(name string) {
	d.t.Helper()
	switch verb, _, _ := strings.Cut(name, " "); verb {
	case "worker":
		d.services[name] = d.as(queue.Worker, verb, "--workers", "1")
	case "aggregator":
		d.services[name] = d.as(queue.Aggregator, verb, "-o", "far")
	}
	d.services[name].await(" started", 1)
}

// startSubmit starts the submit, and writes to it what an earlier one had.
func (d *drill) startSubmit(job []string) {
	d.t.Helper()
	var err error
	// For reading as well: then it need not wait for who reads.
	d.pipe, err = os.OpenFile(filepath.Join(d.dir, "boards.txt"), os.O_RDWR, 0)
	check(d.t, err)
	d.submit = d.as(queue.Producer, "submit", append(job, "--wait")...)
	before := d.fed
	d.fed = 0
	d.feed(before)
}

// feed writes more parts to the pipe, the last of the corpus with what there is of
// it. All but a little of it is read when feed returns.
func (d *drill) feed(parts int) {
	d.t.Helper()
	const part = 2 * 65_536 * len("0000\n")
	more := d.corpus[d.fed*part : min((d.fed+parts)*part, len(d.corpus))]
	check(d.t, d.pipe.SetWriteDeadline(time.Now().Add(processPatience)))
	if _, err := d.pipe.Write(more); err != nil {
		d.t.Fatalf("submit does not read part %d: %v\n%s", d.fed, err, d.submit.log())
	}
	d.fed += parts
}

// without stops a process in the middle of a part, lets another part of the job
// come to its end without it, and has it started again.
func (d *drill) without(name string, p *process, start func()) {
	d.t.Helper()
	begun := time.Now()
	d.feed(1)
	p.signal(syscall.SIGTERM)
	p.exit() // servers have a code of their own
	d.feed(1)
	d.awaitParts(d.fed - 1) // of the last one, submit does not know yet that it is whole
	without := time.Since(begun)
	start()
	d.t.Logf("%s: part %d came without it after %v, it was back after %v", name, d.fed-1, without, time.Since(begun))
}

// awaitParts waits until so many parts are committed.
func (d *drill) awaitParts(parts int) {
	d.t.Helper()
	for late := time.After(processPatience); ; {
		committed, err := filepath.Glob(filepath.Join(d.dir, "far", "job=boards", "results", "*.parquet"))
		check(d.t, err)
		if len(committed) >= parts {
			return
		}
		select {
		case <-d.progress:
		case <-d.submit.done:
			d.t.Fatalf("submit ends too early:\n%s", d.submit.log())
		case <-late:
			d.t.Fatalf("%d parts are committed, want %d:\n%s", len(committed), parts, d.submit.log())
		}
	}
}

// awaitHealth waits until a server says that it has all that the others have.
func (d *drill) awaitHealth(name string) {
	d.t.Helper()
	late, again := time.After(processPatience), time.NewTicker(100*time.Millisecond)
	defer again.Stop()
	for {
		answer, err := http.Get("http://" + d.monitors[name] + "/healthz")
		if err == nil {
			if err = answer.Body.Close(); err == nil && answer.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("%s, %w", answer.Status, err)
		}
		select {
		case <-again.C:
		case <-late:
			d.t.Fatalf("server %s is not well: %v\n%s", name, err, d.servers[name].log())
		}
	}
}
