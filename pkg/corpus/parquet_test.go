package corpus_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// readFile reads a corpus of one file.
func readFile(t testing.TB, path string, opts corpus.Options) ([]string, []string) {
	t.Helper()
	c, err := corpus.Open(t.Context(), []string{path}, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	shown, raws := drain(t, c)
	if err := c.Next(new(corpus.Record)); err.Error() != "EOF" {
		t.Fatal(err)
	}
	if print, err := corpus.Fingerprint(t.Context(), []string{path}, nil); err != nil || !slices.Equal(print, c.Sources()) {
		t.Errorf("fingerprint %v, want %v, %v", c.Sources(), print, err)
	}
	return shown, raws
}

// parquetCodecs are those of DuckDB, but for the one of Hadoop that nobody writes any more.
func parquetCodecs() []string {
	return []string{"uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4_raw"}
}

// TestParquetTypes reads one board in every form, with each codec in turn.
func TestParquetTypes(t *testing.T) {
	sized := puzzle.Size{Rows: 2, Cols: 3}
	codecs := parquetCodecs()
	for i, test := range []struct {
		board string
		size  puzzle.Size
	}{
		{"'010/110'", puzzle.Size{}}, {"'010110'", sized}, {"E'010\\n110'", puzzle.Size{}}, {"'010/110'::BLOB", puzzle.Size{}},
		{"['010', '110']", puzzle.Size{}},
		{"[0, 1, 0, 1, 1, 0]", sized}, {"[0, 1, 0, 1, 1, 0]::UTINYINT[]", sized}, {"[false, true, false, true, true, false]", sized},
		{"[[0, 1, 0], [1, 1, 0]]", puzzle.Size{}}, {"[[0, 1, 0], [1, 1, 0]]::BIGINT[][]", sized}, {"[[false, true, false], [true, true, false]]", puzzle.Size{}},
		{"[['0', '1', '0'], ['1', '10']]", puzzle.Size{}},
	} {
		codec := codecs[i%len(codecs)]
		path := duckdbFile(t, fmt.Sprint("type-", i+1), "SELECT 'a' AS id, "+test.board+" AS board FROM range(3)", ", COMPRESSION "+codec)
		shown, _ := readFile(t, path, corpus.Options{Size: test.size})
		if want := []string{"1 2x3 010110 [a]", "2 2x3 010110 [a]", "3 2x3 010110 [a]"}; !slices.Equal(shown, want) {
			t.Errorf("%s, %s: %q", test.board, codec, shown)
		}
	}
}

// TestParquetRows reads boards of many sizes from several row groups, with labels
// of several types, sizes and nulls.
func TestParquetRows(t *testing.T) {
	path := duckdbFile(t, "rows", `SELECT i AS key, CASE WHEN i % 3 > 0 THEN i / 4 END AS level, i % 5 + 1 AS h, i % 7 + 1 AS w,
		[(i + k) % 3 % 2 FOR k IN range(h * w)] AS grid, i % 2 = 0 AS even FROM range(5000) r(i) ORDER BY i`, ", ROW_GROUP_SIZE 2048")
	opts := corpus.Options{Fields: puzzle.Fields{Board: "grid", ID: "key", Rows: "h", Cols: "w"}, Keep: []string{"even", "level"}}
	shown, _ := readFile(t, path, opts)
	for i := range 5000 {
		var text strings.Builder
		for k := range (i%5 + 1) * (i%7 + 1) {
			text.WriteString(fmt.Sprint((i + k) % 3 % 2))
		}
		level := "-"
		if i%3 > 0 {
			level = fmt.Sprint(float64(i) / 4)
		}
		want := fmt.Sprintf("%d %dx%d %s [%d|%t|%s]", i+1, i%5+1, i%7+1, text.String(), i, i%2 == 0, level)
		if i >= len(shown) || shown[i] != want {
			t.Fatalf("row %d: %q, want %s", i, shown[min(i, len(shown)-1)], want)
		}
	}
	if len(shown) != 5000 {
		t.Errorf("%d rows", len(shown))
	}
}

// TestParquetFaults: what is no board costs its row; a column that cannot have
// boards is an error.
func TestParquetFaults(t *testing.T) {
	path := duckdbFile(t, "fault-cells", `SELECT unnest([[[0, 1], [1, 0]], [[0, 2]], [[0, 1], [1]], [], NULL, [[], []], [[NULL]], [[1]]]) AS board`, "")
	shown, raws := readFile(t, path, corpus.Options{})
	want := []string{"1 2x2 0110 [-]", `2 unknown_symbol "2"` + noCell, "3 ragged_row row 2 has 1 cells, want 2", "4 bad_field a board without cells",
		"5 bad_field a board without cells", "6 bad_field a board without cells", `7 unknown_symbol "null"` + noCell, "8 1x1 1 [-]"}
	if !slices.Equal(shown, want) {
		t.Errorf("%q %q, want\n%q", shown, raws, want)
	}
	strs := duckdbFile(t, "fault-texts", `SELECT unnest(['01/10', '01/1x', NULL, '', '0110', repeat('0', 70000)]) AS board`, "")
	shown, _ = readFile(t, strs, corpus.Options{})
	for i, want := range []string{"1 2x2 0110", "2 unknown_symbol", "3 bad_field", "4 bad_field", "5 bad_size", "6 line_too_long"} {
		if i >= len(shown) || !strings.HasPrefix(shown[i], want) {
			t.Errorf("%q, want %s", shown, want)
		}
	}
	for i, test := range []struct{ query, options, want string }{
		{"SELECT 1 AS board", "", "column board: INT32, 0 lists deep"},
		{"SELECT [1.5::DOUBLE] AS board", "", "column board: DOUBLE, 1 lists deep"},
		{"SELECT [[[1]]] AS board", "", "column board: INT32, 3 lists deep"},
		{"SELECT {a: 1, b: 2} AS board", "", "column board: it has 2 members"},
		{"SELECT 1 AS x", "", `no column "board" among "x"`},
		{"SELECT '0/1' AS board, [1] AS id", "", "column id: it is no single value"},
	} {
		path := duckdbFile(t, fmt.Sprint("column-", i+1), test.query, test.options)
		if _, err := corpus.Open(t.Context(), []string{path}, corpus.Options{}, nil); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.query, err, test.want)
		}
	}
	data, err := os.ReadFile(strs)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := readAll(t, strings.NewReader(string(data)), corpus.Options{}); err == nil || !strings.Contains(err.Error(), "neither compressed nor from a pipe") {
		t.Errorf("from a pipe: %v", err)
	}
	cut := writeFile(t, "cut.parquet", string(data[:len(data)-9]))
	if _, err := corpus.Open(t.Context(), []string{cut}, corpus.Options{}, nil); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("cut: %v", err)
	}
}

// TestParquetBomb: a page that becomes much larger than pages do is refused
// before it is expanded in memory.
func TestParquetBomb(t *testing.T) {
	path := duckdbFile(t, "bomb", "SELECT NULL::VARCHAR AS board FROM range(17000000)", ", COMPRESSION zstd, ROW_GROUP_SIZE 17000000")
	c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{}, nil)
	if err == nil {
		shown, _ := drain(t, c)
		t.Errorf("%.100q", shown)
	} else if !strings.Contains(err.Error(), "want at most 16777216") {
		t.Error(err)
	}
}

// TestParquetMutants changes bytes of sound files at random: there is an error, or
// there are records, and never a panic.
func TestParquetMutants(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	path := filepath.Join(t.TempDir(), "mutant.parquet")
	for _, data := range parquetSeeds(t) {
		for range 27 {
			mutant := slices.Clone(data)
			for range 1 + rng.IntN(4) {
				mutant[rng.IntN(len(mutant))] = byte(rng.Uint32())
			}
			if err := os.WriteFile(path, mutant, 0o600); err != nil {
				t.Fatal(err)
			}
			if c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{Format: corpus.Parquet}, nil); err == nil {
				drain(t, c)
				c.Close()
			}
		}
	}
}

func parquetSeeds(t testing.TB) (seeds [][]byte) {
	for _, codec := range parquetCodecs() {
		for i, board := range []string{"'01/10'", "[[0, i % 2], [1, 0]]", "['0', '1']"} {
			data, err := os.ReadFile(duckdbFile(t, fmt.Sprint("seed-", codec, "-", i+1), "SELECT i AS id, "+board+" AS board FROM range(9) r(i)", ", COMPRESSION "+codec))
			if err != nil {
				t.Fatal(err)
			}
			seeds = append(seeds, data)
		}
	}
	return seeds
}

// FuzzParquet: no bytes do harm.
func FuzzParquet(f *testing.F) {
	for _, seed := range parquetSeeds(f) {
		f.Add(seed)
	}
	path := filepath.Join(f.TempDir(), "fuzz.parquet")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{Format: corpus.Parquet}, nil); err == nil {
			drain(t, c)
			c.Close()
		}
	})
}
