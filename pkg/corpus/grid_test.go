package corpus_test

import (
	"strings"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func gridTests() []readTest {
	opts := corpus.Options{Format: corpus.Grid}
	sized := corpus.Options{Format: corpus.Grid, Size: puzzle.Size{Rows: 1, Cols: 3}}
	letters := corpus.Options{Format: corpus.Grid, Symbols: puzzle.Symbols{On: 'b', Off: 'w'}}
	const good = "1 3\n0 1 1\n"
	return []readTest{
		{"POJ 3279", opts, "4 4\n1 0 0 1\n0 1 1 0\n0 1 1 0\n1 0 0 1\n", []string{"1 4x4 1001011001101001"}, nil},
		{"several", opts, "1 2\n0 1\n2 1\n1\n0\n1 1\n1\n1 1\n0\n", []string{"1 1x2 01", "3 2x1 10", "6 1x1 1", "8 1x1 0"}, nil},
		{"blank lines", opts, "\n2 2\n\n0 1\n \t\n1 0\n\n\n" + good, []string{"2 2x2 0110", "9 1x3 011"}, nil},
		{"blanks", opts, " 2\t  2\n  0\t1\n1   0\n", []string{"1 2x2 0110"}, nil},
		{"rows without blanks", opts, "2 3\n010\n 110\n", []string{"1 2x3 010110"}, nil},
		{"numbers with zeros in front", opts, "02 003\n010\n110\n", []string{"1 2x3 010110"}, nil},
		{"symbols", letters, "1 1\nb\n2 2\nb w\nwb\n", []string{"1 1x1 1", "3 2x2 1001"}, nil},
		{"size given", sized, "1 3\n0 1 1\n1 2\n0 1\n" + good, []string{"1 1x3 011", "3 bad_size board of 1x2, want 1x3", "5 1x3 011"}, []string{"1 2\n0 1"}},
		{"stored by columns", opts, "1 17\n0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1\n", []string{"1 1x17 00000000000000001"}, nil},
		{"unknown number", opts, "2 2\n0 2\n1 1\n" + good, []string{"1 unknown_symbol line 2, column 3: '2'" + noCell, "4 1x3 011"}, []string{"2 2\n0 2\n1 1"}},
		{"number of two digits", opts, "1 4\n10 0 1\n" + good, []string{"1 unknown_symbol line 2, column 1: numbers of several digits in a row of cells", "3 1x3 011"}, []string{"1 4\n10 0 1"}},
		{"ragged rows", opts, "2 3\n0 1\n0 1 1\n2 2\n0 1 1\n0 1\n" + good, []string{
			"1 ragged_row row 1 has 2 cells, want 3", "4 ragged_row row 1 has 3 cells, want 2", "7 1x3 011",
		}, []string{"2 3\n0 1\n0 1 1", "2 2\n0 1 1\n0 1"}},
		{"missing row", opts, "3 3\n0 1 1\n0 1 1\n" + good, []string{"1 ragged_row 2 rows, want 3", "4 1x3 011"}, []string{"3 3\n0 1 1\n0 1 1"}},
		{"missing rows of two cells", opts, "3 2\n1 1\n" + good, []string{"1 ragged_row 1 rows, want 3", "3 1x3 011"}, []string{"3 2\n1 1"}},
		{"extra row", opts, "1 3\n0 1 1\n1 1 1\n" + good, []string{"1 1x3 011", "3 bad_size want a header, two numbers ROWS COLS, found \"1 1 1\"", "4 1x3 011"}, []string{"1 1 1"}},
		{"no header", opts, "hello\n0 1\n\n1\n" + good, []string{"1 bad_size want a header, two numbers ROWS COLS, found \"hello\"", "5 1x3 011"}, []string{"hello\n0 1\n1"}},
		{"no numbers in the header", opts, "3\n3 x\n-1 3\n1.5 2\n3 3 3\n" + good, []string{"1 bad_size want a header, two numbers ROWS COLS, found \"3\"", "6 1x3 011"}, []string{"3\n3 x\n-1 3\n1.5 2\n3 3 3"}},
		{"zero sizes", opts, "0 0\n" + good + "0 5\n2 0\n" + good, []string{
			"1 bad_size size 0x0: a board has at least 1 row and 1 column", "2 1x3 011",
			"4 bad_size size 0x5: a board has at least 1 row and 1 column",
			"5 bad_size size 2x0: a board has at least 1 row and 1 column", "6 1x3 011",
		}, []string{"0 0", "0 5", "2 0"}},
		{"too large", opts, "65 65\n" + strings.Repeat(strings.Repeat("0 ", 65)+"\n", 65) + good, []string{
			"1 too_large size 65x65: the shorter side may have at most 64 cells and the longer at most 256", "67 1x3 011",
		}, []string{("65 65\n" + strings.Repeat(strings.Repeat("0 ", 65)+"\n", 65))[:256]}},
		{"absurd headers", opts, "99999999999999999999999 3\n0 1 1\n" + good + "999999999 2\n1 1\n" + good, []string{
			"1 too_large size 1000000000x3: the shorter side may have at most 64 cells and the longer at most 256", "3 1x3 011",
			"5 too_large size 999999999x2: the shorter side may have at most 64 cells and the longer at most 256", "7 1x3 011",
		}, []string{"99999999999999999999999 3\n0 1 1", "999999999 2\n1 1"}},
		{"absurd header at the end", opts, good + "999999999 2\n1 1\n1 1\n", []string{
			"1 1x3 011",
			"3 too_large size 999999999x2: the shorter side may have at most 64 cells and the longer at most 256",
		}, []string{"999999999 2\n1 1\n1 1"}},
		{"truncated", opts, good + "3 3\n0 1 1\n\n", []string{"1 1x3 011", "3 truncated the source ends after 1 of the 3 rows"}, []string{"3 3\n0 1 1"}},
		{"truncated header", opts, good + "3", []string{"1 1x3 011", "3 bad_size want a header, two numbers ROWS COLS, found \"3\""}, []string{"3"}},
		{"truncated in a row", opts, "2 3\n0 1 1\n0 1", []string{"1 truncated the source ends after 2 of the 3 cells of row 2"}, []string{"2 3\n0 1 1\n0 1"}},
		{"long lines", corpus.Options{Format: corpus.Grid, MaxLine: 8}, "2 2\n0      1 1\n0 1\n" + good + "1       1\n" + good, []string{
			"1 line_too_long line 2 has more than 8 bytes", "4 1x3 011", "6 line_too_long line 6 has more than 8 bytes", "7 1x3 011",
		}, []string{"2 2\n0      1 1\n0 1", "1       1"}},
	}
}
