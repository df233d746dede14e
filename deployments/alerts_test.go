package deployments_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// healthy is two hours of a worker, an aggregator and a producer at work, seen each
// minute, in Prometheus's notation: a first value, what comes to it, and how often.
const healthy = `
flipmill_build_info{job="flipmill",instance="worker",version="1"} 1x120
flipmill_broker_connected{job="flipmill",instance="worker"} 1x120
flipmill_broker_connected{job="flipmill",instance="aggregator"} 1x120
process_cpu_seconds_total{job="flipmill",instance="worker"} 0+60x120
process_resident_memory_bytes{job="flipmill",instance="worker"} 1e8x120
flipmill_producer_chunks_published_total{job="flipmill",instance="submit"} 0+600x120
flipmill_producer_chunks_skipped_total{job="flipmill",instance="submit"} 0x120
flipmill_producer_chunks_passed_total{job="flipmill",instance="submit"} 0x120
flipmill_producer_wait_seconds_total{job="flipmill",instance="submit"} 0+30x120
flipmill_worker_boards_total{job="flipmill",instance="worker"} 0+6e7x120
flipmill_worker_chunks_held{job="flipmill",instance="worker"} 2x120
flipmill_worker_chunk_seconds_count{job="flipmill",instance="worker"} 0+600x120
flipmill_worker_chunk_seconds_bucket{job="flipmill",instance="worker",le="0.1"} 0+600x120
flipmill_worker_chunk_seconds_bucket{job="flipmill",instance="worker",le="+Inf"} 0+600x120
flipmill_worker_failures_total{job="flipmill",instance="worker"} 0x120
flipmill_worker_child_crashes_total{job="flipmill",instance="worker"} 0x120
flipmill_worker_redeliveries_total{job="flipmill",instance="worker"} 0+3x120
flipmill_worker_returns_total{job="flipmill",instance="worker"} 0x120
flipmill_aggregator_jobs_waiting{job="flipmill",instance="aggregator"} 0x120
flipmill_aggregator_jobs_ended_total{job="flipmill",instance="aggregator",state="failed"} 0x120
flipmill_aggregator_jobs_ended_total{job="flipmill",instance="aggregator",state="done"} 0+1x120
flipmill_aggregator_open_parts{job="flipmill",instance="aggregator"} 3x120
flipmill_aggregator_held_chunks{job="flipmill",instance="aggregator"} 40x120
flipmill_aggregator_held_bytes{job="flipmill",instance="aggregator"} 2e7x120
flipmill_aggregator_parts_committed_total{job="flipmill",instance="aggregator"} 0+10x120
flipmill_aggregator_records_committed_total{job="flipmill",instance="aggregator",status="solved"} 0+6e7x120
flipmill_aggregator_rejects_committed_total{job="flipmill",instance="aggregator",reason="bad_size"} 0+6x120
flipmill_aggregator_results_total{job="flipmill",instance="aggregator",verdict="accepted"} 0+600x120
flipmill_aggregator_results_total{job="flipmill",instance="aggregator",verdict="duplicate"} 0+3x120
flipmill_aggregator_results_reread_total{job="flipmill",instance="aggregator"} 0x120
flipmill_aggregator_commit_seconds_bucket{job="flipmill",instance="aggregator",le="0.016"} 0+10x120
flipmill_aggregator_commit_seconds_bucket{job="flipmill",instance="aggregator",le="+Inf"} 0+10x120
`

// minutes is how long that is.
const minutes = 120

// asked evaluates a query some minutes after the beginning.
type asked func(t *testing.T, expr parser.Expr, minute int) promql.Vector

// loaded returns what Prometheus answers when it has seen these values.
func loaded(t *testing.T, values string) asked {
	t.Helper()
	var seen []*promql.StorageSeries
	for line := range strings.Lines(strings.TrimSpace(values)) {
		metric, values, err := promqlParser().ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		series := promql.Series{Metric: metric}
		for minute, v := range values {
			series.Floats = append(series.Floats, promql.FPoint{T: time.Unix(int64(60*minute), 0).UnixMilli(), F: v.Value})
		}
		seen = append(seen, promql.NewStorageSeries(series))
	}
	find := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &found{}
		for _, s := range seen {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
				found.left = append(found.left, s)
			}
		}
		return found
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: promqlParser()})
	t.Cleanup(func() { _ = engine.Close() })
	return func(t *testing.T, expr parser.Expr, minute int) promql.Vector {
		t.Helper()
		data := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: find}}
		query, err := engine.NewInstantQuery(t.Context(), data, nil, expr.String(), time.Unix(int64(60*minute), 0))
		if err != nil {
			t.Fatal(err)
		}
		defer query.Close()
		answer, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		return slices.Clone(answer)
	}
}

// found is the series that a query has found.
type found struct {
	at   *promql.StorageSeries
	left []*promql.StorageSeries
}

func (f *found) Next() bool {
	if len(f.left) == 0 {
		return false
	}
	f.at, f.left = f.left[0], f.left[1:]
	return true
}

func (f *found) At() storage.Series                { return f.at }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// changed returns the healthy values but for those of one series.
func changed(t *testing.T, line string) string {
	t.Helper()
	name, _, _ := strings.Cut(line, " ")
	before, rest, found := strings.Cut(healthy, "\n"+name+" ")
	if !found {
		t.Fatalf("there is no series %s", name)
	}
	_, after, _ := strings.Cut(rest, "\n")
	return before + "\n" + line + "\n" + after
}

// firing returns when an alert fires first, in minutes: when it has been so for as long
// as the rule says. It is -1 for never.
func firing(t *testing.T, r *rulefmt.Rule, query asked) int {
	t.Helper()
	expr, err := promqlParser().ParseExpr(r.Expr)
	if err != nil {
		t.Fatal(err)
	}
	since := -1
	for minute := range minutes {
		switch so := len(query(t, expr, minute)) > 0; {
		case !so:
			since = -1
			continue
		case since < 0:
			since = minute
		}
		if time.Duration(minute-since)*time.Minute >= time.Duration(r.For) {
			return minute
		}
	}
	return -1
}

// TestAlertsFire: each alert fires when something is wrong from the tenth minute on,
// not before it is said to, and none fires while all is well.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	well := loaded(t, healthy)
	const worker, aggregator = `{job="flipmill",instance="worker"} `, `{job="flipmill",instance="aggregator"} `
	wrong := map[string]struct {
		series string // as it is then
		minute int    // in which the alert fires
	}{
		"FlipmillBrokerAway":    {"flipmill_broker_connected" + worker + "1x9 0x110", 12},
		"FlipmillNoAggregator":  {"flipmill_aggregator_jobs_waiting" + aggregator + "0x9 stale", 15},
		"FlipmillOutputWaits":   {"flipmill_aggregator_jobs_waiting" + aggregator + "0x9 2x110", 12},
		"FlipmillJobFailed":     {`flipmill_aggregator_jobs_ended_total{job="flipmill",instance="aggregator",state="failed"} 0x9 1x110`, 10},
		"FlipmillWrongSolution": {"flipmill_worker_failures_total" + worker + "0x9 1x110", 10},
		"FlipmillWorkersCrash":  {"flipmill_worker_child_crashes_total" + worker + "0x9 1x110", 10},
		// a fifth of the tasks: of those of ten minutes they are more than a tenth in the sixth
		"FlipmillRedeliveries": {"flipmill_worker_redeliveries_total" + worker + "0x9 0+120x110", 10 + 6 + 10},
		// the last part was committed in the ninth minute, the first of thirty without a change
		"FlipmillStuck":       {"flipmill_aggregator_parts_committed_total" + aggregator + "0+10x9 90x110", 9 + 29 + 15},
		"FlipmillMemoryShort": {"flipmill_aggregator_results_reread_total" + aggregator + "0x9 1+1x110", 10 + 30},
	}
	for _, r := range rules(t) {
		if minute := firing(t, &r, well); minute >= 0 {
			t.Errorf("%s fires in minute %d while all is well", r.Alert, minute)
		}
		w, known := wrong[r.Alert]
		if !known {
			t.Errorf("nothing makes %s fire", r.Alert)
			continue
		}
		if minute := firing(t, &r, loaded(t, changed(t, w.series))); minute != w.minute {
			t.Errorf("%s fires in minute %d, want %d", r.Alert, minute, w.minute)
		}
	}
}

// TestPanelsShowSomething: each query of the dashboard has an answer while all is well.
func TestPanelsShowSomething(t *testing.T) {
	t.Parallel()
	well := loaded(t, healthy)
	for where, expr := range queries(t) {
		if !strings.HasPrefix(where, "panel ") {
			continue
		}
		answer := well(t, expr, 60)
		if len(answer) == 0 {
			t.Errorf("%s: nothing is shown", where)
		}
		for _, s := range answer {
			if math.IsNaN(s.F) || s.F < 0 {
				t.Errorf("%s: shows %v", where, s)
			}
		}
	}
}

// TestHealthy: what is seen while all is well is what the processes have.
func TestHealthy(t *testing.T) {
	t.Parallel()
	known := documented(t)
	for line := range strings.Lines(strings.TrimSpace(healthy)) {
		name, _, _ := strings.Cut(line, "{")
		if known[name] == nil {
			t.Errorf("there is no metric %s", name)
		}
		for _, m := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(line, -1) {
			if !slices.Contains(known[name], m[1]) {
				t.Errorf("%s has no label %s", name, m[1])
			}
		}
	}
}
