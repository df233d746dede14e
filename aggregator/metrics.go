package aggregator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// Metrics counts what an aggregator does. It is safe for concurrent use.
type Metrics struct {
	results, records, rejects, jobs         *prometheus.CounterVec
	parts, rereads, waits, takeovers        prometheus.Counter
	seconds                                 prometheus.Histogram
	heldBytes, heldChunks, openParts, stuck prometheus.Gauge
	jobsHeld                                prometheus.Gauge
}

// otherReason stands for the reasons that this version does not know. They come
// from the network, where there may be any number.
const otherReason = "other"

// NewMetrics registers an aggregator's metrics; r may be nil. docs/metrics.md
// lists them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "flipmill_aggregator_" + name, Help: help})
	}
	vector := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := f.NewCounterVec(prometheus.CounterOpts{Name: "flipmill_aggregator_" + name, Help: help}, []string{label})
		for _, value := range values { // so that what did not happen yet is 0
			v.WithLabelValues(value)
		}
		return v
	}
	gauge := func(name, help string) prometheus.Gauge {
		return f.NewGauge(prometheus.GaugeOpts{Name: "flipmill_aggregator_" + name, Help: help})
	}
	return &Metrics{
		results: vector("results_total", "Results read from the log, by what they were: accepted, duplicate, or stale (of a part that is committed, or a job that has ended).",
			"verdict", "accepted", "duplicate", "stale"),
		records: vector("records_committed_total", "Records in committed parts, by outcome.",
			"status", puzzle.Solved.String(), puzzle.Impossible.String(), puzzle.Unproven.String(), "rejected"),
		rejects: vector("rejects_committed_total", "Rejected records in committed parts, by reason.",
			"reason", append(reasons(), otherReason)...),
		jobs: vector("jobs_ended_total", "Jobs that have come to their end, by what that was.",
			"state", "done", "failed", "cancelled"),
		parts:     counter("parts_committed_total", "Parts made durable."),
		rereads:   counter("results_reread_total", "Results read a second time, because memory did not hold them."),
		waits:     counter("output_waits_total", "Vain attempts to write to the output, such as on a full disk."),
		takeovers: counter("takeovers_total", "Jobs taken from an aggregator that had been silent for longer than a lease."),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "flipmill_aggregator_commit_seconds", Help: "Time to write a part and make it durable.",
			Buckets: prometheus.ExponentialBuckets(0.004, 4, 8), // 4 ms to 1 min
		}),
		jobsHeld:   gauge("jobs_held", "Open jobs that this aggregator serves."),
		heldBytes:  gauge("held_bytes", "Bytes of results kept in memory."),
		heldChunks: gauge("held_chunks", "Chunks of open parts that have arrived."),
		openParts:  gauge("open_parts", "Parts of which some chunks have arrived and that are not committed."),
		stuck:      gauge("jobs_waiting", "Jobs that wait until the output takes files again."),
	}
}

func reasons() []string {
	var names []string
	for _, r := range puzzle.Reasons() {
		names = append(names, string(r))
	}
	return names
}

// committed counts a part. counts are its statistics.
func (m *Metrics) committed(counts *tally.Tally, took time.Duration) {
	m.parts.Inc()
	m.seconds.Observe(took.Seconds())
	for _, s := range []puzzle.Status{puzzle.Solved, puzzle.Impossible, puzzle.Unproven} {
		m.records.WithLabelValues(s.String()).Add(float64(counts.With(s)))
	}
	m.records.WithLabelValues("rejected").Add(float64(counts.Rejected()))
	known := puzzle.Reasons()
	for _, r := range counts.Rejects() {
		name := otherReason
		for _, k := range known {
			if r.Reason == k {
				name = string(k)
			}
		}
		m.rejects.WithLabelValues(name).Add(float64(r.Records))
	}
}

// look takes the measure of what the aggregator holds.
func (m *Metrics) look(jobs map[string]*job) {
	var bytes int64
	var chunks, parts, stuck int
	for _, j := range jobs {
		bytes += j.chunks.InMemory()
		p, c := j.chunks.Open()
		parts, chunks = parts+p, chunks+c
		if j.chunks.Waits() {
			stuck++
		}
	}
	m.jobsHeld.Set(float64(len(jobs)))
	m.heldBytes.Set(float64(bytes))
	m.heldChunks.Set(float64(chunks))
	m.openParts.Set(float64(parts))
	m.stuck.Set(float64(stuck))
}
