package worker

import (
	"math/rand/v2"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
)

// BenchmarkAnswer makes results of whole chunks of random boards: solve, check,
// digest, encode, compress, count. It is all that a slot does for a board but
// decoding its task and sending its result.
func BenchmarkAnswer(b *testing.B) {
	for _, shape := range []struct {
		size   puzzle.Size
		boards int // as many as fill a chunk
	}{
		{puzzle.Size{Rows: 5, Cols: 5}, 40957},
		{puzzle.Size{Rows: 15, Cols: 15}, 9929},
	} {
		b.Run(shape.size.String(), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			run := puzzle.NewRun(shape.size, shape.boards)
			for l := range run.Masks {
				run.Masks[l] = uint16(rng.Uint32()) & (1<<run.Width() - 1)
			}
			task := &wire.Task{ID: wire.ID{Job: "bench"}, Chunk: puzzle.Chunk{
				Spans: []puzzle.Span{{Source: "boards.txt", Records: shape.boards}}, Runs: []puzzle.Run{run},
			}}
			for k := range int64(shape.boards) {
				task.Chunk.Lines = append(task.Chunk.Lines, k+1)
			}
			spec := testSpec(b, "plus", puzzle.Zero)
			spec.Compression = dataset.CompressionZstd
			s, j := quietSlot(), newJob("bench", spec)
			b.ReportAllocs()
			for b.Loop() {
				if r := s.answer(j, task); r.Failure != "" {
					b.Fatal(r.Failure)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*shape.boards), "ns/board")
		})
	}
}
