package dataset_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/tally"
)

// random returns a generator that always yields the same numbers.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

// outputVariable makes this test binary a process that dies: where it makes a dataset
// until then (crash_test.go).
const outputVariable = "DATASET_TEST_OUTPUT"

func TestMain(m *testing.M) {
	if os.Getenv(outputVariable) != "" { // a process that dies, while its server goes on
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// testSpec returns a spec with all defaults.
func testSpec(t testing.TB, rule string, target puzzle.Target) puzzle.Spec {
	t.Helper()
	r, err := puzzle.ParseRule(rule)
	if err != nil {
		t.Fatal(err)
	}
	return puzzle.Spec{
		Rule: r, Target: target, SearchLimit: 1 << 20,
		Columns: dataset.Columns(), Cells: dataset.DefaultCells, Compression: dataset.DefaultCompression,
		PartChunks: 2, Format: "lines", Symbols: puzzle.Digits(), MaxLine: 1 << 16,
	}
}

// answered is a chunk with its answers, and what a worker makes of it.
type answered struct {
	chunk   puzzle.Chunk
	answers []puzzle.Answers
}

// pressed returns a run of random boards with answers that fit them: random
// presses on an empty board, or on a full one where 1 is reached. Every 7th
// board is impossible and every 11th unproven, whatever it looks like.
func pressed(rng *rand.Rand, spec puzzle.Spec, size puzzle.Size, count int) (puzzle.Run, puzzle.Answers) {
	run := puzzle.NewRun(size, count)
	a := puzzle.Answers{Nullity: int(rng.Uint32N(3))}
	a.Reset(size, count)
	clear(a.Solutions.Masks)
	for i := range count {
		a.Status[i], a.MinMoves[i], a.OptimalCount[i], a.Reached[i] = puzzle.Solved, 0, 1, puzzle.Zero
		if spec.Target == puzzle.One || spec.Target == puzzle.Either && rng.Uint32N(2) == 1 {
			a.Reached[i] = puzzle.One
		}
		for k := range size.Cells() {
			row, col := k/size.Cols, k%size.Cols
			if a.Reached[i] == puzzle.One {
				run.SetCell(i, row, col)
			}
			if rng.Uint32N(2) == 1 {
				a.Solutions.SetCell(i, row, col)
				a.MinMoves[i]++
			}
		}
		if a.Nullity > 0 && rng.Uint32N(3) == 0 {
			a.OptimalCount[i] = 2
		}
	}
	spec.Rule.Press(run, a.Solutions)
	for i := range count {
		switch {
		case i%7 == 3:
			a.Status[i], a.MinMoves[i], a.OptimalCount[i], a.Reached[i] = puzzle.Impossible, 0, 0, puzzle.Zero
			for l := range size.BoardMasks() {
				a.Solutions.Masks[l*count+i] = 0
			}
		case i%11 == 5:
			a.Status[i], a.OptimalCount[i] = puzzle.Unproven, 0
		}
	}
	return run, a
}

// makeChunk returns a chunk of random boards of the given sizes and some rejects.
func makeChunk(rng *rand.Rand, spec puzzle.Spec, first int64, counts map[puzzle.Size]int, rejects int) answered {
	var a answered
	a.chunk.First = first
	for _, size := range sortedSizes(counts) {
		run, ans := pressed(rng, spec, size, counts[size])
		a.chunk.Runs = append(a.chunk.Runs, run)
		a.answers = append(a.answers, ans)
	}
	records := a.chunk.Boards() + rejects
	taken := rng.Perm(records)[:rejects]
	for k := range records {
		a.chunk.Lines = append(a.chunk.Lines, first*3+int64(k)*2+1)
		for _, r := range taken {
			if r == k {
				a.chunk.Rejects = append(a.chunk.Rejects, puzzle.Reject{
					Index: first + int64(k), Reason: puzzle.UnknownSymbol, Detail: fmt.Sprintf("symbol %d", k), Raw: []byte("01x\xff0"),
				})
			}
		}
	}
	for range min(len(spec.Keep), 1) * (1 + len(spec.Keep)) {
		var labels puzzle.Labels
		for range records {
			labels.Add([]byte([]string{"", "a-1", "\u00e9", strings.Repeat("x", 100)}[rng.IntN(4)]))
		}
		a.chunk.Labels = append(a.chunk.Labels, labels)
	}
	half := records / 2
	a.chunk.Spans = []puzzle.Span{{Source: "a.txt", Records: half}, {Source: "b.txt", Records: records - half}}
	return a
}

func sortedSizes(counts map[puzzle.Size]int) []puzzle.Size {
	var sizes []puzzle.Size
	for rows := range puzzle.MaxLines + 1 {
		for cols := range puzzle.MaxLines + 1 {
			if s := (puzzle.Size{Rows: rows, Cols: cols}); counts[s] > 0 {
				sizes = append(sizes, s)
			}
		}
	}
	return sizes
}

// encode returns what a worker sends for a chunk.
func (a answered) encode(t testing.TB, e *dataset.Encoder) dataset.Chunk {
	t.Helper()
	results, rejects, err := e.Encode(&a.chunk, a.answers)
	if err != nil {
		t.Fatal(err)
	}
	counts := &tally.Tally{}
	counts.AddChunk(&a.chunk, a.answers)
	return dataset.Chunk{
		First: a.chunk.First, Records: a.chunk.Records(), Digest: a.chunk.Digest(),
		Results: bytes.Clone(results), Rejects: bytes.Clone(rejects), Tally: counts,
	}
}

// corpus is what a dataset in a test was made of.
type corpus struct {
	spec   puzzle.Spec
	chunks []answered
}

func (c corpus) input() dataset.Input {
	in := dataset.Input{Chunks: int64(len(c.chunks)), CorpusSHA256: "c0", Sources: []dataset.Source{{Name: "a.txt", Bytes: 10, SHA256: "aa"}}}
	for _, a := range c.chunks {
		in.Records += int64(a.chunk.Records())
	}
	return in
}

// smallCorpus has 5 chunks, 3 parts: rejects in chunk 3 only, which is in part 1.
func smallCorpus(t testing.TB, spec puzzle.Spec) corpus {
	rng := random(1)
	c := corpus{spec: spec}
	wide := puzzle.Size{Rows: 19, Cols: 33}
	if spec.Rule.CheckSize(wide) != nil {
		wide.Rows = 3
	}
	first := int64(0)
	for i := range 5 {
		rejects := 0
		if i == 3 {
			rejects = 4
		}
		a := makeChunk(rng, spec, first, map[puzzle.Size]int{{Rows: 5, Cols: 5}: 60, {Rows: 3, Cols: 7}: 30, {Rows: 2, Cols: 20}: 3, wide: 2}, rejects)
		c.chunks = append(c.chunks, a)
		first += int64(a.chunk.Records())
	}
	return c
}

// commit writes part p of the corpus.
func (c corpus) commit(t testing.TB, d *dataset.Dir, p int) dataset.Footer {
	t.Helper()
	e, err := dataset.NewEncoder(c.spec, solver.NewSet(c.spec.Rule, solver.Options{SearchLimit: c.spec.SearchLimit}))
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.NewPart(p)
	if err != nil {
		t.Fatal(err)
	}
	for i := p * c.spec.PartChunks; i < min(len(c.chunks), (p+1)*c.spec.PartChunks); i++ {
		if err := part.Add(c.chunks[i].encode(t, e)); err != nil {
			t.Fatal(err)
		}
	}
	footer, err := part.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return footer
}

// write makes the corpus' dataset and returns its path.
func (c corpus) write(t testing.TB, output string) string {
	t.Helper()
	d, err := dataset.Open(output, "demo", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	for p := 0; p*c.spec.PartChunks < len(c.chunks); p++ {
		c.commit(t, d, p)
	}
	if _, err := d.Finish(c.input()); err != nil {
		t.Fatal(err)
	}
	return d.Path()
}

// tree returns the files below a folder and their content.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestLayout(t *testing.T) {
	output := t.TempDir()
	path := smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, output)
	if path != filepath.Join(output, "job=demo") {
		t.Errorf("dataset in %s", path)
	}
	files := tree(t, output)
	for _, name := range []string{
		"results/part-00000.parquet", "results/part-00001.parquet", "results/part-00002.parquet",
		"rejects/part-00000.parquet", "rejects/part-00001.parquet",
		"stats/stats.parquet", "manifest.json", "_SUCCESS",
	} {
		if _, ok := files["job=demo/"+name]; !ok {
			t.Errorf("no %s", name)
		}
		delete(files, "job=demo/"+name)
	}
	for name := range files {
		t.Errorf("extra file %s", name)
	}
}
