//go:build cluster

package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// TestAggregatorAway kills the aggregator before the first result of a job. The
// producer comes to the end of its window, the workers to the end of their
// tasks, and all of that waits on the broker. With a new aggregator it flows on.
func TestAggregatorAway(t *testing.T) {
	t.Parallel()
	const window, partChunks = 3, 2
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	first := c.start("aggregator", "-o", "far")
	submit := c.start("submit", append(smallJob, "--window", strconv.Itoa(window), "--wait", "--http", ":0")...)
	published := func() float64 {
		return metric(t, submit.endpoint(), "flipmill_producer_chunks_published_total")
	}
	first.await("job taken up", 1)
	for late := time.Now().Add(processPatience); published() < window*partChunks; {
		if time.Now().After(late) {
			t.Fatalf("the window is not filled:\n%s", submit.log())
		}
	}
	first.kill()
	works := c.start("worker", "--workers", "2", "--http", ":0")
	works.await("chunk solved", window*partChunks)
	if n := published(); n != window*partChunks {
		t.Errorf("%v chunks are published while nobody takes the results, want the window's %d", n, window*partChunks)
	}
	c.start("aggregator", "-o", "far")
	submit.succeed()
	for name, want := range map[string]float64{"flipmill_worker_chunk_seconds_count": 12, "flipmill_worker_redeliveries_total": 0} {
		if got := metric(t, works.endpoint(), name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// metric returns the value of a metric without labels.
func metric(t *testing.T, url, name string) float64 {
	t.Helper()
	status, text := get(t, url+"/metrics")
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	if status != http.StatusOK || found == nil {
		t.Fatalf("%s: %d, no metric %s", url, status, name)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
