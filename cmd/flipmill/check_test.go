package main

import (
	"math/rand/v2"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// Of many chunks as many are chosen as there should be, each as likely as others.
func TestSample(t *testing.T) {
	t.Parallel()
	const draws, chunks = 4000, 64
	hits := make([]int, chunks)
	random := rand.New(rand.NewPCG(5, 6))
	for range draws {
		s := &sample{random: random}
		for k := range chunks {
			s.add(&wire.Task{ID: wire.ID{Chunk: int64(k)}})
		}
		if len(s.chosen) != sampleSize {
			t.Fatalf("%d chunks chosen", len(s.chosen))
		}
		for _, c := range s.chosen {
			hits[c.ID.Chunk]++
		}
	}
	for k, n := range hits { // 1000 expected, the standard deviation is 27
		if n < 860 || n > 1140 {
			t.Errorf("chunk %d is chosen %d times of %d", k, n, draws)
		}
	}
}

// TestPredict predicts sums that are known.
func TestPredict(t *testing.T) {
	t.Parallel()
	of := func(m measured) float64 { return m.result }
	random := rand.New(rand.NewPCG(1, 2))
	const chunks, draws = 200, 500
	var all []measured
	var sum float64
	var records int64
	for range chunks { // chunks of two kinds of boards in varying shares, and noise
		n := 1000 + random.Int64N(500)
		m := measured{records: n, result: float64(n) * (5 + 3*random.Float64())}
		all, sum, records = append(all, m), sum+m.result, records+n
	}
	if got := predict(all, of, chunks, records); got.Low > sum*(1+1e-9) || got.High < sum*(1-1e-9) || got.High-got.Low > 1e-6 {
		t.Errorf("of all chunks %v is foretold, the sum is %g", got, sum)
	}
	missed, width := 0, 0.0
	for range draws {
		var some []measured
		for _, k := range random.Perm(chunks)[:sampleSize] {
			some = append(some, all[k])
		}
		got := predict(some, of, chunks, records)
		width += (got.High - got.Low) / sum / draws
		if sum < got.Low || sum > got.High {
			missed++
		}
	}
	if missed > draws/40 || width > 0.3 {
		t.Errorf("%d of %d forecasts are wrong, at an average width of %.2f", missed, draws, width)
	}
	if got := predict(all[:1], of, chunks, records); got.Low <= 0 || got.High < 2.9*got.Low {
		t.Errorf("of one chunk %v is foretold", got)
	}
}
