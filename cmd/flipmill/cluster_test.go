package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smallJob is the corpus of these tests: 6 parts of 2 chunks.
var smallJob = []string{"boards.txt", "--size", "2x2", "--part-chunks", "2"}

// calm returns the files of smallJob's dataset as flipmill run leaves them.
func calm(t *testing.T, dir string) map[string]string {
	t.Helper()
	writeSmallBoards(t, filepath.Join(dir, "boards.txt"), 12)
	flipmill(t, dir, append([]string{"run", "-o", "calm"}, smallJob...)...)
	return hashes(t, filepath.Join(dir, "calm", "job=boards"))
}

// TestProcesses runs one job over a NATS server with two workers and an
// aggregator: the dataset is that of flipmill run.
func TestProcesses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	aggregator := c.start("aggregator", "-o", "far")
	workers := []*process{c.start("worker", "--workers", "1"), c.start("worker", "--workers", "2")}
	submit := c.run("submit", append(smallJob, "--wait", "--json")...)
	var outcome submitted
	if err := json.Unmarshal([]byte(submit.out.String()), &outcome); err != nil {
		t.Fatal(err)
	}
	if records := int64(12*65_536 - 1000); outcome != (submitted{"boards", "done", records, 12, records}) {
		t.Errorf("submit says %+v", outcome)
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
	flipmill(t, c.dir, "verify", "far/job=boards")

	// A finished job that is submitted again is compared, and nothing changes.
	c.run("submit", append(smallJob, "--wait")...)
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)

	for _, p := range append(workers, aggregator) {
		p.signal(syscall.SIGTERM)
		p.succeed() // a service that was told to stop ends well
	}
}

// TestLostStore kills the NATS server in the middle of a job and removes its
// store. The services stay; the same submit finishes the job, and what was
// committed before stays as it is.
func TestLostStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	aggregator := c.start("aggregator", "-o", "far")
	c.start("worker", "--workers", "2")
	submit := c.start("submit", append(smallJob, "--wait", "--window", "1")...)
	aggregator.await("part committed", 2)
	c.broker.kill()
	if err := os.RemoveAll(filepath.Join(c.dir, "nats-data")); err != nil {
		t.Fatal(err)
	}
	c.startBroker()
	if code := submit.exit(); code != int(exitError) {
		t.Errorf("the submit whose job was lost ends with %d:\n%s", code, submit.log())
	}
	c.run("submit", append(smallJob, "--wait")...)
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}
