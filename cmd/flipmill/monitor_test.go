package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/flipmill/flipmill/aggregator"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/producer"
	"github.com/flipmill/flipmill/worker"
)

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

// TestMetricsPage: docs/metrics.md has each metric of ours, as it is, and what
// promtool check metrics looks for is not wrong with any.
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
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("error %v, and what is wrong with metrics: %v", err, problems)
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "|\n"+table.String()+"\n") {
		t.Errorf("docs/metrics.md does not have this table, and nothing else in it:\n%s", table.String())
	}
}
