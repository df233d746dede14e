package main

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/bench"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

var benchRounds = flag.Int("rounds", 1, "times that BenchmarkAgainstDuckDB runs each program")

// BenchmarkAgainstDuckDB has DuckDB, on two threads, convert a text of boards to
// Parquet with the columns, types and codec of run, and with constants in place of
// all that has to be found out. The programs take turns, so that what the machine
// does besides meets all of them; the figures are medians of -rounds turns with
// -records boards of 5x5 and a tenth as many of 15x15, as multiples of the speed of
// DuckDB. "Unordered" is a DuckDB that need not number its rows nor keep their order. Of
// "generated" boards there is no text: both programs make random ones.
func BenchmarkAgainstDuckDB(b *testing.B) {
	binary := buildBinary(b)
	small := puzzle.Size{Rows: 5, Cols: 5}
	for _, c := range []struct {
		name    string
		size    puzzle.Size
		records int
		corpus  []string // of run
		table   string   // of DuckDB
	}{
		{"5x5", small, *benchRecords, []string{"boards.txt"}, boardsTable},
		{"15x15", puzzle.Size{Rows: 15, Cols: 15}, *benchRecords / 10, []string{"boards.txt"}, boardsTable},
		{"5x5,generated", small, *benchRecords, []string{"--generate", fmt.Sprintf("random,count=%d", *benchRecords)},
			fmt.Sprintf("(SELECT lpad(bin((random() * %d)::INTEGER), 25, '0') AS board FROM range(%d))", 1<<25-1, *benchRecords)},
	} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			if c.table == boardsTable {
				writeBoards(b, filepath.Join(dir, "boards.txt"), c.size, c.records)
			}
			run := append([]string{binary, "run", "--progress", "none", "--size", c.size.String()}, c.corpus...)
			programs := []struct {
				name string
				args []string
			}{
				{"duckdb", []string{"duckdb-convert", c.size.String(), c.table}},
				{"unordered", []string{"duckdb-convert", c.size.String(), c.table, "unordered"}},
				{"run", run},
				{"bits", append(slices.Clone(run), "--cells", "bits")},
			}
			wall, cpu := make([][]float64, len(programs)), make([][]float64, len(programs))
			for b.Loop() {
				for turn := range *benchRounds * len(programs) {
					i := turn % len(programs)
					cmd := exec.CommandContext(b.Context(), programs[i].args[0], programs[i].args[1:]...)
					cmd.Dir = dir
					start := time.Now()
					if out, err := cmd.CombinedOutput(); err != nil {
						b.Fatalf("%s: %v\n%s", cmd, err, out)
					}
					wall[i] = append(wall[i], time.Since(start).Seconds())
					cpu[i] = append(cpu[i], (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
					if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
						b.Fatal(err)
					}
				}
			}
			for i, p := range programs {
				b.ReportMetric(float64(c.records)/bench.Median(wall[i])/1e6, p.name+"-M/s")
				b.ReportMetric(1e9*bench.Median(cpu[i])/float64(c.records), p.name+"-cpu-ns/board")
				b.ReportMetric(bench.Median(wall[0])/bench.Median(wall[i]), p.name+"/duckdb")
			}
		})
	}
}

// boardsTable is the text of boards as DuckDB reads it.
const boardsTable = "read_csv('boards.txt', header = false, delim = ',', columns = {'board': 'VARCHAR'})"

// writeBoards writes random boards, a line each.
func writeBoards(tb testing.TB, path string, size puzzle.Size, boards int) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for range boards {
		for left := size.Cells(); left > 0; left -= 32 {
			fmt.Fprintf(&text, "%0*b", min(left, 32), rng.Uint32()>>(32-min(left, 32)))
		}
		text.WriteByte('\n')
	}
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// convert is the other program of BenchmarkAgainstDuckDB.
func convert() {
	err := func() error {
		size, err := puzzle.ParseSize(os.Args[1])
		if err != nil {
			return err
		}
		db, err := sql.Open("duckdb", "")
		if err != nil {
			return err
		}
		defer db.Close()
		db.SetMaxOpenConns(1) // settings are those of one connection
		number, order := "row_number() OVER () - 1", "true"
		if len(os.Args) > 3 {
			number, order = "0::BIGINT", "false"
		}
		for _, text := range []string{
			"SET threads = 2",
			"SET preserve_insertion_order = " + order,
			fmt.Sprintf(`COPY (SELECT %[1]s AS puzzle_index, 'boards.txt' AS source, %[1]s AS line, NULL::VARCHAR AS id,
				'plus' AS rule, 'zero' AS target, %[2]d::INTEGER AS rows, %[3]d::INTEGER AS cols, board, 'solved' AS status,
				7::INTEGER AS min_moves, '%[4]s' AS solution, 'zero' AS reached, 0::INTEGER AS nullity, 1::BIGINT AS optimal_count
				FROM %[5]s)
				TO 'out.parquet' (FORMAT parquet, COMPRESSION zstd)`, number, size.Rows, size.Cols, strings.Repeat("0", size.Cells()), os.Args[2]),
		} {
			if _, err := db.ExecContext(context.Background(), text); err != nil {
				return err
			}
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// BenchmarkPipeline is run inside this process, which a profile sees, on -records
// random boards of 5x5.
func BenchmarkPipeline(b *testing.B) {
	dir := b.TempDir()
	writeBoards(b, filepath.Join(dir, "boards.txt"), puzzle.Size{Rows: 5, Cols: 5}, *benchRecords)
	for n := 0; b.Loop(); n++ {
		root := newRoot()
		root.SetArgs([]string{"run", filepath.Join(dir, "boards.txt"), "--size", "5x5", "--progress", "none", "-o", filepath.Join(dir, fmt.Sprint(n))})
		root.SetOut(io.Discard)
		if err := root.ExecuteContext(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(*benchRecords)*float64(b.N)/b.Elapsed().Seconds(), "boards/s")
}
