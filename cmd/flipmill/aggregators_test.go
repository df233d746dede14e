//go:build cluster

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

// aggregators starts aggregators of one output, by name.
func (c *cluster) aggregators(output, lease string, names ...string) map[string]*process {
	all := map[string]*process{}
	for _, name := range names {
		all[name] = c.start("aggregator", "-o", output, "--lease", lease)
		all[name].await("aggregator started", 1)
	}
	return all
}

// takenUp waits until one of two aggregators has taken up the job, and returns that one
// first.
func takenUp(a, b *process) (holder, other *process) {
	select {
	case <-a.said("job taken up"):
		return a, b
	case <-b.said("job taken up"):
		return b, a
	}
}

// TestAggregatorsStandIn has two aggregators in one folder: the one that holds the
// job is killed, and the other goes on after the lease; that one is stopped, and a
// third goes on at once.
func TestAggregatorsStandIn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	all := c.aggregators("far", "2s", "a", "b")
	submit := c.start("submit", append(smallJob, "--window", "1", "--wait")...)
	first, second := takenUp(all["a"], all["b"])
	worker := c.start("worker", "--workers", "1")
	first.await("part committed", 1)
	worker.kill() // so that the job waits for all that follows
	before := ask[view.Status](c, exitOK, "status", "boards")
	first.kill()
	second.await("job taken from an aggregator that was silent", 1)
	second.await("job taken up", 1)
	third := c.start("aggregator", "-o", "far", "--lease", "1h")
	third.await("aggregator started", 1)
	second.signal(syscall.SIGTERM)
	second.succeed()
	third.await("job taken up", 1)
	now := ask[view.Status](c, exitOK, "status", "boards")
	if now.Output == "" || now.Output != before.Output || now.Holder == "" || now.Holder == before.Holder {
		t.Errorf("status says %+v, before it said %+v", now, before)
	}
	c.run("setup", "--ack-wait", "1s") // the worker's task comes back soon
	c.start("worker", "--workers", "2")
	submit.succeed()
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
	if left, err := filepath.Glob(filepath.Join(c.dir, "far", ".tmp", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSeveralOfEach runs several jobs over two aggregators of one output and one
// of another: each dataset is in one place, whole.
func TestSeveralOfEach(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	all := c.aggregators("far", "1h", "a", "b")
	all["other"] = c.aggregators("away", "1h", "other")["other"]
	c.start("worker", "--workers", "2")
	jobs := []string{"job-1", "job-2", "job-3", "job-4"}
	var submits []*process
	for _, job := range jobs {
		submits = append(submits, c.start("submit", append(smallJob, "--job", job, "--wait")...))
	}
	for _, submit := range submits {
		submit.succeed()
	}
	for _, job := range jobs {
		var found []string
		for _, output := range []string{"far", "away"} {
			path := filepath.Join(output, "job="+job)
			if _, err := os.Stat(filepath.Join(c.dir, path)); err == nil {
				found = append(found, path)
			}
		}
		if len(found) != 1 {
			t.Fatalf("job %s is in %v", job, found)
		}
		flipmill(t, c.dir, "verify", found[0])
		// The job's name is in the footers; all else is as it must be.
		if got := hashes(t, filepath.Join(c.dir, found[0])); len(got) != len(want) {
			t.Errorf("job %s has %d files, want %d", job, len(got), len(want))
		}
	}
	for _, p := range all {
		p.signal(syscall.SIGTERM)
		p.succeed()
	}
}

// TestLostOutput loses the folder of a job in the middle. Aggregators of other
// folders leave the job alone, and submit says to which it belongs; a folder that
// is given its identity takes its place, and the same submit makes all of it again.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	first := c.aggregators("far", "1s", "first")["first"]
	c.start("worker", "--workers", "2")
	submit := c.start("submit", append(smallJob, "--window", "1")...)
	first.await("part committed", 2)
	first.kill()
	identity := ask[view.Status](c, exitOK, "status", "boards").Output
	if err := os.RemoveAll(filepath.Join(c.dir, "far")); err != nil {
		t.Fatal(err)
	}
	other := c.aggregators("away", "1s", "other")["other"]
	submit.await("is flipmill aggregator of output "+identity+" running", 1)
	if _, err := os.Stat(filepath.Join(c.dir, "away", "job=boards")); err == nil {
		t.Error("the job went to another output")
	}
	other.kill()
	submit.kill()
	if err := os.WriteFile(filepath.Join(c.dir, "away", ".output-id"), []byte(identity+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.aggregators("away", "1s", "again")["again"].await("committed parts have gone from the output", 1)
	c.run("submit", append(smallJob, "--wait")...)
	wantSame(t, hashes(t, filepath.Join(c.dir, "away", "job=boards")), want)
	c.exits(exitOK, "it is output "+identity, "doctor", "-o", "away")
}

// Doctor names the jobs that nobody serves, by the output that they belong to.
func TestLookAtJobs(t *testing.T) {
	now := time.Now()
	job := func(id string, l *wire.Ledger, silent time.Duration) *queue.Standing {
		return &queue.Standing{Job: &wire.Job{ID: id}, Ledger: l, Heard: now.Add(-silent), Order: wire.Proceed}
	}
	served := job("served", &wire.Ledger{State: wire.Open, Output: "o1", Holder: "h"}, time.Second)
	done := job("done", &wire.Ledger{State: wire.Done, Output: "o1"}, time.Hour)
	for _, test := range []struct {
		jobs []*queue.Standing
		want string
	}{
		{nil, "true 0 open, none without its aggregator"},
		{[]*queue.Standing{served, done}, "true 1 open, none without its aggregator"},
		{[]*queue.Standing{served, job("new", nil, 0)}, "false new: no aggregator serves them"},
		{[]*queue.Standing{
			job("a", &wire.Ledger{State: wire.Open, Output: "o1", Holder: "h"}, time.Minute),
			job("b", &wire.Ledger{State: wire.Open, Output: "o2"}, time.Minute),
			job("c", &wire.Ledger{State: wire.Open, Output: "o1"}, time.Hour),
		}, "false a, c: no aggregator serves them, and they belong to output o1\nfalse b: no aggregator serves them, and they belong to output o2"},
	} {
		var got []string
		for _, f := range lookAtJobs(test.jobs, now) {
			got = append(got, fmt.Sprint(f.OK, " ", f.Found))
			if f.OK == (f.Advice != "") {
				t.Errorf("%q comes with the advice %q", f.Found, f.Advice)
			}
		}
		if strings.Join(got, "\n") != test.want {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), test.want)
		}
	}
}

// said returns a channel that is closed when a line with the text is there.
func (p *process) said(text string) <-chan struct{} {
	found := make(chan struct{})
	go func() {
		defer close(found)
		for {
			p.mu.Lock()
			grown := p.grown
			there := slices.ContainsFunc(p.lines, func(line string) bool { return strings.Contains(line, text) })
			p.mu.Unlock()
			if there {
				return
			}
			select {
			case <-grown:
			case <-p.done:
				return
			}
		}
	}()
	return found
}
