package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/flipmill/flipmill/aggregator"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/producer"
	"github.com/flipmill/flipmill/worker"
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

func wantStatus(t *testing.T, url string, status int, text string) {
	t.Helper()
	if code, body := get(t, url); code != status || !strings.Contains(body, text) {
		t.Errorf("%s: %d %q, want %d %q", url, code, body, status, text)
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

// TestHTTPTaken: who cannot answer does not start.
func TestHTTPTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSmallBoards(t, filepath.Join(dir, "boards.txt"), 1)
	p := start(t, nil, dir, "flipmill", "run", "boards.txt", "--size", "2x2", "--http", "192.0.2.1:9464")
	if code := p.exit(); code != int(exitConfig) || !strings.Contains(p.log(), "192.0.2.1:9464") {
		t.Errorf("ends with %d: %s", code, p.log())
	}
}

// TestStandstill: a loop that stands still is a reason to start again, unless
// it waits for the broker.
func TestStandstill(t *testing.T) {
	t.Parallel()
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := queue.Connect(t.Context(), queue.Options{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	m := newMonitor(standstill)
	m.conn = conn
	long := time.Now().Add(-2 * standstill)
	m.worked.Store(&long)
	if err := m.alive(); err == nil || !strings.Contains(err.Error(), "10m0s") {
		t.Errorf("alive says %v of a loop that stands still", err)
	}
	m.works()
	if err := m.alive(); err != nil {
		t.Errorf("alive says %v of a loop that turns", err)
	}
	conn.Close()
	server.Close()
	if err := m.alive(); err == nil {
		t.Error("alive says nothing of a connection that is closed for good")
	}
}

// TestMetricsPage: docs/metrics.md has each metric of ours, as it is.
func TestMetricsPage(t *testing.T) {
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := queue.Connect(t.Context(), queue.Options{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := newMonitor(0)
	m.conn = conn
	producer.NewMetrics(m.registry)
	worker.NewMetrics(m.registry)
	aggregator.NewMetrics(m.registry)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "flipmill_") {
			continue
		}
		var labels strings.Builder
		for _, l := range f.Metric[0].Label {
			labels.WriteString(" `" + l.GetName() + "`")
		}
		fmt.Fprintf(&table, "| `%s` | %s |%s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), labels.String(), f.GetHelp())
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "|\n"+table.String()+"\n") {
		t.Errorf("docs/metrics.md does not have this table, and nothing else in it:\n%s", table.String())
	}
}
