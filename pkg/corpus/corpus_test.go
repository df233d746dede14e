package corpus_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// layout writes boards in a format. It is the counterpart of the readers and
// shares nothing with them.
type layout struct {
	format string
	bar    string // lines: behind every row
	gap    string // between cells
	eol    string // empty: LF
}

func (l layout) append(dst []byte, board puzzle.Run) []byte {
	eol := "\n"
	if l.eol != "" {
		eol = l.eol
	}
	if l.format == corpus.Grid {
		dst = fmt.Appendf(dst, "%d %d%s", board.Rows, board.Cols, eol)
	}
	for row := range board.Rows {
		for col := range board.Cols {
			if col > 0 {
				dst = append(dst, l.gap...)
			}
			if board.Cell(0, row, col) {
				dst = append(dst, '1')
			} else {
				dst = append(dst, '0')
			}
		}
		if l.format == corpus.Lines {
			dst = append(dst, l.bar...)
		} else {
			dst = append(dst, eol...)
		}
	}
	if l.format != corpus.Grid {
		dst = append(dst, eol...)
	}
	return dst
}

func randomBoard(rng *rand.Rand, size puzzle.Size) puzzle.Run {
	board := puzzle.NewRun(size, 1)
	for i := range board.Masks {
		board.Masks[i] = uint16(rng.Uint32()) & size.FullMask(i)
	}
	return board
}

// show writes a record as the tests expect it: "line size cells" for a board,
// "line reason detail" for a reject. Labels follow in brackets.
func show(rec *corpus.Record) string {
	if rec.Rejected() {
		return fmt.Sprintf("%d %s %s", rec.Line, rec.Reject.Reason, rec.Reject.Detail)
	}
	shown := fmt.Sprintf("%d %s %s", rec.Line, rec.Board.Size, rec.Board.AppendText(nil, 0))
	if rec.Labels.Len() == 0 {
		return shown
	}
	var labels []string
	for i := range rec.Labels.Len() {
		labels = append(labels, cmp.Or(string(rec.Labels.At(i)), "-"))
	}
	return shown + " [" + strings.Join(labels, "|") + "]"
}

// readAll reads a corpus from standard input and checks what holds for every
// record of every corpus.
func readAll(t testing.TB, in io.Reader, opts corpus.Options) (shown, raws []string, err error) {
	t.Helper()
	c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, opts, in)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	var rec corpus.Record
	var line int64
	for {
		if err = c.Next(&rec); err != nil {
			break
		}
		if rec.Line <= line {
			t.Fatalf("record at line %d after one at line %d", rec.Line, line)
		}
		line = rec.Line
		checkRecord(t, &rec)
		shown = append(shown, show(&rec))
		if rec.Rejected() {
			raws = append(raws, string(rec.Reject.Raw))
		}
	}
	if err == io.EOF {
		err = nil
	}
	return shown, raws, err
}

func checkRecord(t testing.TB, rec *corpus.Record) {
	t.Helper()
	if !rec.Rejected() {
		if err := rec.Board.Validate(); err != nil || rec.Board.Count != 1 {
			t.Fatalf("line %d: %d boards, %v", rec.Line, rec.Board.Count, err)
		}
		return
	}
	reasons := []puzzle.Reason{puzzle.UnknownSymbol, puzzle.RaggedRow, puzzle.BadSize, puzzle.TooLarge, puzzle.Truncated, puzzle.LineTooLong, puzzle.BadSyntax, puzzle.BadField}
	switch r := rec.Reject; {
	case !slices.Contains(reasons, r.Reason):
		t.Fatalf("line %d: reason %q", rec.Line, r.Reason)
	case len(r.Raw) == 0 && r.Reason != puzzle.Truncated || len(r.Raw) > puzzle.MaxRaw:
		t.Fatalf("line %d: %d bytes of raw text", rec.Line, len(r.Raw))
	case r.Detail == "" || !utf8.ValidString(r.Detail) || strings.ContainsAny(r.Detail, "\x00\n"):
		t.Fatalf("line %d: detail %q", rec.Line, r.Detail)
	}
}

func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReads holds what every format makes of good and bad text. Each text is
// also read in pieces, and in disguises that must not matter.
func TestReads(t *testing.T) {
	for _, test := range slices.Concat(linesTests(), blocksTests(), gridTests(), csvTests()) {
		t.Run(test.opts.Format+"/"+test.name, func(t *testing.T) {
			shown, raws, err := readAll(t, strings.NewReader(test.text), test.opts)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(shown, test.want) {
				t.Errorf("records\n%q, want\n%q", shown, test.want)
			}
			if !slices.Equal(raws, test.raws) {
				t.Errorf("raw texts\n%q, want\n%q", raws, test.raws)
			}
			for name, in := range pieces(test.text) {
				again, rawsAgain, err := readAll(t, in, test.opts)
				if err != nil || !slices.Equal(again, shown) || !slices.Equal(rawsAgain, raws) {
					t.Errorf("read as %s: %q, %q, %v", name, again, rawsAgain, err)
				}
			}
			for name, text := range disguises(test.text, test.opts.Format, raws == nil) {
				again, _, err := readAll(t, strings.NewReader(text), test.opts)
				if err != nil || !slices.Equal(again, shown) {
					t.Errorf("with %s: %q, %v", name, again, err)
				}
			}
		})
	}
}

type readTest struct {
	name string
	opts corpus.Options
	text string
	want []string // as show writes them
	raws []string // of the rejects
}

// pieces returns readers of the same text that give it out differently.
func pieces(text string) map[string]io.Reader {
	return map[string]io.Reader{
		"single bytes":        iotest.OneByteReader(strings.NewReader(text)),
		"halves":              iotest.HalfReader(strings.NewReader(text)),
		"data with error":     iotest.DataErrReader(strings.NewReader(text)),
		"bytes, late and EOF": iotest.DataErrReader(iotest.OneByteReader(strings.NewReader(text))),
	}
}

// disguises returns texts with the same records. How the text ends is a part of
// the reason of a bad record, so only the ends of good texts change.
func disguises(text, format string, good bool) map[string]string {
	d := map[string]string{
		"byte order mark": "\ufeff" + text,
		"CRLF":            strings.ReplaceAll(text, "\n", "\r\n"),
	}
	if !slices.Contains([]string{corpus.CSV, corpus.TSV}, format) { // there they belong to the last field
		d["trailing blanks"] = strings.ReplaceAll(text, "\n", " \t \n")
	}
	if good {
		d["blank lines at the end"] = text + "\n \t\r\n  "
		d["no last line end"] = strings.TrimRight(text, "\n")
	}
	return d
}

func TestEmpty(t *testing.T) {
	for _, format := range corpus.Formats() {
		for _, text := range []string{"", "\n", "\ufeff", "\ufeff\r\n", " \t\r\n\n  ", strings.Repeat("\n", 300_000), gzipped(""), gzipped("\n"), zstded("")} {
			if (format == corpus.NPY || format == corpus.Parquet) && text != "" { // where nothing is blank
				continue
			}
			shown, _, err := readAll(t, strings.NewReader(text), corpus.Options{Format: format})
			if err != nil || shown != nil {
				t.Errorf("%s, %.20q: %q, %v", format, text, shown, err)
			}
		}
	}
}

// TestUnreadable: what cannot be read at all fails in Open.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	good := writeFile(t, "good.txt", "01/10\n")
	for _, test := range []struct {
		paths []string
		opts  corpus.Options
		in    string
		want  string // part of the error
	}{
		{nil, corpus.Options{}, "", "no corpus named"},
		{[]string{"-", "-"}, corpus.Options{}, "", "named twice"},
		{[]string{good, dir}, corpus.Options{}, "", dir + ": no files in this folder"},
		{[]string{good, filepath.Join(dir, "none")}, corpus.Options{}, "", "none: no such file"},
		{[]string{good}, corpus.Options{Format: "tex"}, "", `format "tex": want auto, lines, blocks, grid`},
		{[]string{good}, corpus.Options{Size: puzzle.Size{Rows: 65, Cols: 65}}, "", "size 65x65"},
		{[]string{good}, corpus.Options{MaxLine: -1}, "", "-1 bytes"},
		{[]string{"-"}, corpus.Options{Format: corpus.Lines}, "\n0101\n", "read -, line 2: lines of 4 cells do not show their size: give --size"},
		{[]string{"-"}, corpus.Options{}, "\x1f\x8b", "read -: the gzip file is cut off: unexpected EOF"},
	} {
		c, err := corpus.Open(t.Context(), test.paths, test.opts, strings.NewReader(test.in))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q %+v: %v, %v, want %s", test.paths, test.opts, c, err, test.want)
		}
	}
	_, _, err := readAll(t, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("01/10\n01/10\n"))), corpus.Options{Format: corpus.Lines})
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a source that fails: %v", err)
	}
	if _, _, err := readAll(t, stuck{}, corpus.Options{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that gives nothing: %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestLongLines: the limit is exact, counts neither LF nor CRLF, and a line
// beyond it costs no memory.
func TestLongLines(t *testing.T) {
	size := puzzle.Size{Rows: 2, Cols: 4}
	opts := corpus.Options{Format: corpus.Lines, Size: size, MaxLine: 8}
	for _, eol := range []string{"\n", "\r\n"} {
		text := "01010101" + eol + "01010101 " + eol + strings.Repeat("1", 9) + eol + strings.Repeat(" ", 9) + eol + "1111/0000" + eol + "11110000"
		for name, in := range pieces(text) {
			shown, raws, err := readAll(t, in, opts)
			want := []string{"1 2x4 01010101", "2 line_too_long line 2 has more than 8 bytes", "3 line_too_long line 3 has more than 8 bytes",
				"4 line_too_long line 4 has more than 8 bytes", "5 line_too_long line 5 has more than 8 bytes", "6 2x4 11110000"}
			if err != nil || !slices.Equal(shown, want) || len(raws) != 4 {
				t.Errorf("%s: %q %q, %v", name, shown, raws, err)
			}
		}
	}
	const huge = 64 << 20
	in := io.MultiReader(strings.NewReader("11110000\n"), io.LimitReader(&repeat{text: []byte("10")}, huge), strings.NewReader("\n00001111\n"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	shown, raws, err := readAll(t, in, corpus.Options{Format: corpus.Lines, Size: size})
	runtime.ReadMemStats(&after)
	want := []string{"1 2x4 11110000", "2 line_too_long line 2 has more than 65536 bytes", "3 2x4 00001111"}
	if err != nil || !slices.Equal(shown, want) || raws[0] != strings.Repeat("10", 128) {
		t.Errorf("%q %q, %v", shown, raws, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes allocated for a line of %d", grown, huge)
	}
}

// TestNoAllocation: a board costs no memory.
func TestNoAllocation(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, l := range []layout{{format: corpus.Lines, bar: "/"}, {format: corpus.Blocks, gap: " "}, {format: corpus.Grid, gap: " "}} {
		var text []byte
		for range 1000 {
			text = l.append(text, randomBoard(rng, puzzle.Size{Rows: 1 + rng.IntN(5), Cols: 2 + rng.IntN(20)}))
		}
		c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: l.format}, &repeat{text: text})
		if err != nil {
			t.Fatal(err)
		}
		var rec corpus.Record
		next := func() {
			if err := c.Next(&rec); err != nil || rec.Rejected() {
				t.Fatal(show(&rec), err)
			}
		}
		for range 1000 { // until the largest board was there
			next()
		}
		if n := testing.AllocsPerRun(5000, next); n != 0 {
			t.Errorf("%s: %v allocations per board", l.format, n)
		}
	}
}

// repeat is a source without end.
type repeat struct {
	text []byte
	at   int
}

func (r *repeat) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], r.text[r.at:])
		n, r.at = n+k, (r.at+k)%len(r.text)
	}
	return n, nil
}

// TestRecordMemory: a record stays as it is while another one is read.
func TestRecordMemory(t *testing.T) {
	c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{}, bytes.NewReader([]byte("01/10\n11/00\nx/y\n11/11\n")))
	if err != nil {
		t.Fatal(err)
	}
	recs := make([]corpus.Record, 4)
	for i := range recs {
		if err := c.Next(&recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"1 2x2 0110", "2 2x2 1100", "3 unknown_symbol", "4 2x2 1111"} {
		if got := show(&recs[i]); !strings.HasPrefix(got, want) {
			t.Errorf("record %d: %s, want %s", i, got, want)
		}
	}
	if raw := string(recs[2].Reject.Raw); raw != "x/y" {
		t.Errorf("raw text %q", raw)
	}
}
