package generate_test

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

func BenchmarkFill(b *testing.B) {
	for _, text := range []string{
		"all 5x5 plus zero", "random,count=65536 5x5 plus zero", "distinct 5x5 plus zero", "solvable,count=65536 5x5 plus zero",
		"presses=6,count=65536 5x5 plus zero", "moves=6,count=65536 5x5 plus zero", "moves=15,count=65536 5x5 plus zero", "orbits 5x5 plus zero", "random,count=65536 15x15 plus zero", "solvable,count=65536 15x15 plus zero",
	} {
		b.Run(text, func(b *testing.B) {
			g := newGenerator(b, text)
			const n = 1 << 12
			var run puzzle.Run
			for b.Loop() {
				g.Fill(&run, 0, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/board")
		})
	}
}
