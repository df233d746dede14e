package worker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/flipmill/flipmill/pkg/wire"
)

// Metrics counts what workers do. It is safe for concurrent use.
type Metrics struct {
	boards, rejected, failures      prometheus.Counter
	redeliveries, returned, crashes prometheus.Counter
	held                            prometheus.Gauge
	seconds                         prometheus.Histogram
}

// NewMetrics registers a worker's metrics; r may be nil. docs/metrics.md lists
// them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "flipmill_worker_" + name, Help: help})
	}
	return &Metrics{
		boards:       counter("boards_total", "Boards answered in results that the broker has stored."),
		rejected:     counter("rejects_total", "Rejected records in results that the broker has stored."),
		failures:     counter("failures_total", "Results that stop their job, such as a solution that proved wrong."),
		redeliveries: counter("redeliveries_total", "Tasks taken that had been delivered before."),
		returned:     counter("returns_total", "Tasks put down unanswered: put back to be tried again, or dropped with their job."),
		crashes:      counter("child_crashes_total", "Child processes that died of their boards."),
		held:         f.NewGauge(prometheus.GaugeOpts{Name: "flipmill_worker_chunks_held", Help: "Chunks being solved or waiting for the broker to store their results."}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "flipmill_worker_chunk_seconds", Help: "Time to solve, check and encode a chunk.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10), // 1 ms to 4 min
		}),
	}
}

// taken counts a task that was delivered for the n-th time.
func (m *Metrics) taken(n int) {
	m.held.Inc()
	if n > 1 {
		m.redeliveries.Inc()
	}
}

// stored counts a result.
func (m *Metrics) stored(r *wire.Result, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	if r.Failure != "" {
		m.failures.Inc()
		return
	}
	m.boards.Add(float64(r.Boards))
	m.rejected.Add(float64(r.Rejected))
}
