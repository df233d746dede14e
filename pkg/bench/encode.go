package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/tally"
)

// resultBytes is the estimated size of a result at which a chunk of run is full.
const resultBytes = 640 << 10

// boardsOfChunk returns how many boards a full chunk has.
func boardsOfChunk(spec puzzle.Spec) int {
	return min(1<<16, resultBytes/dataset.EstimateRow(spec, spec.Size.Cells()))
}

// datasetSpec returns the spec of a dataset with all columns.
func datasetSpec(size puzzle.Size, cells, compression string) (puzzle.Spec, error) {
	spec, err := specOf("plus", size)
	spec.Columns, spec.Cells, spec.Compression = dataset.Columns(), cells, compression
	spec.PartChunks, spec.Format, spec.Symbols, spec.MaxLine = 16, "lines", puzzle.Digits(), 1<<16
	return spec, err
}

// rows makes the results of chunks of boards.
type rows struct {
	spec    puzzle.Spec
	solver  *solver.Solver
	encoder *dataset.Encoder
	chunk   puzzle.Chunk
	answers [1]puzzle.Answers
}

func newRows(spec puzzle.Spec) (r *rows, err error) {
	r = &rows{spec: spec}
	if r.solver, err = solver.New(spec.Rule, spec.Size, solver.Options{SearchLimit: spec.SearchLimit}); err != nil {
		return nil, err
	}
	if r.encoder, err = dataset.NewEncoder(spec, nil); err != nil {
		return nil, err
	}
	return r, nil
}

// solve takes the boards, which are lines of a file from one number on, for the next
// chunk.
func (r *rows) solve(boards puzzle.Run, line int64) {
	r.chunk.First = line - 1
	r.chunk.Spans = []puzzle.Span{{Source: "boards.txt", Records: boards.Count}}
	r.chunk.Runs = []puzzle.Run{boards}
	r.chunk.Lines = r.chunk.Lines[:0]
	for i := range boards.Count {
		r.chunk.Lines = append(r.chunk.Lines, line+int64(i))
	}
	r.solver.Solve(&r.answers[0], boards, r.spec.Target)
}

func (r *rows) encode() ([]byte, error) {
	results, _, err := r.encoder.Encode(&r.chunk, r.answers[:])
	return results, err
}

// fullChunk returns the rows of one full chunk of random boards.
func fullChunk(spec puzzle.Spec) (*rows, error) {
	boards, err := makeBoards(spec, puzzle.GenerateRandom, boardsOfChunk(spec))
	if err != nil {
		return nil, err
	}
	r, err := newRows(spec)
	if err != nil {
		return nil, err
	}
	r.solve(boards, 1)
	return r, nil
}

func encodeCases() (cases []Case) {
	small, large := puzzle.Size{Rows: 5, Cols: 5}, puzzle.Size{Rows: 15, Cols: 15}
	for _, c := range []struct {
		size               puzzle.Size
		cells, compression string
	}{
		{small, dataset.CellsText, dataset.CompressionZstd}, {small, dataset.CellsText, dataset.CompressionSnappy}, {small, dataset.CellsText, dataset.CompressionNone},
		{small, dataset.CellsBits, dataset.CompressionZstd}, {large, dataset.CellsText, dataset.CompressionZstd}, {large, dataset.CellsBits, dataset.CompressionZstd},
	} {
		cases = append(cases, Case{
			Subject: Encode, Name: fmt.Sprintf("%s/%s/%s", c.size, c.cells, c.compression), Unit: "row",
			Baseline: "boards and solutions as text in memory",
			prepare: func(context.Context, Options) (*bench, error) {
				spec, err := datasetSpec(c.size, c.cells, c.compression)
				if err != nil {
					return nil, err
				}
				return prepareEncode(spec)
			},
		})
	}
	return cases
}

func prepareEncode(spec puzzle.Spec) (*bench, error) {
	r, err := fullChunk(spec)
	if err != nil {
		return nil, err
	}
	results, err := r.encode()
	if err != nil {
		return nil, err
	}
	boards, answers := r.chunk.Runs[0], &r.answers[0]
	var text []byte
	return &bench{
		bytes: float64(len(results)) / float64(boards.Count),
		loop:  Loop{Units: boards.Count, Do: func() error { _, err := r.encode(); return err }},
		baseline: Loop{Units: boards.Count, Do: func() error {
			text = text[:0]
			for i := range boards.Count {
				text = boards.AppendText(text, i)
				if answers.Status[i] == puzzle.Solved {
					text = answers.Solutions.AppendText(text, i)
				}
			}
			return nil
		}},
	}, nil
}

func stitchCases() []Case {
	return []Case{{
		Subject: Stitch, Name: "5x5/text/zstd", Unit: "row", Baseline: "the same bytes copied into a file and synced",
		prepare: func(_ context.Context, o Options) (*bench, error) { return prepareStitch(o.Dir) },
	}}
}

func prepareStitch(dir string) (*bench, error) {
	spec, err := datasetSpec(puzzle.Size{Rows: 5, Cols: 5}, dataset.CellsText, dataset.CompressionZstd)
	if err != nil {
		return nil, err
	}
	r, err := fullChunk(spec)
	if err != nil {
		return nil, err
	}
	results, err := r.encode()
	if err != nil {
		return nil, err
	}
	counts := new(tally.Tally)
	counts.AddChunk(&r.chunk, r.answers[:])
	if dir, err = os.MkdirTemp(dir, "stitch-"); err != nil {
		return nil, err
	}
	d, err := dataset.Open(dir, "bench", spec)
	if err != nil {
		return nil, err
	}
	records, parts := r.chunk.Records(), 0
	stitch := func() error {
		part, err := d.NewPart(parts)
		if err != nil {
			return err
		}
		for i := range spec.PartChunks {
			first := int64(parts*spec.PartChunks+i) * int64(records)
			c := dataset.Chunk{First: first, Records: records, Digest: r.chunk.Digest(), Results: results, Tally: counts}
			if err := part.Add(c); err != nil {
				part.Abort()
				return err
			}
		}
		if _, err := part.Commit(); err != nil {
			return err
		}
		parts++
		return removeAll(filepath.Join(d.Path(), "results", "*.parquet")) // so that a disk suffices
	}
	return &bench{
		bytes:    float64(len(results)) / float64(records),
		loop:     Loop{Units: records * spec.PartChunks, Do: stitch},
		baseline: Loop{Units: records * spec.PartChunks, Do: func() error { return copyOut(filepath.Join(dir, "copy"), results, spec.PartChunks) }},
		close:    func() error { return os.RemoveAll(dir) },
	}, nil
}

func removeAll(pattern string) error {
	files, err := filepath.Glob(pattern)
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return err
}

// copyOut writes data so many times into a new file, durably.
func copyOut(name string, data []byte, times int) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if end := f.Close(); err == nil {
			err = end
		}
	}()
	for range times {
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return f.Sync()
}
