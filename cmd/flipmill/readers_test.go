//go:build readers

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
)

// goldens are jobs of which every reader must find the same rows: all forms of
// cells in all codecs, and each kind of value that a column can have.
func goldens() [][]string {
	all := [][]string{
		{"examples/levels.csv", "--keep", "level,author", "--target", "either"},
		{"examples/levels.csv", "--keep", "level,author", "--cells", "bits", "--job", "levels-bits"},
		{"examples/mixed"},
		{"examples/mixed-sizes.txt"},
		{"examples/mixed-sizes.txt", "--cells", "bits", "--compression", "snappy", "--job", "mixed-sizes-bits"},
		{"examples/faulty.txt"},
		{"examples/boards-5x5.txt", "--columns", "board,min_moves", "--job", "some-columns"},
		{"examples/boards-5x5.txt", "--columns", "none", "--job", "no-columns"},
		{"empty.txt", "--size", "5x5"},
		// Several chunks in several parts, without source and line.
		{"--generate", "solvable,count=30000,seed=7", "--size", "16x16", "--part-chunks", "2", "--job", "generated"},
		// Some answers are unproven.
		{"--generate", "random,count=2000,seed=7", "--size", "9x9", "--search-limit", "100", "--job", "unproven"},
	}
	// All extra columns: booleans, doubles, lists, empty and null ones among them.
	extra := "all," + strings.Join(dataset.Extras(), ",")
	all = append(all,
		[]string{"examples/mixed-sizes.txt", "--columns", extra, "--job", "extra-mixed"},
		[]string{"--generate", "random,count=30000,seed=7", "--size", "5x5", "--columns", extra, "--part-chunks", "1", "--job", "extra-generated"},
		[]string{"examples/boards-5x5.txt", "--columns", extra, "--cells", "bits", "--compression", "none", "--job", "extra-bits"})
	for _, cells := range values("cells") {
		for _, codec := range values("compression") {
			all = append(all, []string{"examples/boards-5x5.txt", "--cells", cells, "--compression", codec, "--job", cells + "-" + codec})
		}
	}
	return all
}

// values are the values of a key, so that none is forgotten that may come.
func values(key string) []string {
	keys := config.Keys()
	return keys[slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == key })].Values
}

// found is what a reader finds in a column: how many values, how many of them
// null, and a sum over all of them in the order of the rows.
type found struct {
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`
	Nulls int64  `json:"nulls"`
	Sum   string `json:"sum"`
}

// TestReaders: DuckDB, arrow-go, Polars and hyparquet find the same in every
// column of every file of every golden dataset, and as many rows as the manifest
// says. make readers installs what it needs.
func TestReaders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkExamples(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "empty.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range goldens() {
		flipmill(t, dir, slices.Concat([]string{"run"}, args)...)
	}
	files := dataFiles(t, dir)
	hyparquet, arrows := readInNode(t, files)
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	columns, rows := 0, int64(0)
	for i, f := range files {
		want := readDuckDB(t, db, f.name)
		if len(want) == 0 || want[0].Rows != f.rows {
			t.Errorf("%s: DuckDB finds %v, want %d rows", f.name, want, f.rows)
		}
		for reader, got := range map[string][]found{
			"hyparquet": hyparquet[i],
			"arrow-go":  readArrow(t, f.name),
			"Polars":    readIPC(t, arrows[i]),
		} {
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s finds\n%v\nDuckDB\n%v", f.name, reader, got, want)
			}
		}
		columns, rows = columns+len(want), rows+f.rows
	}
	if rows < 100_000 {
		t.Errorf("%d rows in %d files, %d columns in all", rows, len(files), columns)
	}
}

// dataFile is a Parquet file and the rows that its manifest promises.
type dataFile struct {
	name string
	rows int64
}

func dataFiles(t *testing.T, dir string) (files []dataFile) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "out/job=*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != len(goldens()) {
		t.Fatalf("%d datasets of %d jobs", len(paths), len(goldens()))
	}
	for _, path := range paths {
		m, err := dataset.ReadManifest(path)
		if err != nil {
			t.Fatal(err)
		}
		listed := []dataset.File{m.Stats}
		for _, part := range m.Parts {
			listed = append(listed, part.Results)
			if part.Rejects != nil {
				listed = append(listed, *part.Rejects)
			}
		}
		for _, f := range listed {
			files = append(files, dataFile{filepath.Join(path, f.Name), f.Rows})
		}
	}
	return files
}

// readInNode lets hyparquet and Polars read the files. What Polars finds is in
// Arrow files, whose names it returns.
func readInNode(t *testing.T, files []dataFile) (hyparquet [][]found, arrows []string) {
	t.Helper()
	var lines, out, failure bytes.Buffer
	temp := t.TempDir()
	for i, f := range files {
		arrows = append(arrows, filepath.Join(temp, fmt.Sprintf("%d.arrow", i)))
		if err := json.NewEncoder(&lines).Encode(map[string]string{"file": f.name, "arrow": arrows[i]}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "testdata/readers/read.mjs")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &lines, &out, &failure
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v\n%s\nmake readers installs what it needs", err, failure.String())
	}
	scanner := bufio.NewScanner(&out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var columns []found
		if err := json.Unmarshal(scanner.Bytes(), &columns); err != nil {
			t.Fatal(err)
		}
		hyparquet = append(hyparquet, columns)
	}
	if len(hyparquet) != len(files) {
		t.Fatalf("hyparquet read %d files of %d", len(hyparquet), len(files))
	}
	return hyparquet, arrows
}

// column sums what is in a column. Each value is a line that tells its type, so
// that bytes are no text; testdata/readers/read.mjs writes the same lines.
type column struct {
	found
	sum hash.Hash
}

func newColumn(name string) *column { return &column{found{Name: name}, sha256.New()} }

func (c *column) add(v any) {
	c.Rows++
	if v == nil {
		c.Nulls++
	}
	c.write(v)
}

func (c *column) write(v any) {
	switch v := v.(type) {
	case nil:
		fmt.Fprintln(c.sum, "null")
	case string:
		fmt.Fprintf(c.sum, "text %d %s\n", len(v), v)
	case []byte:
		fmt.Fprintf(c.sum, "bytes %d %s\n", len(v), v)
	case float64:
		if v == math.Trunc(v) { // which is no different from an integer in JavaScript
			fmt.Fprintln(c.sum, int64(v))
		} else {
			fmt.Fprintf(c.sum, "%016x\n", math.Float64bits(v))
		}
	case []any:
		fmt.Fprintf(c.sum, "list %d\n", len(v))
		for _, x := range v {
			c.write(x)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(c.sum, "field %s\n", name)
			c.write(v[name])
		}
	default:
		fmt.Fprintln(c.sum, v)
	}
}

func sums(columns []*column) (all []found) {
	for _, c := range columns {
		c.Sum = hex.EncodeToString(c.sum.Sum(nil))
		all = append(all, c.found)
	}
	return all
}

func readDuckDB(t *testing.T, db *sql.DB, name string) []found {
	t.Helper()
	rows, err := db.Query("FROM read_parquet('" + strings.ReplaceAll(name, "'", "''") + "', hive_partitioning = false)")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var columns []*column
	for _, name := range names {
		columns = append(columns, newColumn(name))
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, c := range columns {
			c.add(values[i])
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return sums(columns)
}

func readArrow(t *testing.T, name string) []found {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := pqarrow.ReadTable(context.Background(), f, parquet.NewReaderProperties(nil), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer table.Release()
	var columns []*column
	for i, field := range table.Schema().Fields() {
		c := newColumn(field.Name)
		for _, chunk := range table.Column(i).Data().Chunks() {
			c.addArrow(t, chunk)
		}
		columns = append(columns, c)
	}
	return sums(columns)
}

// readIPC reads the Arrow file into which Polars has put what it found.
func readIPC(t *testing.T, name string) []found {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader, err := ipc.NewFileReader(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer reader.Close()
	var columns []*column
	for _, field := range reader.Schema().Fields() {
		columns = append(columns, newColumn(field.Name))
	}
	for i := range reader.NumRecords() {
		batch, err := reader.RecordBatch(i)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, c := range columns {
			c.addArrow(t, batch.Column(i))
		}
	}
	return sums(columns)
}

func (c *column) addArrow(t *testing.T, values arrow.Array) {
	t.Helper()
	for i := range values.Len() {
		c.add(value(t, values, i))
	}
}

// value returns an Arrow value as DuckDB's driver would.
func value(t *testing.T, values arrow.Array, i int) any {
	t.Helper()
	if values.IsNull(i) {
		return nil
	}
	switch a := values.(type) {
	case *array.Int32:
		return a.Value(i)
	case *array.Int64:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.Boolean:
		return a.Value(i)
	case interface{ Value(int) string }:
		return a.Value(i)
	case interface{ Value(int) []byte }:
		return a.Value(i)
	case array.ListLike:
		first, last := a.ValueOffsets(i)
		list := make([]any, 0, last-first)
		for k := first; k < last; k++ {
			list = append(list, value(t, a.ListValues(), int(k)))
		}
		return list
	case *array.Struct:
		fields := map[string]any{}
		for k, field := range a.DataType().(*arrow.StructType).Fields() {
			fields[field.Name] = value(t, a.Field(k), i)
		}
		return fields
	}
	t.Fatalf("a column of %s, which this test does not know", values.DataType())
	return nil
}

// TestReadersPinned: what npm installs is pinned by content, whatever registry it
// comes from.
func TestReadersPinned(t *testing.T) {
	text, err := os.ReadFile("testdata/readers/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Resolved, Integrity string }
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for name, p := range lock.Packages {
		if name != "" && (p.Integrity == "" || p.Resolved != "") {
			t.Errorf("%s: integrity %q, resolved %q; want the first alone", name, p.Integrity, p.Resolved)
		}
	}
}
