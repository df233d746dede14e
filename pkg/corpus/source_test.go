package corpus_test

import (
	"bytes"
	"compress/gzip" // not the one that the package reads with
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestCompressed reads the same corpus plain, as gzip (also of several members)
// and as zstd (also of several frames, also behind a skippable one).
func TestCompressed(t *testing.T) {
	text := strings.Repeat("01/10\n11/11\n", 50_000)
	half := len(text) / 2
	for name, stored := range map[string]string{
		"plain":           text,
		"gzip":            gzipped(text),
		"gzip, members":   gzipped(text[:half+1]) + gzipped("") + gzipped(text[half+1:]),
		"zstd":            zstded(text),
		"zstd, frames":    zstded(text[:half+1]) + zstded(text[half+1:]),
		"zstd, skippable": "\x5a\x2a\x4d\x18\x03\x00\x00\x00abc" + zstded(text),
		"bzip2":           made(t, "boards.bz2"), // by the tools bzip2 and xz
		"bzip2, streams":  made(t, "boards-streams.bz2"),
		"xz":              made(t, "boards.xz"),
		"xz, streams":     made(t, "boards-streams.xz"),
		"xz, sizes":       made(t, "boards-sizes.xz"), // in the headers of its blocks; zeros between its streams
	} {
		path := writeFile(t, "boards", stored)
		c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var rec corpus.Record
		n := 0
		for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
			n++
			if want := []uint16{1, 2}; n%2 == 1 && !slices.Equal(rec.Board.Masks, want) || rec.Line != int64(n) {
				t.Fatalf("%s: record %d: %s", name, n, show(&rec))
			}
		}
		if err != io.EOF || n != 100_000 {
			t.Errorf("%s: %d records, then %v", name, n, err)
		}
		if read, total := c.Progress(); read != int64(len(stored)) || total != read {
			t.Errorf("%s: read %d of %d bytes, want %d", name, read, total, len(stored))
		}
	}
}

// made returns the content of a file in testdata.
func made(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestDamaged: damaged compression is an error that names the file and says what
// is wrong with it, wherever it shows.
func TestDamaged(t *testing.T) {
	text := strings.Repeat("01/10\n", 100_000)
	rng := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, 1<<20) // does not compress, so that the damage is far behind the start
	for i := range noise {
		noise[i] = "01"[rng.IntN(2)]
	}
	for i := 4; i < len(noise); i += 5 {
		noise[i] = '\n'
	}
	flip := func(s string) string {
		b := []byte(s)
		b[len(b)*3/4] ^= 0x55
		return string(b)
	}
	bzip2, xz := made(t, "boards.bz2"), made(t, "boards.xz")
	for name, test := range map[string]struct{ stored, want string }{
		"gzip, cut":            {gzipped(text)[:200], "the gzip file is cut off"},
		"gzip, cut at once":    {gzipped(text)[:5], "the gzip file is cut off"},
		"gzip, flipped":        {flip(gzipped(string(noise))), "the gzip file is damaged"},
		"gzip, followed":       {gzipped(text) + "garbage", "the gzip file is"},
		"zstd, cut":            {zstded(string(noise))[:50_000], "the zstd file is cut off"},
		"zstd, flipped":        {flip(zstded(string(noise))), "the zstd file is damaged"},
		"bzip2, cut":           {bzip2[:len(bzip2)/2], "the bzip2 file is cut off"},
		"bzip2, flipped":       {flip(bzip2), "the bzip2 file is damaged"},
		"xz, cut":              {xz[:len(xz)/2], "the xz file is cut off"},
		"xz, cut at once":      {xz[:13], "the xz file is cut off"},
		"xz, flipped":          {flip(xz), "the xz file is"},
		"xz, large dictionary": {made(t, "dictionary.xz"), "its dictionary is larger than 134217728 bytes"},
	} {
		path := writeFile(t, "damaged", test.stored)
		opts := corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 2, Cols: 2}}
		c, err := corpus.Open(t.Context(), []string{path}, opts, nil)
		n := 0
		if err == nil {
			var rec corpus.Record
			for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
				n++
			}
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %d records, then %v", name, n, err)
		}
	}
}

// TestOverExpanded: a file that becomes a thousand times as large as it is ends
// in a reject, wherever it does so and whatever it is compressed with, and the files
// behind it are read.
func TestOverExpanded(t *testing.T) {
	lines := func(line string) string {
		return strings.Repeat(zstded(strings.Repeat(line+"\n", 1<<20/len(line))), 70)
	}
	zeros, blanks := lines(strings.Repeat("0", 70_000)), lines(strings.Repeat(" ", 60_000))
	last := writeFile(t, "last.txt", "01/10\n")
	for name, text := range map[string]string{
		"zeros.txt": zeros, "nothing.txt": blanks, "nothing.csv": blanks,
		"zeros.gz":  gzipped(strings.Repeat("0", 65<<20)),     // not a thousandth, but less
		"zeros.bz2": strings.Repeat(made(t, "zeros.bz2"), 65), // 1 MiB each, by the tools
		"zeros.xz":  strings.Repeat(made(t, "zeros.xz"), 65),
	} {
		bomb := writeFile(t, name, text)
		opts := corpus.Options{}
		if strings.HasPrefix(name, "zeros") { // which tells nothing
			opts.Format = corpus.Lines
		}
		c, err := corpus.Open(t.Context(), []string{bomb, last}, opts, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var rec, end corpus.Record
		for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
			if rec.Rejected() {
				end = rec
			}
		}
		if err != io.EOF || end.Reject.Reason != puzzle.OverExpanded || end.Source != bomb || end.Line < 1 || rec.Source != last || len(c.Sources()) != 2 {
			t.Errorf("%s: %+v, then %s, %v", name, end, show(&rec), err)
		}
	}
}

// FuzzCompressed: no bytes do harm, and what they are does not depend on how they come,
// but for how much is read before damage shows.
func FuzzCompressed(f *testing.F) {
	text := strings.Repeat("01/10\n", 40)
	for _, stored := range []string{
		gzipped(text), gzipped(text) + gzipped("") + gzipped(text), zstded(text), "\x5a\x2a\x4d\x18\x03\x00\x00\x00abc" + zstded(text) + zstded(text),
		made(f, "boards.bz2"), made(f, "boards-streams.bz2"), made(f, "small.xz"), made(f, "dictionary.xz"),
	} {
		f.Add(stored)
	}
	f.Fuzz(func(t *testing.T, stored string) {
		whole, err := firstLines(t, strings.NewReader(stored))
		pieced, piecedErr := firstLines(t, iotest.OneByteReader(strings.NewReader(stored)))
		if n := min(len(whole), len(pieced)); !slices.Equal(whole[:n], pieced[:n]) || (err == io.EOF) != (piecedErr == io.EOF) || err == io.EOF && len(whole) != len(pieced) {
			t.Errorf("%q: %q, %v, but in single bytes %q, %v", stored, whole, err, pieced, piecedErr)
		}
	})
}

// firstLines reads the first 1000 records at most: a few bytes may become millions of lines.
func firstLines(t *testing.T, stored io.Reader) (shown []string, err error) {
	c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 2, Cols: 2}}, stored)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var rec corpus.Record
	for err = c.Next(&rec); err == nil && len(shown) < 1000; err = c.Next(&rec) {
		shown = append(shown, show(&rec))
	}
	return shown, err
}

// TestSourceFails lets a source fail behind each of its bytes: the error comes
// out, and no record is made of what was cut off.
func TestSourceFails(t *testing.T) {
	boom := errors.New("boom")
	for format, text := range map[string]string{
		corpus.Auto:   "\n\n01/10\n11/00\n",
		corpus.Lines:  "01/10\n11/0\n00000000000000\n11/11\n",
		corpus.Blocks: "01\n10\n\n11\n0\n\n11\n11\n\n",
		corpus.Grid:   "2 2\n0 1\n1 0\nx\n3\n1 1\n1\n",
	} {
		opts := corpus.Options{Format: format, MaxLine: 10}
		whole, _, err := readAll(t, strings.NewReader(text), opts)
		if err != nil {
			t.Fatal(err)
		}
		for k := range len(text) {
			in := io.MultiReader(strings.NewReader(text[:k]), iotest.ErrReader(boom))
			shown, _, err := readAll(t, in, opts)
			if !errors.Is(err, boom) || len(shown) > len(whole) || !slices.Equal(shown, whole[:len(shown)]) {
				t.Errorf("%s, %q: %q, %v", format, text[:k], shown, err)
			}
		}
	}
}

// TestSources: several files are one sequence, with the fingerprint that the
// sha256sum tool prints.
func TestSources(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a.txt": "\n01/10\nx\n", "empty.txt": "", "b.txt": "11/11"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{"empty.txt", "a.txt", "b.txt"}
	c, err := corpus.Open(t.Context(), paths, corpus.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Format() != corpus.Lines {
		t.Errorf("format %s", c.Format())
	}
	var got []string
	var rec corpus.Record
	for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
		got = append(got, rec.Source+": "+show(&rec))
	}
	want := []string{"a.txt: 2 2x2 0110", "a.txt: 3 unknown_symbol line 3, column 1: 'x' is not a cell, want 1 or 0", "b.txt: 1 2x2 1111"}
	if err != io.EOF || !slices.Equal(got, want) {
		t.Errorf("records %q, then %v", got, err)
	}
	sources := []corpus.Source{ // printed by sha256sum
		{Name: "empty.txt", Bytes: 0, SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{Name: "a.txt", Bytes: 9, SHA256: "159e11ca51884dd402caaf85fb3781315354a6d842e61449d5845ca9f7735193"},
		{Name: "b.txt", Bytes: 5, SHA256: "f391e17dfcff5b8c1566cca3bdf54580b5adb79454cff80916a234e12dba8d03"},
	}
	if !slices.Equal(c.Sources(), sources) {
		t.Errorf("sources %v", c.Sources())
	}
	if print, err := corpus.Fingerprint(t.Context(), paths, nil); err != nil || !slices.Equal(print, sources) {
		t.Errorf("fingerprint %v, %v", print, err)
	}
	if sum := corpus.Sum(sources); sum != "52ef9ae79c48266158fe9f1eeeb957ac6d476cd4335dcab39b168599c3262c23" { // sha256sum empty.txt a.txt b.txt | sha256sum
		t.Errorf("sum %s", sum)
	}
	piped := []corpus.Source{sources[1], {Name: corpus.Stdin, Bytes: 5, SHA256: sources[2].SHA256}}
	if print, err := corpus.Fingerprint(t.Context(), []string{"a.txt", corpus.Stdin}, strings.NewReader("11/11")); err != nil || !slices.Equal(print, piped) {
		t.Errorf("fingerprint with standard input %v, %v", print, err)
	}
}

// TestExpand: folders and patterns stand for their files, in an order that does
// not depend on the machine.
func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.txt", "b/x.txt", "b/c/y.csv", "b/_SUCCESS", "b/.hidden", "b/.git/z.txt", "b.txt", "b/C.txt", "lit*.txt", "empty/.keep", "b/job=x/results/part-00000.parquet", "out/job=x/manifest.json"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("../a.txt", "b/link.txt"), os.Symlink("..", "b/loop")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ paths, want string }{
		{"a.txt", "a.txt"},
		{"./a.txt b//x.txt b/../a.txt -", "a.txt b/x.txt a.txt -"},
		{"b", "b/C.txt b/c/y.csv b/link.txt b/x.txt"},
		{"./b/", "b/C.txt b/c/y.csv b/link.txt b/x.txt"},
		{"*.txt", "a.txt b.txt lit*.txt"},
		{"lit*.txt", "lit*.txt"},
		{"./b/?.txt", "b/C.txt b/x.txt"},
		{".", "a.txt b.txt b/C.txt b/c/y.csv b/link.txt b/x.txt lit*.txt"},
		{"*", "a.txt b/C.txt b/c/y.csv b/link.txt b/x.txt b.txt lit*.txt"},
		{"out/job=x", "out/job=x/manifest.json"},
	} {
		got, err := corpus.Expand(t.Context(), strings.Fields(test.paths))
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("%s: %q, %v, want %s", test.paths, got, err, test.want)
		}
	}
	for paths, want := range map[string]string{"none": "no such file", "*.csv": "pattern *.csv matches no file", "[": "pattern [: syntax error", "empty": "empty: no files in this folder", "out": "out: no files in this folder, besides datasets", "": "a corpus without a name"} {
		if got, err := corpus.Expand(t.Context(), []string{paths}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", paths, got, err)
		}
	}
}

// TestNameNotUTF8: what a file is called has to fit into a dataset's text.
func TestNameNotUTF8(t *testing.T) {
	path := writeFile(t, "a\xff\xfeb", "01/10\n")
	want := strings.ReplaceAll(path, "\xff\xfe", "\uFFFD")
	c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rec corpus.Record
	if err := c.Next(&rec); err != nil || rec.Source != want {
		t.Errorf("record of %q, %v", rec.Source, err)
	}
	if err := c.Next(&rec); err != io.EOF || c.Sources()[0].Name != want {
		t.Errorf("sources %v, %v", c.Sources(), err)
	}
}

// TestChangedMeanwhile: a file that shrinks or grows while it is read is an
// error, not a corpus of what happened to be there.
func TestChangedMeanwhile(t *testing.T) {
	const boards = 1 << 18 // much more than is read ahead
	for name, change := range map[string]func(path string) error{
		"cut":    func(path string) error { return os.Truncate(path, boards*3) },
		"longer": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("11/11\n", boards+1)), 0) },
	} {
		path := writeFile(t, "boards", strings.Repeat("01/10\n", boards))
		c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		var rec corpus.Record
		for err == nil {
			err = c.Next(&rec)
		}
		if !strings.Contains(err.Error(), path+": it changed meanwhile") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStdin(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		io.WriteString(w, "01/10\n")
		w.Close()
	}()
	file := writeFile(t, "b.txt", "11/11\n")
	c, err := corpus.Open(t.Context(), []string{corpus.Stdin, file}, corpus.Options{}, r)
	if err != nil {
		t.Fatal(err)
	}
	var rec corpus.Record
	for _, want := range []string{"- 1 2x2 0110", file + " 1 2x2 1111"} {
		if err := c.Next(&rec); err != nil || rec.Source+" "+show(&rec) != want {
			t.Errorf("%s %s, %v, want %s", rec.Source, show(&rec), err, want)
		}
	}
	if err := c.Next(&rec); err != io.EOF {
		t.Errorf("after the last record: %v", err)
	}
	if read, total := c.Progress(); read != 12 || total != 0 {
		t.Errorf("read %d of %d bytes, want 12 of unknown", read, total)
	}
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

func zstded(text string) string {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	io.WriteString(z, text)
	z.Close()
	return b.String()
}
