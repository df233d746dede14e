// Package dataset writes, reads and proves the Parquet dataset of a job. It is
// the only package that knows our Parquet files.
//
// A dataset is the folder <output>/job=<id> with the tables results, rejects and
// stats, a manifest and an empty _SUCCESS; docs/dataset.md is its specification.
// A chunk is a number of consecutive records. An [Encoder] turns an answered
// chunk into one row group per table, each a small Parquet file of its own, on
// whatever machine solved it. A part is a number of consecutive chunks; a [Part]
// stitches their row groups verbatim into one file per table, so that the one
// writer of a dataset copies bytes instead of encoding rows.
//
//	enc, _ := dataset.NewEncoder(spec, solvers)
//	results, rejects, _ := enc.Encode(chunk, answers) // on a worker
//
//	dir, _ := dataset.Open(output, job, spec)
//	part, _ := dir.NewPart(7)
//	part.Add(dataset.Chunk{…})                        // K times, in order
//	part.Commit()
//	dir.Finish(totals)                                // after the last part
//	report, _ := dataset.Verify(dir.Path(), nil)
//
// Concurrency: a Dir may be used by several goroutines and several processes;
// an Encoder or a Part by one goroutine at a time.
//
// Invariants:
//   - The bytes of every data file are a function of corpus and spec alone: no
//     clock, host, worker or order of arrival is in them.
//   - Every record is one row, in results or in rejects; rows are in corpus order.
//   - A part is committed when its results file exists. Its rejects file, if it
//     has one, existed before. Neither is ever changed or replaced; a retry replaces
//     the whole dataset by another.
//   - The manifest is written when every part is committed, _SUCCESS after it.
package dataset

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// SchemaVersion is the version of columns, footers and manifest. It is kept in
// every file: readers must reject versions they do not know.
const SchemaVersion = 1

// How boards and solutions are stored.
const (
	CellsText = "text" // STRING, rows*cols characters 0 and 1
	CellsBits = "bits" // BYTE_ARRAY, row-major, most significant bit first, padded with 0
)

// The codecs of the pages.
const (
	CompressionZstd   = "zstd"
	CompressionSnappy = "snappy"
	CompressionNone   = "none"
)

// Defaults of a job's options. Zstd is the default codec because it is smaller
// than snappy and, as we write it (see codec.go), faster too.
const (
	DefaultCells       = CellsText
	DefaultCompression = CompressionZstd
	DefaultPartChunks  = 16 // about a million records, and at most 16 MiB in flight
)

// MaxPartChunks keeps part files and their footers of a size that readers like.
const MaxPartChunks = 1024

// partitionKey is what readers make a column of from the folders' names; it
// would hide a column of that name.
const partitionKey = "job"

// CheckSpec reports an option that no dataset can be written with.
func CheckSpec(spec puzzle.Spec) error {
	if err := checkColumns(spec.Columns); err != nil {
		return err
	}
	if err := puzzle.CheckKeep(spec.Keep, slices.Concat(Columns(), spec.Columns, []string{partitionKey})); err != nil {
		return err
	}
	if rowless(spec) && len(spec.Keep) > 0 {
		return fmt.Errorf("keep %v: there are no columns to keep them with", spec.Keep)
	}
	if spec.Cells != CellsText && spec.Cells != CellsBits {
		return fmt.Errorf("cells %q: want %s or %s", spec.Cells, CellsText, CellsBits)
	}
	if _, err := codecOf(spec.Compression); err != nil {
		return err
	}
	if spec.PartChunks < 1 || spec.PartChunks > MaxPartChunks {
		return fmt.Errorf("part-chunks %d: want 1 to %d", spec.PartChunks, MaxPartChunks)
	}
	return nil
}

// rowless reports whether a spec wants no rows, only statistics. Its parts have
// results files all the same, without rows: they tell what is committed.
func rowless(spec puzzle.Spec) bool { return len(spec.Columns) == 0 }

// checkColumns reports columns that are unknown, doubled or not in schema order,
// and a selection without the row key.
func checkColumns(columns []string) error {
	all := append(Columns(), Extras()...)
	next := 0
	for _, name := range columns {
		at := slices.Index(all, name)
		switch {
		case at < 0:
			return fmt.Errorf("column %q: want some of %v", name, all)
		case at < next:
			return fmt.Errorf("column %q: it is doubled or out of order; want the order %v", name, all)
		}
		next = at + 1
	}
	if len(columns) > 0 && !slices.Contains(columns, colIndex) {
		return fmt.Errorf("columns %v: %s is the row key and always needed", columns, colIndex)
	}
	return nil
}

// EstimateRow returns the number of bytes that a result row takes in a chunk's
// row group, rather too many than too few: a chunk whose estimates add up to
// 640 KiB stays clearly below 1 MiB. It is a function of its arguments alone
// because it decides where chunks end, and thereby the bytes of a dataset.
func EstimateRow(spec puzzle.Spec, cells int) int {
	if rowless(spec) {
		return 0
	}
	const (
		others     = 8 // bytes of the usual columns besides board and solution, compressed or packed
		extraBytes = 2 // of an extra column's number, or around its cells
	)
	cellBytes := (cells + 7) / 8
	if spec.Cells == CellsText {
		switch spec.Compression {
		case CompressionNone:
			cellBytes = cells
		case CompressionSnappy: // has no entropy coder: about 2.2 bits of a random cell
			cellBytes = (cells*5 + 15) / 16
		}
	}
	total := others
	for _, name := range spec.Columns {
		switch name {
		case colBoard, colSolution:
			total += cellBytes
		case colCanonical, colWitness:
			total += cellBytes + extraBytes
		case colMoves: // as many as there are cells: twice a place and its levels
			total += cells*(bits.Len(uint(cells))+8)/8 + extraBytes
		case colGrid: // a cell and its levels
			total += (cells*3+7)/8 + extraBytes
		case colLit, colOrbit, colSplit, colUniqueOptimum, colMaxMoves, colDifficulty:
			total += extraBytes
		}
	}
	return total
}
