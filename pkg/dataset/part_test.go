package dataset_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

func metadata(t testing.TB, file []byte) *format.FileMetaData {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return f.Metadata()
}

// columnBytes returns the compressed pages of a column chunk.
func columnBytes(file []byte, m *format.ColumnMetaData) []byte {
	start := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		start = m.DictionaryPageOffset
	}
	return file[start : start+m.TotalCompressedSize]
}

// A part has the very bytes of its chunks' pages, a row group per chunk.
func TestPartCopiesVerbatim(t *testing.T) {
	for _, spec := range variants(testSpec(t, "plus", puzzle.Either)) {
		c := smallCorpus(t, spec)
		path := c.write(t, t.TempDir())
		part, err := os.ReadFile(filepath.Join(path, "results/part-00001.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		groups := metadata(t, part).RowGroups
		if len(groups) != 2 {
			t.Fatalf("%d row groups, want one per chunk", len(groups))
		}
		for i, g := range groups {
			chunk := c.chunks[2+i].encode(t, newEncoder(t, spec)).Results
			source := metadata(t, chunk).RowGroups[0]
			for j := range g.Columns {
				got, want := &g.Columns[j].MetaData, &source.Columns[j].MetaData
				if !bytes.Equal(columnBytes(part, got), columnBytes(chunk, want)) {
					t.Errorf("%s, %s: column %s of chunk %d was encoded anew", spec.Cells, spec.Compression, want.PathInSchema, 2+i)
				}
				if !reflect.DeepEqual(got.Statistics, want.Statistics) || !reflect.DeepEqual(got.PathInSchema, want.PathInSchema) {
					t.Errorf("column %s of chunk %d has other statistics", want.PathInSchema, 2+i)
				}
			}
		}
	}
}

func TestFooter(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	spec.Size = puzzle.Size{Rows: 5, Cols: 5}
	c := smallCorpus(t, spec)
	d, err := dataset.Open(t.TempDir(), "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	var want []dataset.Footer
	for p := range 3 {
		want = append(want, c.commit(t, d, p))
	}
	got, err := d.Committed()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	f := got[1]
	digests := sha256.New()
	counts := &tally.Tally{}
	for _, a := range c.chunks[2:4] {
		sum := a.chunk.Digest()
		digests.Write(sum[:])
		counts.AddChunk(&a.chunk, a.answers)
	}
	if f.Part != 1 || f.FirstChunk != 2 || f.Chunks != 2 || f.FirstIndex != 190 || f.Records != 194 || f.Rows != 190 || f.Table != "results" || f.Job != "demo" {
		t.Errorf("got %+v", f)
	}
	if f.InputSHA256 != hex.EncodeToString(digests.Sum(nil)) || !bytes.Equal(f.Tally, counts.Append(nil)) {
		t.Errorf("part 1 has another input or tally")
	}
	if back, err := f.Spec.ParseSpec(); err != nil || !reflect.DeepEqual(back, spec) {
		t.Errorf("spec %+v, %v", back, err)
	}
}

// The order in which parts are committed, and by whom, leaves no trace.
func TestDatasetDeterministic(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	one, two := t.TempDir(), t.TempDir()
	c.write(t, one)
	for _, p := range []int{2, 0, 1} {
		d, err := dataset.Open(two, "demo", spec)
		if err != nil {
			t.Fatal(err)
		}
		c.commit(t, d, p)
	}
	d, err := dataset.Open(two, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Finish(c.input()); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(tree(t, one), tree(t, two)) {
		t.Error("other bytes")
	}
}

// Committing a part again, even at the same time, changes nothing; another
// part's content under its name is an error.
func TestCommitTwice(t *testing.T) {
	output := t.TempDir()
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			d, err := dataset.Open(output, "demo", spec)
			if err != nil {
				return err
			}
			for p := range 3 {
				c.commit(t, d, p)
			}
			_, err = d.Finish(c.input())
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	before := tree(t, output)
	if len(before) != 8 {
		t.Errorf("%d files: %v", len(before), maps.Keys(before))
	}
	other := c
	other.chunks = append([]answered{}, c.chunks...)
	other.chunks[1].chunk.Lines[0]++
	d, err := dataset.Open(output, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.NewPart(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range other.chunks[:2] {
		if err := part.Add(a.encode(t, newEncoder(t, spec))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := part.Commit(); err == nil || !strings.Contains(err.Error(), "exists with other content") {
		t.Errorf("got %v", err)
	}
	if !maps.Equal(tree(t, output), before) {
		t.Error("the dataset changed")
	}
}

// A process that dies in the middle of a commit leaves temporary files and
// perhaps rejects. The part is not committed then, and can be.
func TestCommitInterrupted(t *testing.T) {
	output := t.TempDir()
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	path := c.write(t, output)
	whole := tree(t, output)
	for _, name := range []string{"manifest.json", "_SUCCESS", "results/part-00001.parquet"} {
		remove(t, path, name)
	}
	for _, name := range []string{"demo.results.part-00001.parquet.1.tmp", "demo.file.manifest.json.1.tmp", "demo-2.results.part-00001.parquet.1.tmp"} {
		if err := os.WriteFile(filepath.Join(output, ".tmp", name), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := dataset.Open(output, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Clean(); err != nil {
		t.Fatal(err)
	}
	committed, err := d.Committed()
	if err != nil {
		t.Fatal(err)
	}
	if len(committed) != 2 || committed[0].Part != 0 || committed[1].Part != 2 {
		t.Errorf("committed: %+v", committed)
	}
	if _, err := d.Finish(c.input()); err == nil || !strings.Contains(err.Error(), "records from 190 on are missing") {
		t.Errorf("got %v", err)
	}
	c.commit(t, d, 1)
	if _, err := d.Finish(c.input()); err != nil {
		t.Fatal(err)
	}
	whole[".tmp/demo-2.results.part-00001.parquet.1.tmp"] = "half"
	if got := tree(t, output); !maps.Equal(got, whole) {
		t.Error("other bytes than without interruption")
	}
}

func TestOpenOtherSpec(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	finished := t.TempDir()
	c.write(t, finished)
	open := t.TempDir()
	d, err := dataset.Open(open, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	c.commit(t, d, 1)
	for want, change := range map[string]func(s *puzzle.Spec){
		"rule is plus, not king":          func(s *puzzle.Spec) { s.Rule, _ = puzzle.ParseRule("king") },
		"target is either, not one":       func(s *puzzle.Spec) { s.Target = puzzle.One },
		"search-limit is 1048576, not 5":  func(s *puzzle.Spec) { s.SearchLimit = 5 },
		"columns is [puzzle_index source": func(s *puzzle.Spec) { s.Columns = s.Columns[:3] },
		"cells is text, not bits":         func(s *puzzle.Spec) { s.Cells = "bits" },
		"compression is zstd, not none":   func(s *puzzle.Spec) { s.Compression = "none" },
		"part-chunks is 2, not 3":         func(s *puzzle.Spec) { s.PartChunks = 3 },
		"format is lines, not grid":       func(s *puzzle.Spec) { s.Format = "grid" },
		"size is empty, not 5x5":          func(s *puzzle.Spec) { s.Size = puzzle.Size{Rows: 5, Cols: 5} },
		"max-line is 65536, not 1024":     func(s *puzzle.Spec) { s.MaxLine = 1024 },
		"symbols is 1=1,0=0, not +=1,-=0": func(s *puzzle.Spec) { s.Symbols = puzzle.Symbols{On: '+', Off: '-'} },
	} {
		for _, output := range []string{finished, open} {
			other := spec
			change(&other)
			_, err := dataset.Open(output, "demo", other)
			if err == nil || !strings.Contains(err.Error(), "other options: "+want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if _, err := dataset.Open(output, "other", other); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEmptyCorpus(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	path := corpus{spec: spec}.write(t, t.TempDir())
	report, err := dataset.Verify(path, nil)
	if err != nil || !report.OK() {
		t.Errorf("%+v, %v", report, err)
	}
	m, err := dataset.ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Parts) != 1 || m.Parts[0].Rejects == nil || m.Stats.Rows != 0 {
		t.Errorf("%+v", m)
	}
	done, err := dataset.Finished(path)
	if !done || err != nil {
		t.Errorf("finished: %v, %v", done, err)
	}
}

func TestPartRefuses(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	good := c.chunks[3].encode(t, newEncoder(t, spec))
	snappy := spec
	snappy.Compression = "snappy"
	other := c.chunks[3].encode(t, newEncoder(t, snappy))
	bits := spec
	bits.Cells = "bits"
	for want, spoil := range map[string]func(c *dataset.Chunk){
		"its first record is -1":                func(c *dataset.Chunk) { c.First = -1 },
		"95 boards and 4 rejects of 100":        func(c *dataset.Chunk) { c.Records++ },
		"results: 0 bytes are no Parquet file":  func(c *dataset.Chunk) { c.Results = nil },
		"rejects: 0 bytes are no Parquet file":  func(c *dataset.Chunk) { c.Rejects = nil },
		"results: another schema or writer":     func(c *dataset.Chunk) { c.Results = c.Rejects },
		"rejects: another schema or writer":     func(c *dataset.Chunk) { c.Rejects = c.Results },
		"codec SNAPPY, want ZSTD":               func(c *dataset.Chunk) { c.Results = other.Results },
		"results: another schema or writer ":    func(d *dataset.Chunk) { d.Results = c.chunks[3].encode(t, newEncoder(t, bits)).Results },
		"95 rows in 1 row groups, want 94 rows": func(c *dataset.Chunk) { fewer(c) },
		"rejects that are not counted":          func(c *dataset.Chunk) { c.Tally, c.Records = withoutRejects(c.Tally), 95 },
	} {
		d, err := dataset.Open(t.TempDir(), "demo", spec)
		if err != nil {
			t.Fatal(err)
		}
		part, err := d.NewPart(1)
		if err != nil {
			t.Fatal(err)
		}
		chunk := good
		spoil(&chunk)
		if err := part.Add(chunk); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("got %v, want %q", err, want)
		}
		part.Abort()
	}
}

// fewer makes a chunk claim one board less.
func fewer(c *dataset.Chunk) {
	one := &puzzle.Answers{}
	one.Reset(puzzle.Size{Rows: 1, Cols: 1}, 94)
	t := &tally.Tally{}
	t.Add(puzzle.Size{Rows: 1, Cols: 1}, one)
	t.AddRejects(puzzle.BadSize, 4)
	c.Tally, c.Records = t, 98
}

func withoutRejects(t *tally.Tally) *tally.Tally {
	bytes := t.Append(nil)
	empty := &tally.Tally{}
	for _, r := range t.Rejects() {
		empty.AddRejects(r.Reason, r.Records)
	}
	tail := empty.Append(nil)[2:] // behind version and no groups
	u, err := tally.Parse(append(bytes[:len(bytes)-len(tail)], 0))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return u
}

func TestPartOrder(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	d, err := dataset.Open(t.TempDir(), "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.NewPart(0)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Abort()
	e := newEncoder(t, spec)
	for _, step := range []struct {
		chunk int
		want  string
	}{{0, ""}, {2, "part 0: chunk 1: its first record is 190, want 95"}, {1, ""}, {2, "the part has its 2 chunks"}} {
		if err := part.Add(c.chunks[step.chunk].encode(t, e)); errorText(err) != step.want && !strings.Contains(errorText(err), step.want) || (err == nil) != (step.want == "") {
			t.Errorf("chunk %d: %v, want %q", step.chunk, err, step.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Whatever arrives as a row group, nothing panics, and what is accepted is
// rows that parquet-go can find.
func TestPartMalformed(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	good := smallCorpus(t, spec).chunks[3].encode(t, newEncoder(t, spec))
	d, err := dataset.Open(t.TempDir(), "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	try := func(results []byte) {
		part, err := d.NewPart(1)
		if err != nil {
			t.Fatal(err)
		}
		defer part.Abort()
		chunk := good
		chunk.Results = results
		if part.Add(chunk) == nil {
			accepted++
		}
	}
	for n := 0; n < len(good.Results); n += 37 {
		try(good.Results[:n])
	}
	if accepted > 0 {
		t.Errorf("%d truncated files accepted", accepted)
	}
	// Pages are not looked at; page index and footer, in the last third, are.
	rng := random(99)
	for range 1000 {
		changed := bytes.Clone(good.Results)
		for range 1 + rng.IntN(4) {
			changed[len(changed)/3+rng.IntN(len(changed)*2/3)] = byte(rng.Uint32())
		}
		try(changed)
	}
}

func FuzzPart(f *testing.F) {
	spec := testSpec(f, "plus", puzzle.Either)
	good := smallCorpus(f, spec).chunks[3].encode(f, newEncoder(f, spec))
	f.Add(good.Results)
	f.Add([]byte("PAR1PAR1"))
	d, err := dataset.Open(f.TempDir(), "demo", spec)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, results []byte) {
		part, err := d.NewPart(1)
		if err != nil {
			t.Fatal(err)
		}
		defer part.Abort()
		chunk := good
		chunk.Results = results
		if part.Add(chunk) == nil {
			_, _ = part.Commit() // may refuse what it reads back, and must not panic
			os.RemoveAll(d.Path())
		}
	})
}
