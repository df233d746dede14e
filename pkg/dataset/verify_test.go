package dataset_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// problems returns what Verify finds wrong.
func problems(t testing.TB, path string) []string {
	t.Helper()
	report, err := dataset.Verify(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, p := range report.Problems {
		found = append(found, p.String())
	}
	return found
}

func TestVerifySound(t *testing.T) {
	specs := variants(testSpec(t, "plus", puzzle.Either))
	for _, rule := range []string{"fridge", "king-torus", "stencil:011/100/001"} {
		specs = append(specs, testSpec(t, rule, puzzle.One))
	}
	for _, spec := range specs {
		report, err := dataset.Verify(smallCorpus(t, spec).write(t, t.TempDir()), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !report.OK() || len(report.Skipped) > 0 || report.Rows != 479 || report.Records != 479 {
			t.Errorf("%s, %s, %s: %+v", spec.Rule, spec.Cells, spec.Compression, report)
		}
	}
}

// A dataset of few columns is verified as far as they go, and says how far.
func TestVerifyFewColumns(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	for _, c := range []struct {
		columns []string
		skipped int
	}{
		{[]string{"puzzle_index"}, 4},
		{[]string{"puzzle_index", "board", "solution"}, 4},
		{[]string{"puzzle_index", "rows", "cols", "board", "status", "solution", "reached"}, 2},
		{[]string{"puzzle_index", "rows", "cols", "status", "min_moves", "nullity", "optimal_count"}, 3},
	} {
		spec.Columns = c.columns
		report, err := dataset.Verify(smallCorpus(t, spec).write(t, t.TempDir()), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !report.OK() || len(report.Skipped) != c.skipped {
			t.Errorf("columns %v: %+v", c.columns, report)
		}
	}
}

// Without columns there are the same statistics and rejects, and what is missing
// or altered of them is found.
func TestVerifyNoColumns(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	full := smallCorpus(t, spec).write(t, t.TempDir())
	spec.Columns = nil
	c := smallCorpus(t, spec)
	path := c.write(t, t.TempDir())
	report, err := dataset.Verify(path, nil)
	if err != nil || !report.OK() || len(report.Skipped) != 1 {
		t.Fatalf("%v: %+v", err, report)
	}
	var counts [2]dataset.Counts
	for i, path := range []string{path, full} {
		m, err := dataset.ReadManifest(path)
		if err != nil {
			t.Fatal(err)
		}
		counts[i] = m.Counts
	}
	if !reflect.DeepEqual(counts[0], counts[1]) {
		t.Errorf("%+v is counted, with all columns %+v", counts[0], counts[1])
	}
	for name, do := range map[string]func(){
		"results/part-00000.parquet": func() { remove(t, path, "results/part-00000.parquet") },
		"rejects/part-00001.parquet": func() { remove(t, path, "rejects/part-00001.parquet") },
	} {
		path = c.write(t, t.TempDir())
		do()
		report, err := dataset.Verify(path, nil)
		if err != nil || len(report.Problems) != 1 || report.Problems[0].File != name {
			t.Errorf("without %s: %v, %+v", name, err, report)
		}
	}
}

// damage is something done to a sound dataset, and all that Verify says of it.
// Parts: 0 is rows 0–189, 1 is 190–383 with rejects, 2 is 384–478.
var damages = []struct {
	name string
	do   func(t *testing.T, path string)
	want []string
}{
	{"delete a part", func(t *testing.T, path string) { remove(t, path, "results/part-00001.parquet") },
		[]string{"results/part-00001.parquet: rows 190–383 missing: there is no such file"}},
	{"copy a part to a free number", func(t *testing.T, path string) {
		copyFile(t, path, "results/part-00001.parquet", "results/part-00003.parquet")
	}, []string{"results/part-00003.parquet: rows 190–383 are there twice: the file is not in the manifest; it holds part 1 of job demo"}},
	{"copy a part over another", func(t *testing.T, path string) {
		copyFile(t, path, "results/part-00000.parquet", "results/part-00002.parquet")
	}, []string{"results/part-00002.parquet: rows 384–478 missing: the file holds results of part 0 of job demo (rows 0–189)"}},
	{"swap two parts", func(t *testing.T, path string) {
		copyFile(t, path, "results/part-00000.parquet", "swap")
		copyFile(t, path, "results/part-00001.parquet", "results/part-00000.parquet")
		copyFile(t, path, "swap", "results/part-00001.parquet")
		remove(t, path, "swap")
	}, []string{
		"results/part-00000.parquet: rows 0–189 missing: the file holds results of part 1 of job demo (rows 190–383)",
		"results/part-00001.parquet: rows 190–383 missing: the file holds results of part 0 of job demo (rows 0–189)",
	}},
	{"truncate a part", func(t *testing.T, path string) {
		change(t, path, "results/part-00002.parquet", func(b []byte) []byte { return b[:1000] })
	}, []string{"results/part-00002.parquet: rows 384–478 altered: 1000 bytes, want SIZE"}},
	{"remove rejects", func(t *testing.T, path string) { remove(t, path, "rejects/part-00001.parquet") },
		[]string{"rejects/part-00001.parquet: rows 190–383 missing: there is no such file"}},
	{"remove empty rejects", func(t *testing.T, path string) { remove(t, path, "rejects/part-00000.parquet") },
		[]string{"rejects/part-00000.parquet: missing: there is no such file"}},
	{"add a stray file", func(t *testing.T, path string) {
		copyFile(t, path, "stats/stats.parquet", "results/x.parquet")
	}, []string{"results/x.parquet: not in the manifest"}},
	{"remove statistics", func(t *testing.T, path string) { remove(t, path, "stats/stats.parquet") },
		[]string{"stats/stats.parquet: missing: there is no such file"}},
	{"remove manifest", func(t *testing.T, path string) { remove(t, path, "manifest.json") },
		[]string{"manifest.json: missing: _SUCCESS says that the dataset is finished"}},
	{"remove _SUCCESS", func(t *testing.T, path string) { remove(t, path, "_SUCCESS") },
		[]string{"_SUCCESS: missing"}},
	{"write into _SUCCESS", func(t *testing.T, path string) {
		change(t, path, "_SUCCESS", func([]byte) []byte { return []byte("x") })
	}, []string{"_SUCCESS: altered: 1 bytes, want 0"}},
}

// A dataset of generated boards is compared with them: another board is found even
// where its answer is right, and so is another corpus.
func TestVerifyGenerated(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	spec.Generate, spec.Size = puzzle.Generate{Kind: puzzle.GenerateRandom, Count: 90, Seed: 4}, puzzle.Size{Rows: 5, Cols: 5}
	g, err := generate.New(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := corpus{spec: spec}
	for first := int64(0); first < 90; first += 30 {
		var run puzzle.Run
		g.Fill(&run, first, 30)
		answers := puzzle.Answers{}
		answers.Reset(spec.Size, 30)
		clear(answers.Solutions.Masks)
		clear(answers.MinMoves)
		clear(answers.OptimalCount)
		clear(answers.Reached)
		for i := range answers.Status {
			answers.Status[i] = puzzle.Impossible
		}
		chunk := puzzle.Chunk{First: first, Spans: []puzzle.Span{{Records: 30}}, Runs: []puzzle.Run{run}}
		c.chunks = append(c.chunks, answered{chunk, []puzzle.Answers{answers}})
	}
	sum := g.Sum()
	write := func(change func(in *dataset.Input)) string {
		d, err := dataset.Open(t.TempDir(), "demo", spec)
		if err != nil {
			t.Fatal(err)
		}
		c.commit(t, d, 0)
		c.commit(t, d, 1)
		in := dataset.Input{Records: 90, Chunks: 3, CorpusSHA256: hex.EncodeToString(sum[:])}
		change(&in)
		if _, err := d.Finish(in); err != nil {
			t.Fatal(err)
		}
		return d.Path()
	}
	if got := problems(t, write(func(*dataset.Input) {})); len(got) > 0 {
		t.Errorf("a sound dataset: %v", got)
	}
	got := problems(t, write(func(in *dataset.Input) { in.CorpusSHA256 = strings.Repeat("0", 64) }))
	if len(got) != 1 || !strings.Contains(got[0], "its input is not what random,count=90,seed=4 makes: corpus_sha256") {
		t.Errorf("another corpus: %v", got)
	}
	c.chunks[1].chunk.Runs[0].Masks[7] ^= 1
	c.chunks[1].chunk.Runs[0].Masks[8] ^= 4
	got = problems(t, write(func(*dataset.Input) {}))
	if want := []string{"results/part-00000.parquet: rows 37–38 have another board than is generated"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVerifyDamage(t *testing.T) {
	original := smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, t.TempDir())
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "job=demo")
			if err := os.CopyFS(path, os.DirFS(original)); err != nil {
				t.Fatal(err)
			}
			d.do(t, path)
			info, err := os.Stat(filepath.Join(original, "results/part-00002.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.want {
				d.want[i] = strings.ReplaceAll(d.want[i], "SIZE", fmt.Sprint(info.Size()))
			}
			if got := problems(t, path); !slices.Equal(got, d.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(d.want, "\n"))
			}
		})
	}
}

func remove(t *testing.T, path, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(path, name)); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path, from))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, to), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, path, name string, do func([]byte) []byte) {
	t.Helper()
	file := filepath.Join(path, name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, do(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A flipped bit anywhere in any file is found, and in a data file it is named
// with the rows of its part.
func TestVerifyFlippedBit(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	spec.Columns = []string{"puzzle_index", "rows", "cols", "board", "status", "solution", "reached"}
	path := smallCorpus(t, spec).write(t, t.TempDir())
	for name, content := range tree(t, path) {
		file := filepath.Join(path, name)
		step := max(1, len(content)/25)
		if name == "manifest.json" {
			step = max(1, len(content)/150)
		}
		for at := 0; at < len(content); at += step {
			flipped := []byte(content)
			flipped[at] ^= 1 << (at / step % 8)
			if err := os.WriteFile(file, flipped, 0o644); err != nil {
				t.Fatal(err)
			}
			found := problems(t, path)
			if len(found) == 0 {
				t.Errorf("%s: bit %d of byte %d flipped: nothing found", name, at/step%8, at)
			}
			if strings.HasPrefix(name, "results/part-00001") && !slices.ContainsFunc(found, func(p string) bool {
				return strings.HasPrefix(p, name+": rows 190–383 altered")
			}) {
				t.Errorf("%s: byte %d flipped: %q", name, at, found)
			}
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// alter changes every leaf of a JSON value in turn, calls changed, and restores it.
func alter(v any, where string, changed func(where string)) {
	each := func(old any, set func(any), where string) {
		switch x := old.(type) {
		case float64:
			set(x + 1)
		case string:
			set(x + "0")
		case nil:
			set(map[string]any{"file": "rejects/part-00002.parquet"})
		default:
			alter(old, where, changed)
			return
		}
		changed(where)
		set(old)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, old := range v {
			each(old, func(n any) { v[key] = n }, where+"."+key)
		}
	case []any:
		for i, old := range v {
			each(old, func(n any) { v[i] = n }, fmt.Sprint(where, "[", i, "]"))
		}
	}
}

// Rows that lie are found even where every checksum is right.
func TestVerifyWrongRows(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Zero)
	for _, c := range []struct {
		name string
		lie  func(a *answered)
		want []string
	}{
		{"solution", func(a *answered) { misplace(&a.answers[1], 0) },
			[]string{"results/part-00000.parquet: rows 30–30 have a solution that does not reach its target"}},
		{"two solutions", func(a *answered) { misplace(&a.answers[1], 0); misplace(&a.answers[1], 1) },
			[]string{"results/part-00000.parquet: rows 30–31 have a solution that does not reach its target"}},
		{"min_moves", func(a *answered) { a.answers[1].MinMoves[2]++ },
			[]string{"results/part-00000.parquet: rows 32–32 have min_moves other than the presses of their solution"}},
		{"optimal_count", func(a *answered) { a.answers[1].OptimalCount[2] = 1 << 20 },
			[]string{"results/part-00000.parquet: rows 32–32 have an optimal_count that their nullity does not allow"}},
		{"reached", func(a *answered) { a.answers[1].Reached[2] = puzzle.One },
			[]string{"results/part-00000.parquet: rows 32–32 reach what is not the target"}},
	} {
		rows := makeChunk(random(9), spec, 0, map[puzzle.Size]int{{Rows: 3, Cols: 3}: 30, {Rows: 4, Cols: 4}: 3}, 0)
		c.lie(&rows)
		found := problems(t, corpus{spec, []answered{rows}}.write(t, t.TempDir()))
		found = slices.DeleteFunc(found, func(p string) bool {
			return strings.Contains(p, "add up to") || strings.Contains(p, "not what the rows")
		})
		if !slices.Equal(found, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, found, c.want)
		}
	}
}

// misplace changes the first row of a solution, and min_moves with it.
func misplace(a *puzzle.Answers, i int) {
	before := bits.OnesCount16(a.Solutions.Masks[i])
	a.Solutions.Masks[i] ^= 3
	a.MinMoves[i] += int32(bits.OnesCount16(a.Solutions.Masks[i]) - before)
}

// TestVerifyHere verifies the folder that one stands in.
func TestVerifyHere(t *testing.T) {
	t.Chdir(smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, t.TempDir()))
	if found := problems(t, "."); len(found) > 0 {
		t.Errorf("got %q", found)
	}
}

// TestVerifyElsewhere: the error says what the folder may be instead.
func TestVerifyElsewhere(t *testing.T) {
	path := smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, t.TempDir())
	if _, err := dataset.Verify(filepath.Dir(path), nil); !errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(err.Error(), "such as "+path) {
		t.Errorf("the folder above: %v", err)
	}
	remove(t, path, "_SUCCESS")
	remove(t, path, "manifest.json")
	if _, err := dataset.Verify(path, nil); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "no finished dataset in ") {
		t.Errorf("without manifest: %v", err)
	}
}

func TestVerifyUnfinished(t *testing.T) {
	if _, err := dataset.Verify(t.TempDir(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	path := smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, t.TempDir())
	change(t, path, "manifest.json", func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"schema_version": 1`), []byte(`"schema_version": 2`), 1)
	})
	if found := problems(t, path); len(found) != 1 || !strings.Contains(found[0], "schema version 2, want 1") {
		t.Errorf("got %q", found)
	}
}
