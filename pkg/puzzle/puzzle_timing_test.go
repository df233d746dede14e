package puzzle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

func BenchmarkPress(b *testing.B) {
	for _, name := range []string{"plus", "king-torus", "fridge"} {
		for _, size := range []puzzle.Size{{Rows: 5, Cols: 5}, {Rows: 15, Cols: 15}} {
			b.Run(fmt.Sprintf("%s-%s", name, size), func(b *testing.B) {
				rule, err := puzzle.ParseRule(name)
				if err != nil {
					b.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				boards, presses := puzzle.NewRun(size, 1<<15), puzzle.NewRun(size, 1<<15)
				for i := range boards.Masks {
					boards.Masks[i] = uint16(rng.Uint32()) & (1<<size.Width() - 1)
					presses.Masks[i] = uint16(rng.Uint32()) & (1<<size.Width() - 1)
				}
				b.ReportAllocs()
				for b.Loop() {
					rule.Press(boards, presses)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*boards.Count), "ns/board")
			})
		}
	}
}

func BenchmarkAppendText(b *testing.B) {
	for _, size := range []puzzle.Size{{Rows: 5, Cols: 5}, {Rows: 15, Cols: 15}} {
		b.Run(size.String(), func(b *testing.B) {
			boards := puzzle.NewRun(size, 1024)
			var text []byte
			b.ReportAllocs()
			for b.Loop() {
				text = text[:0]
				for i := range boards.Count {
					text = boards.AppendText(text, i)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*boards.Count), "ns/board")
		})
	}
}
