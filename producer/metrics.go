package producer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what producers do. It is safe for concurrent use.
type Metrics struct {
	chunks, bytes, skipped, passed, records, waited prometheus.Counter
}

// NewMetrics registers a producer's metrics; r may be nil. docs/metrics.md lists
// them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	f := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "flipmill_producer_" + name, Help: help})
	}
	return &Metrics{
		chunks:  counter("chunks_published_total", "Chunks handed to the broker."),
		bytes:   counter("published_bytes_total", "Bytes of the chunks handed to the broker."),
		skipped: counter("chunks_skipped_total", "Chunks that were compared with a committed part instead."),
		passed:  counter("chunks_passed_total", "Chunks that were not handed to the broker because it had them already."),
		records: counter("records_total", "Records read from the corpus and cut into chunks."),
		waited:  counter("wait_seconds_total", "Time spent waiting: for the window to move, for room on the broker, or in a pause."),
	}
}

// waiting counts the time until done is called.
func (m *Metrics) waiting() (done func()) {
	start := time.Now()
	return func() { m.waited.Add(time.Since(start).Seconds()) }
}
