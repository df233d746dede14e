package tally_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// BenchmarkAdd reports the cost of counting a board, by the length of its run.
func BenchmarkAdd(b *testing.B) {
	size := puzzle.Size{Rows: 5, Cols: 5}
	for _, n := range []int{1, 100, 65536} {
		b.Run(fmt.Sprintf("5x5/run=%d", n), func(b *testing.B) {
			a := answers(rand.New(rand.NewPCG(1, 2)), size, n)
			var t tally.Tally
			b.ReportAllocs()
			for b.Loop() {
				t.Add(size, a)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/board")
		})
	}
}
