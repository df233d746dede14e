package aggregator

import (
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What the loop keeps of results never exceeds Options.Memory, whatever the
// order in which they come; the rest it reads again, and the files are the same.
func TestMemory(t *testing.T) {
	const chunks, memory = 30, 20_000
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 4, 10, chunks)
	total := 0
	for _, r := range j.results {
		total += len(r.Results) + len(r.Rejects) + len(r.Tally)
	}
	if total < 3*memory {
		t.Fatalf("the results have only %d bytes", total)
	}
	registry := prometheus.NewRegistry()
	var held, reread float64 // most of the one, the last of the other; of the loop, until stop
	stop := serve(t, conn, Options{Output: output, Memory: memory, Metrics: NewMetrics(registry), Turned: func() {
		families, err := registry.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, f := range families {
			switch f.GetName() {
			case "flipmill_aggregator_held_bytes":
				held = max(held, f.Metric[0].GetGauge().GetValue())
			case "flipmill_aggregator_results_reread_total":
				reread = f.Metric[0].GetCounter().GetValue()
			}
		}
	}})
	j.create(t, conn)
	j.send(t, conn, rand.New(rand.NewPCG(4, 4)).Perm(chunks)...)
	j.seal(t, conn)
	j.awaitDone(t, conn)
	stop()
	j.check(t, output)
	if held > memory || held < memory/2 || reread == 0 {
		t.Errorf("%v bytes were held at most and %v results read again; the limit is %d bytes", held, reread, memory)
	}
}
