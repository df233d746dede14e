package corpus_test

import (
	"math/rand/v2"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// BenchmarkNext reads random 5x5 boards in every format, hashing included: an
// operation is one board.
func BenchmarkNext(b *testing.B) {
	size := puzzle.Size{Rows: 5, Cols: 5}
	for _, shape := range []struct {
		name   string
		opts   corpus.Options
		layout layout
	}{
		{"lines", corpus.Options{Format: corpus.Lines, Size: size}, layout{format: corpus.Lines}},
		{"lines by NextLike", corpus.Options{Format: corpus.Lines, Size: size}, layout{format: corpus.Lines}},
		{"lines with bars", corpus.Options{Format: corpus.Lines}, layout{format: corpus.Lines, bar: "/"}},
		{"blocks", corpus.Options{Format: corpus.Blocks}, layout{format: corpus.Blocks}},
		{"grid", corpus.Options{Format: corpus.Grid}, layout{format: corpus.Grid, gap: " "}},
	} {
		b.Run(shape.name, func(b *testing.B) {
			const boards = 10_000
			rng := rand.New(rand.NewPCG(1, 2))
			var text []byte
			for range boards {
				text = shape.layout.append(text, randomBoard(rng, size))
			}
			c, err := corpus.Open(b.Context(), []string{corpus.Stdin}, shape.opts, &repeat{text: text})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text) / boards))
			b.ReportAllocs()
			var rec corpus.Record
			if shape.name == "lines by NextLike" {
				var masks []uint16
				for n := 0; n < b.N; n++ { // b.Loop would do one board at a time
					if err := c.Next(&rec); err != nil || rec.Rejected() {
						b.Fatal(err, rec.Reject)
					}
					more := 0
					masks, more = c.NextLike(&rec, masks[:0], b.N-n-1)
					n += more
				}
				return
			}
			for b.Loop() {
				if err := c.Next(&rec); err != nil || rec.Rejected() {
					b.Fatal(err, rec.Reject)
				}
			}
		})
	}
}
