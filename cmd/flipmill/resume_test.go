//go:build cluster

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

// TestResumeAfterLoss: whatever of a job an operator removes from the server, its
// resume hands over the chunks that are missing, and no other.
func TestResumeAfterLoss(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	c.run("setup", "--ack-wait", "1s")
	aggregator := c.start("aggregator", "-o", "far")
	c.run("submit", append(smallJob, "--window", "6")...) // all of it, and nobody solves
	js := c.jetStream()
	repaired := func(chunks uint64, before uint64) {
		t.Helper()
		if v := ask[view.Status](c, exitOK, "resume", "boards"); v.State != "open" {
			t.Errorf("after resume: %+v", v)
		}
		if got := stored(t, js, "FLIPMILL_TASKS") - before; got != chunks {
			t.Errorf("resume hands over %d chunks, want %d", got, chunks)
		}
	}

	repaired(0, stored(t, js, "FLIPMILL_TASKS")) // nothing is missing
	for _, chunk := range []int{0, 5, 11} {
		remove(t, js, "FLIPMILL_TASKS", fmt.Sprintf("flipmill.task.normal.boards.%d", chunk))
	}
	if e := ask[*view.Explanation](c, exitOK, "why", "boards"); where(e, view.Missing) != 3 || where(e, queue.Queued) != 9 {
		t.Errorf("after the loss of tasks: %+v", e.Places)
	}
	repaired(3, stored(t, js, "FLIPMILL_TASKS"))

	aggregator.kill()
	worker := c.start("worker", "--workers", "2")
	c.until("solved", func(e *view.Explanation) bool { return where(e, queue.Solved) == 12 })
	worker.signal(syscall.SIGTERM)
	worker.succeed()
	for _, chunk := range []int{1, 5, 10} {
		remove(t, js, "FLIPMILL_RESULTS", fmt.Sprintf("flipmill.result.*.boards.%d.%d", chunk/2, chunk))
	}
	repaired(3, stored(t, js, "FLIPMILL_TASKS"))

	aggregator = c.start("aggregator", "-o", "far")
	aggregator.await("part committed", 3) // those that have lost nothing
	for _, name := range []string{"FLIPMILL_TASKS", "FLIPMILL_RESULTS"} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	repaired(6, 0)
	c.start("worker", "--workers", "2")
	if v := ask[view.Status](c, exitOK, "resume", "boards", "--wait"); v.State != "done" {
		t.Errorf("after resume --wait: %+v", v)
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestResumeAfterLostStore: a server that has lost everything gets the job back from
// its aggregator, one that lived on or one that was started since, and resume hands
// over the chunks that are not committed, and no other.
func TestResumeAfterLostStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	c.run("setup")
	aggregator := c.start("aggregator", "-o", "far")
	c.run("submit", append(smallJob, "--window", "6")...) // all of it, and nobody solves
	for _, killed := range []bool{false, true} {
		worker := c.start("worker", "--workers", "1")
		aggregator.await("part committed", aggregator.count("part committed")+1)
		worker.kill()
		c.broker.kill()
		if killed {
			aggregator.kill()
		}
		if err := os.RemoveAll(filepath.Join(c.dir, "nats-data")); err != nil {
			t.Fatal(err)
		}
		c.startBroker()
		if killed {
			aggregator = c.start("aggregator", "-o", "far")
		}
		if v := ask[view.Status](c, exitOK, "resume", "boards"); v.State != "open" || *v.Chunks != 12 {
			t.Errorf("after resume: %+v", v)
		}
		parts, err := filepath.Glob(filepath.Join(c.dir, "far", "job=boards", "results", "*.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := stored(t, c.jetStream(), "FLIPMILL_TASKS"), uint64(12-2*len(parts)); got != want {
			t.Errorf("with %d parts committed, resume hands over %d chunks, want %d", len(parts), got, want)
		}
	}
	c.start("worker", "--workers", "2")
	if v := ask[view.Status](c, exitOK, "resume", "boards", "--wait"); v.State != "done" || v.Drives != 3 {
		t.Errorf("after resume --wait: %+v", v)
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestResumeUnknown: a server whose store is young may get a job back from its
// aggregator, for which resume waits. After that it says at once that there is none.
func TestResumeUnknown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	c.run("setup")
	for _, waits := range []bool{true, false} {
		resume := c.start("resume", "nobody")
		if code := resume.exit(); code != int(exitNotFound) {
			t.Errorf("resume of no job ends with %d:\n%s", code, resume.log())
		}
		if waited := resume.count("waiting up to") > 0; waited != waits {
			t.Errorf("waits %v, want %v:\n%s", waited, waits, resume.log())
		}
	}
}

// TestResumeWithoutSubmit: resume leaves a job alone while somebody drives it, and
// else drives it, if it can read the corpus. If not, it prints the command that
// does.
func TestResumeWithoutSubmit(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	c.run("setup")
	c.start("aggregator", "-o", "far")
	submit := c.start("submit", append(smallJob, "--window", "1")...)
	c.until("handed over a part", func(e *view.Explanation) bool { return where(e, queue.Queued) == 2 })
	js := c.jetStream()
	before := stored(t, js, "FLIPMILL_TASKS")
	if v := ask[view.Status](c, exitOK, "resume", "boards"); v.Drives != 1 || v.State != "open" || stored(t, js, "FLIPMILL_TASKS") != before {
		t.Errorf("resume beside a submit: %+v", v)
	}
	submit.kill()

	corpus, away := filepath.Join(c.dir, "boards.txt"), filepath.Join(c.dir, "away.txt")
	if err := os.Rename(corpus, away); err != nil {
		t.Fatal(err)
	}
	p := c.start("resume", "boards")
	if code := p.exit(); code != int(exitError) {
		t.Errorf("resume without a corpus ends with %d:\n%s", code, p.log())
	}
	lines := strings.Split(strings.TrimSpace(p.log()), "\n")
	command := strings.TrimSpace(lines[len(lines)-1])
	if host, _ := os.Hostname(); !strings.HasPrefix(command, "cd ") || !strings.Contains(p.log(), "as on "+host) {
		t.Fatalf("resume says\n%s", p.log())
	}
	if err := os.Rename(away, corpus); err != nil {
		t.Fatal(err)
	}
	c.start("worker", "--workers", "2")
	shell := exec.Command("sh", "-c", command)
	shell.Env = append(os.Environ(), "NATS_URL="+c.url)
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	if v := ask[view.Status](c, exitOK, "wait", "boards"); v.Drives != 2 {
		t.Errorf("at the end: %+v", v)
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
	c.exits(exitError, "has ended", "resume", "boards")
}

// A command that is to be run elsewhere says all that the first one said, to any
// shell.
func TestElsewhere(t *testing.T) {
	job := &wire.Job{ID: "it", Origin: &wire.Origin{
		Host: "mill-3", Directory: "/srv/it's here", Paths: []string{"a b.txt", "-c.txt"}, Flags: []string{"--job=it", "--symbols=#=1,.=0"},
	}}
	want := "the corpus of job it cannot be read here: gone; where it can be, as on mill-3, run\n  " +
		`cd '/srv/it'\''s here' && flipmill submit --job=it '--symbols=#=1,.=0' -- 'a b.txt' -c.txt`
	if got := elsewhere(job, fmt.Errorf("gone")).Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestFailedJob: a task that nobody can read fails its job. Nothing of it is left
// on the server, and it can be driven again: what was committed stays.
func TestFailedJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	c.run("setup")
	aggregator := c.start("aggregator", "-o", "far")
	c.run("submit", append(smallJob, "--window", "6")...)
	js := c.jetStream()
	const spoilt = "flipmill.task.normal.boards.7"
	remove(t, js, "FLIPMILL_TASKS", spoilt)
	if _, err := js.Publish(t.Context(), spoilt, []byte("noise")); err != nil {
		t.Fatal(err)
	}
	c.start("worker", "--workers", "1")
	c.exits(exitJobFailed, "is failed: chunk 7: task cannot be read", "wait", "boards")
	aggregator.await("job failed", 1)
	c.until("gone", func(*view.Explanation) bool {
		for _, name := range []string{"FLIPMILL_TASKS", "FLIPMILL_RESULTS"} {
			stream, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if stream.CachedInfo().State.Msgs > 0 {
				return false
			}
		}
		return true
	})
	if v := ask[view.Status](c, exitOK, "resume", "boards", "--wait"); v.State != "done" || v.Reason != "" {
		t.Errorf("after resume: %+v", v)
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}
