package corpus_test

import (
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func TestAuto(t *testing.T) {
	size := func(rows, cols int) corpus.Options {
		return corpus.Options{Size: puzzle.Size{Rows: rows, Cols: cols}}
	}
	letters := corpus.Options{Symbols: puzzle.Symbols{On: 'b', Off: 'w'}}
	lettersSized := corpus.Options{Symbols: letters.Symbols, Size: puzzle.Size{Rows: 4, Cols: 4}}
	fridge, err := puzzle.ParseRule("fridge")
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	for _, test := range []struct {
		text string
		opts corpus.Options
		want string // the format, or a part of the error
	}{
		// Two numbers.
		{"4 4\n1 0 0 1\n", corpus.Options{}, corpus.Grid},
		{"\n\n\t\n4 4\n", corpus.Options{}, corpus.Grid},
		{"4 4\nhello\n", corpus.Options{}, corpus.Grid},
		{"99999 99999\n", corpus.Options{}, corpus.Grid},
		{"1 1\n0\n", corpus.Options{}, corpus.Grid},
		{"1 1\n0 1\n", corpus.Options{}, corpus.Blocks},
		{"1 1\n\n0 0\n", corpus.Options{}, "do not show their size"},
		{"10 11\n00000000000\n", corpus.Options{}, corpus.Grid},
		{"1 0\n0 1\n", corpus.Options{}, corpus.Blocks},
		{"1 1\nb\n", letters, corpus.Grid},
		{"2 2\n0 1\n1 0\n", size(2, 2), corpus.Grid},
		// Bars.
		{"01/10\n", corpus.Options{}, corpus.Lines},
		{"0 1 | 1 0", corpus.Options{}, corpus.Lines},
		{"01/1x\n", corpus.Options{}, corpus.Lines},
		// The size is given.
		{many(20, "010110"), size(2, 3), corpus.Lines},
		{"0101\n0101\n", size(2, 4), corpus.Blocks},
		{"0 1 0 1\n0101\n", size(2, 4), corpus.Blocks},
		{"01010\n01010\n", size(1, 5), corpus.Lines},
		{"bwwb\nbbwb\nbwwb\nbwww\n", lettersSized, corpus.Blocks},
		{"bwwbbbwbbwwbbwww\n", lettersSized, corpus.Lines},
		{"01011\n", size(2, 3), "its 5 cells are neither a board of 2x3 nor a row of one; give --format"},
		// Cells only.
		{"01\n10\n", corpus.Options{}, corpus.Blocks},
		{"bwwb\nbbwb\nbwwb\nbwww\n", letters, corpus.Blocks},
		{"010\n10\n", corpus.Options{}, corpus.Blocks},
		{"01\n10\n\n11", corpus.Options{}, corpus.Blocks},
		{many(256, "0101"), corpus.Options{}, corpus.Blocks},
		{many(257, "0101"), corpus.Options{}, "lines of 4 cells do not show their size"},
		{many(65, strings.Repeat("0", 65)), corpus.Options{}, "lines of 65 cells do not show their size"},
		{many(17, strings.Repeat("0", 25)), corpus.Options{}, "17 lines of 25 cells are one board of 17x25"},
		{many(17, strings.Repeat("0", 25)), corpus.Options{Rule: fridge}, "lines of 25 cells do not show their size"},
		{many(17, strings.Repeat("0", 25)) + "\n" + many(17, strings.Repeat("0", 25)), corpus.Options{}, corpus.Blocks},
		{many(5, strings.Repeat("0", 25)) + "\n" + many(5, strings.Repeat("0", 25)), corpus.Options{}, corpus.Blocks},
		{many(5, strings.Repeat("0", 25)), corpus.Options{}, "5 lines of 25 cells are one board of 5x25 (give --format blocks) or 5 boards (give --format lines --size"},
		{many(5, strings.Repeat("0", 25)) + "\n\n", corpus.Options{}, "5 lines of 25 cells are one board"},
		{"0101\n", corpus.Options{}, "line 1: lines of 4 cells do not show their size"},
		{many(100_000, "0101101011010110101101011"), corpus.Options{}, "lines of 25 cells do not show their size"},
		// Neither.
		{"\nhello\n", corpus.Options{}, `from line 2: "hello" has neither cells, 1 and 0, nor the size of a grid; give --format`},
		{"bwwb\n", corpus.Options{}, `"bwwb" has neither`},
		{"0101\n", letters, `"0101" has neither cells, b and w`},
		{"\xff\xfe0\x001\x00\n", corpus.Options{}, "it is text in UTF-16"},
		{strings.Repeat("x", 1000), corpus.Options{}, `"` + strings.Repeat("x", 40) + `" has neither`},
		{strings.Repeat("0", 70_000), corpus.Options{}, "more than 65536 bytes"},
		{strings.Repeat(" ", 70_000) + "\n", corpus.Options{}, "more than 65536 bytes"},
	} {
		for name, in := range pieces(test.text) {
			c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, test.opts, in)
			switch {
			case err != nil && !strings.Contains(err.Error(), test.want):
				t.Errorf("%.40q as %s: %v, want %s", test.text, name, err, test.want)
			case err == nil && c.Format() != test.want:
				t.Errorf("%.40q as %s: %s, want %s", test.text, name, c.Format(), test.want)
			}
		}
	}
}

// TestAutoIsStrict: the format told from the first record stays, also for the
// files behind.
func TestAutoIsStrict(t *testing.T) {
	paths := []string{writeFile(t, "blank", "\n"), writeFile(t, "grid", "1 2\n0 1\n"), writeFile(t, "lines", "01/10\n")}
	c, err := corpus.Open(t.Context(), paths, corpus.Options{}, nil)
	if err != nil || c.Format() != corpus.Grid {
		t.Fatal(c, err)
	}
	var rec corpus.Record
	for _, want := range []string{"1 1x2 01", "1 bad_size"} {
		if err := c.Next(&rec); err != nil || !strings.HasPrefix(show(&rec), want) {
			t.Errorf("%s, %v, want %s", show(&rec), err, want)
		}
	}
}
