//go:build cluster

package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var servedAt = regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+)`)

// endpoint returns where a process that was started with --http :0 answers.
func (p *process) endpoint() string {
	p.t.Helper()
	return servedAt.FindStringSubmatch(p.await("metrics and probes", 1))[1]
}

// get returns the status and the text of an answer.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func wantStatus(t *testing.T, url string, status int, text string) {
	t.Helper()
	if code, body := get(t, url); code != status || !strings.Contains(body, text) {
		t.Errorf("%s: %d %q, want %d %q", url, code, body, status, text)
	}
}

// wantMetrics scrapes a process and compares some samples, named like
// results_total{verdict="stale"}, with what they must be. A histogram's sample
// is the number of its observations.
func wantMetrics(t *testing.T, url string, want map[string]float64) {
	t.Helper()
	_, text := get(t, url+"/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s/metrics: %v", url, err)
	}
	got := map[string]float64{}
	for name, family := range families {
		for _, m := range family.Metric {
			var full strings.Builder
			full.WriteString(name)
			for _, l := range m.Label {
				if full.WriteString(fmt.Sprintf("{%s=%q}", l.GetName(), l.GetValue())); l.GetName() == "job" {
					t.Errorf("%s has a label for the job", full.String())
				}
			}
			// All but one are nil, and give 0.
			got[full.String()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for name, value := range want {
		if found, ok := got["flipmill_"+name]; !ok || found != value {
			t.Errorf("%s: flipmill_%s is %v (there: %v), want %v", url, name, found, ok, value)
		}
	}
}

// TestMetricsOfJob reads the metrics of the processes of one job: their numbers
// are those of its corpus. It stops the broker too, which is what a probe of
// readiness is for, and no reason to start anything again.
func TestMetricsOfJob(t *testing.T) {
	t.Parallel()
	const chunks, rejects, records = 4, 3, 4*65_536 - 1000
	c := newCluster(t, nil)
	writeSmallBoards(t, filepath.Join(c.dir, "boards.txt"), chunks)
	idle := c.start("worker", "--http", ":0")
	idle.await("waiting for the streams", 1)
	wantStatus(t, idle.endpoint()+"/livez", http.StatusOK, "ok")
	wantStatus(t, idle.endpoint()+"/readyz", http.StatusServiceUnavailable, "waiting for the streams")
	asks := start(t, nil, c.dir, "flipmill", "health", "--http", strings.TrimPrefix(idle.endpoint(), "http://"))
	if code := asks.exit(); code != int(exitError) || !strings.Contains(asks.log(), "waiting for the streams") {
		t.Errorf("health of a worker that waits ends with %d:\n%s", code, asks.log())
	}
	idle.kill()

	collects := c.start("aggregator", "-o", "far", "--http", ":0")
	submit := c.start("submit", "boards.txt", "--size", "2x2", "--part-chunks", "2", "--window", "8", "--wait", "--http", "127.0.0.1:0")
	submit.await("corpus read", 1)
	wantMetrics(t, submit.endpoint(), map[string]float64{
		"producer_chunks_published_total": chunks, "producer_records_total": records, "producer_chunks_skipped_total": 0,
		"broker_connected": 1,
	})
	wantStatus(t, submit.endpoint()+"/readyz", http.StatusOK, "ok")

	works := c.start("worker", "--http", ":0")
	submit.succeed()
	wantMetrics(t, works.endpoint(), map[string]float64{
		"worker_boards_total": records - rejects, "worker_rejects_total": rejects, "worker_chunk_seconds": chunks,
		"worker_failures_total": 0, "worker_redeliveries_total": 0, "worker_child_crashes_total": 0,
	})
	wantMetrics(t, collects.endpoint(), map[string]float64{
		`aggregator_results_total{verdict="accepted"}`: chunks, `aggregator_results_total{verdict="duplicate"}`: 0,
		"aggregator_parts_committed_total": 2, "aggregator_commit_seconds": 2,
		`aggregator_records_committed_total{status="solved"}`:         records - rejects,
		`aggregator_records_committed_total{status="impossible"}`:     0,
		`aggregator_records_committed_total{status="rejected"}`:       rejects,
		`aggregator_rejects_committed_total{reason="unknown_symbol"}`: rejects,
		`aggregator_rejects_committed_total{reason="worker_failed"}`:  0,
		`aggregator_jobs_ended_total{state="done"}`:                   1,
		"aggregator_held_bytes":                                       0, "aggregator_open_parts": 0, "aggregator_jobs_waiting": 0,
		"aggregator_jobs_held": 0, "aggregator_takeovers_total": 0,
	})
	wantStatus(t, works.endpoint()+"/readyz", http.StatusOK, "ok")
	wantStatus(t, collects.endpoint()+"/readyz", http.StatusOK, "ok")
	start(t, nil, c.dir, "flipmill", "health", "--http", strings.TrimPrefix(works.endpoint(), "http://")).succeed()

	// The same corpus again: it is compared, not published.
	again := c.start("submit", "boards.txt", "--size", "2x2", "--part-chunks", "2", "--wait")
	again.succeed()

	c.broker.kill()
	collects.await("broker connection lost", 1)
	wantStatus(t, collects.endpoint()+"/readyz", http.StatusServiceUnavailable, "the broker is not connected")
	wantStatus(t, collects.endpoint()+"/livez", http.StatusOK, "ok")
	c.startBroker()
	collects.await("broker connection restored", 1)
	wantStatus(t, collects.endpoint()+"/readyz", http.StatusOK, "ok")
	works.signal(syscall.SIGTERM)
	works.succeed()
	collects.signal(syscall.SIGTERM)
	collects.succeed()
}
