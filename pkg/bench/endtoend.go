package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// endToEnd is a job that flipmill run does as a whole.
type endToEnd struct {
	size      puzzle.Size
	generated bool // by the workers, not text
	cells     string
	boards    int // for each millisecond of a turn
}

// endToEndCases have a number of boards that follows from the length of a turn, not
// from how fast the machine is: the start of a run is part of it.
func endToEndCases() (cases []Case) {
	small, large := puzzle.Size{Rows: 5, Cols: 5}, puzzle.Size{Rows: 15, Cols: 15}
	for _, c := range []endToEnd{
		{small, false, dataset.CellsText, 5000}, {small, false, dataset.CellsBits, 5000}, {small, true, dataset.CellsText, 5000}, {large, false, dataset.CellsText, 500},
	} {
		source := "text"
		if c.generated {
			source = "generated"
		}
		cases = append(cases, Case{
			Subject: E2E, Name: fmt.Sprintf("%s/%s/%s", c.size, source, c.cells), Unit: "board",
			Baseline: "boards read or made, solved and encoded in one loop",
			prepare:  c.prepare,
		})
	}
	return cases
}

func (c endToEnd) prepare(ctx context.Context, o Options) (*bench, error) {
	dir, err := os.MkdirTemp(o.Dir, "e2e-")
	if err != nil {
		return nil, err
	}
	spec, err := datasetSpec(c.size, c.cells, dataset.CompressionZstd)
	if err != nil {
		return nil, err
	}
	boards := max(1, int(o.Turn/time.Millisecond)) * c.boards
	kind := fmt.Sprintf("random,count=%d,seed=1", boards)
	if spec.Generate, err = puzzle.ParseGenerate(kind); err != nil {
		return nil, err
	}
	g, err := generate.New(spec, nil)
	if err != nil {
		return nil, err
	}
	args := []string{"--size", c.size.String(), "--cells", c.cells, "--progress", "none", "-o", filepath.Join(dir, "out")}
	path := filepath.Join(dir, "boards.txt")
	if c.generated {
		args = append(args, "--generate", kind)
	} else {
		args = append(args, path)
		if err := writeFile(path, g); err != nil {
			return nil, err
		}
	}
	return &bench{
		whole: true,
		loop: Loop{Units: boards, Do: func() error {
			if err := o.Run(ctx, args...); err != nil {
				return err
			}
			return os.RemoveAll(filepath.Join(dir, "out"))
		}},
		baseline: Loop{Units: boards, Do: func() error {
			if c.generated {
				return makeRows(spec, g)
			}
			return readRows(spec, path)
		}},
		close: func() error { return os.RemoveAll(dir) },
	}, nil
}

// writeFile writes all boards that g makes, one a line.
func writeFile(path string, g *generate.Generator) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	var boards puzzle.Run
	for first := int64(0); first < g.Count(); first += int64(boards.Count) {
		g.Fill(&boards, first, int(min(1<<16, g.Count()-first)))
		if _, err := out.Write(textOf(corpus.Lines, boards)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// makeRows is the least that must be done to make the rows of generated boards: to
// make, to solve and to encode them.
func makeRows(spec puzzle.Spec, g *generate.Generator) error {
	r, err := newRows(spec)
	if err != nil {
		return err
	}
	var boards puzzle.Run
	for first := int64(0); first < g.Count(); first += int64(boards.Count) {
		g.Fill(&boards, first, int(min(int64(boardsOfChunk(spec)), g.Count()-first)))
		r.solve(boards, first+1)
		if _, err := r.encode(); err != nil {
			return err
		}
	}
	return nil
}

// readRows is the least that must be done to make the rows of a file: to read, to
// solve and to encode its boards.
func readRows(spec puzzle.Spec, path string) error {
	r, err := newRows(spec)
	if err != nil {
		return err
	}
	c, err := corpus.Open(context.Background(), []string{path}, corpus.Options{Format: corpus.Lines, Size: spec.Size}, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	each := spec.Size.BoardMasks()
	var masks []uint16
	var boards puzzle.Run
	for line := int64(1); err == nil; line += int64(boards.Count) {
		masks, err = readSome(c, masks[:0], boardsOfChunk(spec))
		if len(masks) == 0 {
			break
		}
		boards.Reset(spec.Size, len(masks)/each)
		for k := range each {
			for i := range boards.Count {
				boards.Masks[k*boards.Count+i] = masks[i*each+k]
			}
		}
		r.solve(boards, line)
		if _, err := r.encode(); err != nil {
			return err
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}
