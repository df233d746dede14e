package dataset_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

const chunkEstimate = 640 << 10 // bytes of estimated result at which a chunk closes

// fullChunk returns a chunk of random boards of one size, as many as one has.
func fullChunk(spec puzzle.Spec, size puzzle.Size) answered {
	n := min(65536, chunkEstimate/dataset.EstimateRow(spec, size.Cells()))
	return makeChunk(random(3), spec, 0, map[puzzle.Size]int{size: n}, 0)
}

// BenchmarkEncode reports the cost and the size of a result row.
func BenchmarkEncode(b *testing.B) {
	for _, size := range []puzzle.Size{{Rows: 4, Cols: 4}, {Rows: 5, Cols: 5}, {Rows: 15, Cols: 15}} {
		for _, cells := range []string{"text", "bits"} {
			for _, compression := range []string{"zstd", "snappy", "none"} {
				b.Run(fmt.Sprintf("%s/%s/%s", size, cells, compression), func(b *testing.B) {
					spec := testSpec(b, "plus", puzzle.Zero)
					spec.Cells, spec.Compression = cells, compression
					benchmarkEncode(b, spec, size)
				})
			}
		}
	}
}

func benchmarkEncode(b *testing.B, spec puzzle.Spec, size puzzle.Size) {
	a := fullChunk(spec, size)
	e, err := dataset.NewEncoder(spec, nil)
	if err != nil {
		b.Fatal(err)
	}
	bytes := 0
	b.ReportAllocs()
	for b.Loop() {
		results, _, err := e.Encode(&a.chunk, a.answers)
		if err != nil {
			b.Fatal(err)
		}
		bytes = len(results)
	}
	rows := float64(a.chunk.Boards())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
	b.ReportMetric(float64(bytes)/rows, "bytes/row")
}

// genericRow is a result row as a Go struct, for the reference.
type genericRow struct {
	Index    int64   `parquet:"puzzle_index,delta"`
	Source   *string `parquet:"source,dict,optional"`
	Line     *int64  `parquet:"line,optional"`
	ID       *string `parquet:"id,optional"`
	Rule     string  `parquet:"rule,dict"`
	Target   string  `parquet:"target,dict"`
	Rows     int32   `parquet:"rows,dict"`
	Cols     int32   `parquet:"cols,dict"`
	Board    string  `parquet:"board"`
	Status   string  `parquet:"status,dict"`
	MinMoves *int32  `parquet:"min_moves,dict,optional"`
	Solution *string `parquet:"solution,optional"`
	Reached  *string `parquet:"reached,dict,optional"`
	Nullity  int32   `parquet:"nullity,dict"`
	Optimal  *int64  `parquet:"optimal_count,optional"`
}

// BenchmarkGenericWriter is the reference for BenchmarkEncode: parquet-go's own
// writer of Go structs, with the same columns, encodings and boards.
func BenchmarkGenericWriter(b *testing.B) {
	for _, size := range []puzzle.Size{{Rows: 5, Cols: 5}, {Rows: 15, Cols: 15}} {
		b.Run(fmt.Sprintf("%s/text/zstd", size), func(b *testing.B) {
			rows := genericRows(fullChunk(testSpec(b, "plus", puzzle.Zero), size))
			out := &counter{}
			for b.Loop() {
				out.bytes = 0
				w := parquet.NewGenericWriter[genericRow](out, parquet.Compression(&zstd.Codec{}), parquet.DataPageVersion(1))
				for i := 0; i < len(rows); i += 4096 {
					if _, err := w.Write(rows[i:min(i+4096, len(rows))]); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
			b.ReportMetric(float64(out.bytes)/float64(len(rows)), "bytes/row")
		})
	}
}

type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

var _ io.Writer = (*counter)(nil)

func genericRows(a answered) []genericRow {
	var rows []genericRow
	source, zero := "a.txt", "zero"
	for r, run := range a.chunk.Runs {
		ans := &a.answers[r]
		for i := range run.Count {
			row := genericRow{
				Index: int64(len(rows)), Source: &source, Line: &a.chunk.Lines[len(rows)], Rule: "plus", Target: "zero",
				Rows: int32(run.Rows), Cols: int32(run.Cols), Board: string(run.AppendText(nil, i)), Status: ans.Status[i].String(), Nullity: int32(ans.Nullity),
			}
			if ans.Status[i] != puzzle.Impossible {
				solution := string(ans.Solutions.AppendText(nil, i))
				row.Solution, row.Reached, row.MinMoves, row.Optimal = &solution, &zero, &ans.MinMoves[i], &ans.OptimalCount[i]
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// BenchmarkStitch reports how fast finished row groups become a part: opened,
// checked, copied, hashed, written, synced, read back and linked.
func BenchmarkStitch(b *testing.B) {
	spec := testSpec(b, "plus", puzzle.Zero)
	spec.PartChunks = 16
	e, err := dataset.NewEncoder(spec, nil)
	if err != nil {
		b.Fatal(err)
	}
	chunk := fullChunk(spec, puzzle.Size{Rows: 5, Cols: 5}).encode(b, e)
	d, err := dataset.Open(b.TempDir(), "bench", spec)
	if err != nil {
		b.Fatal(err)
	}
	parts := 0
	for b.Loop() {
		part, err := d.NewPart(parts)
		if err != nil {
			b.Fatal(err)
		}
		for i := range spec.PartChunks {
			c := chunk
			c.First = int64(parts*spec.PartChunks+i) * int64(chunk.Records)
			if err := part.Add(c); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := part.Commit(); err != nil {
			b.Fatal(err)
		}
		parts++
	}
	rows := float64(chunk.Records * spec.PartChunks * b.N)
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkVerify reports how fast a dataset is proved.
func BenchmarkVerify(b *testing.B) {
	for _, size := range []puzzle.Size{{Rows: 5, Cols: 5}, {Rows: 15, Cols: 15}} {
		b.Run(size.String(), func(b *testing.B) {
			spec := testSpec(b, "plus", puzzle.Zero)
			c := corpus{spec: spec, chunks: []answered{fullChunk(spec, size)}}
			path := c.write(b, b.TempDir())
			for b.Loop() {
				if report, err := dataset.Verify(path, nil); err != nil || !report.OK() {
					b.Fatal(report, err)
				}
			}
			b.ReportMetric(float64(c.chunks[0].chunk.Boards())*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkExtras is of the usual columns, and of these with one extra column each.
func BenchmarkExtras(b *testing.B) {
	for _, column := range append([]string{"none"}, dataset.Extras()...) {
		b.Run(column, func(b *testing.B) {
			spec := testSpec(b, "plus", puzzle.Zero)
			if column != "none" {
				spec.Columns = append(spec.Columns, column)
			}
			size := puzzle.Size{Rows: 5, Cols: 5}
			run := puzzle.NewRun(size, 1<<14)
			fill(random(1), run)
			set := solver.NewSet(spec.Rule, solver.Options{})
			s, err := set.For(size)
			if err != nil {
				b.Fatal(err)
			}
			var answers puzzle.Answers
			s.Solve(&answers, run, spec.Target)
			chunk := puzzle.Chunk{Runs: []puzzle.Run{run}, Spans: []puzzle.Span{{Records: run.Count}}}
			e, err := dataset.NewEncoder(spec, set)
			if err != nil {
				b.Fatal(err)
			}
			bytes := 0
			b.ReportAllocs()
			for b.Loop() {
				results, _, err := e.Encode(&chunk, []puzzle.Answers{answers})
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(results)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*run.Count), "ns/row")
			b.ReportMetric(float64(bytes)/float64(run.Count), "bytes/row")
		})
	}
}
