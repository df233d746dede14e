package wire

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// benchBoards is the number of 5×5 boards that fill a chunk of the default size.
const benchBoards = 46_000

func BenchmarkAppendTask(b *testing.B) {
	task := benchTask()
	buf, err := AppendTask(nil, task)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = AppendTask(buf[:0], task); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBoards, "ns/board")
}

func BenchmarkParseTask(b *testing.B) {
	data, err := AppendTask(nil, benchTask())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseTask(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBoards, "ns/board")
}

func BenchmarkParseResult(b *testing.B) {
	data, err := AppendResult(nil, &Result{ID: ID{Job: "bench"}, Boards: benchBoards, Results: make([]byte, 512<<10)})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseResult(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchBoards, "ns/board")
}

func benchTask() *Task {
	run := puzzle.NewRun(puzzle.Size{Rows: 5, Cols: 5}, benchBoards)
	lines := make([]int64, benchBoards)
	for i := range run.Masks {
		run.Masks[i] = uint16(i*7) & 31
	}
	for k := range lines {
		lines[k] = int64(k + 1)
	}
	return &Task{ID: ID{Job: "bench"}, Chunk: puzzle.Chunk{
		Spans: []puzzle.Span{{Source: "boards.txt", Records: benchBoards}},
		Lines: lines,
		Runs:  []puzzle.Run{run},
	}}
}
