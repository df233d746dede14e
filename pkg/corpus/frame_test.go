package corpus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func frameTests() []readTest {
	opts := func(format string, size puzzle.Size, frame puzzle.Frame) corpus.Options {
		return corpus.Options{Format: format, Size: size, Frame: frame}
	}
	size := puzzle.Size{Rows: 2, Cols: 3}
	counted := opts(corpus.Blocks, size, puzzle.Frame{Count: true})
	named := opts(corpus.Blocks, size, puzzle.Frame{Name: true, End: "end"})
	squares := opts(corpus.Grid, puzzle.Size{}, puzzle.Frame{Count: true, Square: true})
	squares.Symbols = puzzle.Symbols{On: 'w', Off: 'y'}
	sizes := opts(corpus.Grid, puzzle.Size{}, puzzle.Frame{End: "0 0"})
	lines := opts(corpus.Lines, size, puzzle.Frame{Count: true, Name: true})
	return []readTest{
		{"a count", counted, "2\n0 1 0\n1 1 0\n111\n000\n", []string{"2 2x3 010110", "4 2x3 111000"}, nil},
		{"inputs one after the other", counted, "1\n010\n110\n0\n\n2\n111\n000\n\n000\n111\n", []string{"2 2x3 010110", "7 2x3 111000", "10 2x3 000111"}, nil},
		{"too few boards", counted, "3\n010\n110\n", []string{"2 2x3 010110", "1 truncated 3 boards are announced, and the source ends after 1"}, []string{"3"}},
		{"too many boards", counted, "1\n010\n110\n111\n000\n", []string{
			"2 2x3 010110", `4 bad_syntax want the number of boards, found "111"`, `5 bad_syntax want the number of boards, found "000"`}, []string{"111", "000"}},
		{"no count", counted, "x\n-1\n1 2\n1\n010\n110\n", []string{`1 bad_syntax want the number of boards, found "x"`,
			`2 bad_syntax want the number of boards, found "-1"`, `3 bad_syntax want the number of boards, found "1 2"`, "5 2x3 010110"}, []string{"x", "-1", "1 2"}},
		{"a huge count", counted, "99999999999999999999\n010\n110\n", []string{
			"2 2x3 010110", "1 truncated 1000000000 boards are announced, and the source ends after 1"}, []string{"99999999999999999999"}},
		{"names and an end", named, "a 1\n010\n110\nb\n111\n000\nend\nc\n000\n111\n", []string{"1 2x3 010110 [a 1]", "4 2x3 111000 [b]", "8 2x3 000111 [c]"}, nil},
		{"a row is missing", named, "a\n010\nb\n111\n000\nend\n", []string{"1 ragged_row 1 rows, want 2", "3 2x3 111000 [b]"}, []string{"010"}},
		{"a row too many", named, "a\n010\n110\n011\nb\n111\n000\nend\n", []string{
			"1 2x3 010110 [a]", `4 bad_syntax want a name, found "011"`, "5 2x3 111000 [b]"}, []string{"011"}},
		{"a bad cell", named, "a\n010\n1x0\nb\n111\n000\nend\n", []string{"1 ragged_row 1 rows, want 2", "3 ragged_row 0 rows, want 2", "4 2x3 111000 [b]"}, nil},
		{"a name alone", named, "a\n010\n110\nb\n", []string{"1 2x3 010110 [a]", "4 truncated the source ends behind a name"}, []string{"b"}},
		{"squares", squares, "3\n2\nwy\nyy\n1\nw\n3\nyyy\nyyy\nyyw\n", []string{"2 2x2 1000", "5 1x1 1", "7 3x3 000000001"}, nil},
		{"a row of a square is missing", squares, "2\n2\nwy\n1\nw\n", []string{"2 ragged_row 1 rows, want 2", "4 1x1 1"}, []string{"2\nwy"}},
		{"no square", squares, "1\nx\n", []string{`2 bad_size want a header, the number of rows and columns, found "x"`}, []string{"x"}},
		{"sizes and an end", sizes, "1 2\n0 1\n2 1\n1\n1\n0 0\n1 1\n0\n0 0\n", []string{"1 1x2 01", "3 2x1 11", "7 1x1 0"}, nil},
		{"lines with names", lines, "2\nfirst\n010110\nsecond\n111000\n", []string{"2 2x3 010110 [first]", "4 2x3 111000 [second]"}, nil},
	}
}

// TestFrames reads what frames have in good and bad input.
func TestFrames(t *testing.T) {
	for _, test := range frameTests() {
		c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, test.opts, strings.NewReader(test.text))
		if err != nil {
			t.Fatal(err)
		}
		shown, raws := drain(t, c)
		if !slices.Equal(shown, test.want) || test.raws != nil && !slices.Equal(raws, test.raws) {
			t.Errorf("%s: records\n%q %q, want\n%q %q", test.name, shown, raws, test.want, test.raws)
		}
	}
}

// drain reads a corpus to its end.
func drain(t testing.TB, c *corpus.Corpus) (shown, raws []string) {
	t.Helper()
	var rec corpus.Record
	for c.Next(&rec) == nil {
		checkRecord(t, &rec)
		shown = append(shown, show(&rec))
		if rec.Rejected() {
			raws = append(raws, string(rec.Reject.Raw))
		}
	}
	return shown, raws
}

// TestFrameFormats: a frame is only around formats that have room for it.
func TestFrameFormats(t *testing.T) {
	for _, test := range []struct {
		format string
		frame  puzzle.Frame
		want   string
	}{
		{corpus.Auto, puzzle.Frame{Count: true}, "corpus format auto has no frame: want lines, blocks or grid with it"},
		{corpus.CSV, puzzle.Frame{Name: true}, "corpus format csv has no frame"},
		{corpus.Blocks, puzzle.Frame{Square: true}, "frame square: only the format grid"},
	} {
		_, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: test.format, Frame: test.frame}, strings.NewReader(""))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s with %s: %v", test.format, test.frame, err)
		}
	}
}

// FuzzFrame: whatever is in a frame, all of it is read, and the same in pieces.
func FuzzFrame(f *testing.F) {
	for i, test := range frameTests() {
		f.Add(test.text, uint8(i))
	}
	f.Fuzz(func(t *testing.T, text string, shape uint8) {
		opts := frameTests()[int(shape)%len(frameTests())].opts
		opts.MaxLine = fuzzMaxLine
		read := func(in interface{ Read([]byte) (int, error) }) string {
			c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, opts, in)
			if err != nil {
				return err.Error()
			}
			shown, raws := drain(t, c)
			return fmt.Sprintf("%q %q", shown, raws)
		}
		if whole, pieced := read(strings.NewReader(text)), read(&oneByte{text}); whole != pieced {
			t.Errorf("%s, but in single bytes %s", whole, pieced)
		}
	})
}
