//go:build cluster

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// memoryBoards fill more than the default window, so that a job of any size has no
// more on its way at once.
const memoryBoards = 6_000_000

// TestMemory: run stays below 300 MiB, and producer and worker below 150 MiB each,
// on more boards than may be on their way at once. (The test's binary has DuckDB in
// it, so flipmill alone takes less.)
func TestMemory(t *testing.T) {
	c := newCluster(t, nil)
	boards := c.memoryCorpus()
	check := func(name string, peak footprint, most int) {
		t.Logf("%s: %d MiB at most, of which %d not of files", name, peak.all, peak.anonymous)
		if peak.all == 0 || peak.all >= most {
			t.Errorf("%s takes %d MiB, want less than %d", name, peak.all, most)
		}
	}
	run := start(t, nil, c.dir, "flipmill", "run", boards, "--size", "5x5", "--workers", "2", "--progress", "none", "-o", "alone")
	peak := run.watchMemory()
	run.succeed()
	check("run", peak(), 300)

	aggregator := c.start("aggregator", "-o", "far")
	worker := c.start("worker", "--workers", "2")
	workerPeak := worker.watchMemory()
	submit := c.start("submit", boards, "--size", "5x5", "--wait")
	submitPeak := submit.watchMemory()
	submit.succeed()
	for _, p := range []*process{worker, aggregator} {
		p.signal(syscall.SIGTERM)
		p.succeed()
	}
	check("producer", submitPeak(), 150)
	check("worker", workerPeak(), 150)
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), hashes(t, filepath.Join(c.dir, "alone", "job=boards")))
}

// TestMemoryLimit: run keeps within GOMEMLIMIT. A window of one part has no more on its
// way than fits, however long the aggregator may be held up.
func TestMemoryLimit(t *testing.T) {
	c := &cluster{t: t, dir: t.TempDir()}
	boards := c.memoryCorpus()
	const limit = 96
	t.Setenv("GOMEMLIMIT", fmt.Sprintf("%dMiB", limit))
	run := start(t, nil, c.dir, "flipmill", "run", boards, "--size", "5x5", "--workers", "2", "--window", "1", "--progress", "none")
	peak := run.watchMemory()
	run.succeed()
	// The limit is on what Go manages, not on mapped files, such as the program's own.
	t.Logf("%d MiB at most, of which %d not of files", peak().all, peak().anonymous)
	if got := peak().anonymous; got == 0 || got > limit*110/100 {
		t.Errorf("run takes %d MiB besides its binary with GOMEMLIMIT=%dMiB", got, limit)
	}
}

// memoryCorpus writes the corpus and returns its path.
func (c *cluster) memoryCorpus() string {
	c.t.Helper()
	path := filepath.Join(c.dir, "boards.txt")
	cmd := command(c.t, c.dir, "generate", fmt.Sprintf("random,count=%d,seed=1", memoryBoards), "--size", "5x5")
	f, err := os.Create(path)
	check(c.t, err)
	defer f.Close()
	cmd.Stdout = f
	check(c.t, cmd.Run())
	return path
}

// footprint is what a process had in memory at most, in MiB.
type footprint struct {
	all, anonymous int
}

// watchMemory looks at what a process has in memory until it ends. The rusage of a
// child would do, if Linux did not begin it with what its parent has.
func (p *process) watchMemory() (peak func() footprint) {
	var most footprint
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
			if err != nil {
				return
			}
			most.all = max(most.all, mebibytes(status, "VmHWM:"))
			most.anonymous = max(most.anonymous, mebibytes(status, "RssAnon:"))
			select {
			case <-tick.C:
			case <-p.done:
				return
			}
		}
	}()
	return func() footprint {
		<-watched
		return most
	}
}

// mebibytes returns a figure of /proc/PID/status, 0 where it has none.
func mebibytes(status []byte, name string) int {
	_, after, _ := strings.Cut(string(status), name)
	figure, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	kib, _ := strconv.Atoi(figure)
	return kib / 1024
}
