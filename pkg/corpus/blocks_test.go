package corpus_test

import (
	"strings"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func blocksTests() []readTest {
	sizeless := corpus.Options{Format: corpus.Blocks}
	sized := corpus.Options{Format: corpus.Blocks, Size: puzzle.Size{Rows: 2, Cols: 3}}
	fridge := corpus.Options{Format: corpus.Blocks, Size: puzzle.Size{Rows: 4, Cols: 4}, Symbols: puzzle.Symbols{On: '+', Off: '-'}}
	short := corpus.Options{Format: corpus.Blocks, MaxLine: 8}
	return []readTest{
		{"mixed sizes", sizeless, "01\n10\n\n110\n001\n\n1\n\n10101\n", []string{"1 2x2 0110", "4 2x3 110001", "7 1x1 1", "9 1x5 10101"}, nil},
		{"blank lines", sizeless, "\n\n01\n10\n\n \t\n\n11\n11\n\n\n", []string{"3 2x2 0110", "8 2x2 1111"}, nil},
		{"blanks between cells", sizeless, "0 1\n 1\t 0\n", []string{"1 2x2 0110"}, nil},
		{"sized, without blank lines", sized, "010\n110\n111\n000\n", []string{"1 2x3 010110", "3 2x3 111000"}, nil},
		{"sized, with blank lines", sized, "010\n110\n\n111\n000\n", []string{"1 2x3 010110", "4 2x3 111000"}, nil},
		{"POJ 2965", fridge, "-+--\n----\n----\n-+--\n", []string{"1 4x4 0100000000000100"}, nil},
		{"stored by columns", sizeless, "10000000000000000000\n00000000000000000001\n", []string{"1 2x20 1000000000000000000000000000000000000001"}, nil},
		{"ragged row", sizeless, "01\n1\n\n11\n00\n", []string{"1 ragged_row row 2 has 1 cells, want 2", "4 2x2 1100"}, []string{"01\n1"}},
		{"unknown symbol", sizeless, "01\n1x\n11\n\n11\n00\n", []string{"1 unknown_symbol line 2, column 2: 'x'" + noCell, "5 2x2 1100"}, []string{"01\n1x\n11"}},
		{"bars", sizeless, "01/10\n01/10\n\n1\n", []string{"1 unknown_symbol line 1, column 3: '/'" + noCell, "4 1x1 1"}, []string{"01/10\n01/10"}},
		{"first fault counts", sizeless, "01\n1\nx\n\n", []string{"1 ragged_row row 2 has 1 cells, want 2"}, []string{"01\n1\nx"}},
		{"sized, missing row", sized, "010\n\n111\n000\n", []string{"1 ragged_row 1 rows, want 2", "3 2x3 111000"}, []string{"010"}},
		{"sized, extra row", sized, "010\n110\n000\n\n111\n000\n", []string{"1 2x3 010110", "3 ragged_row 1 rows, want 2", "5 2x3 111000"}, []string{"000"}},
		{"sized, bad rows without blank lines", sized, "01x\n110\n0000\n111\n111\n000\n", []string{
			"1 unknown_symbol line 1, column 3: 'x'" + noCell,
			"3 ragged_row row 1 has 4 cells, want 3",
			"5 2x3 111000",
		}, []string{"01x\n110", "0000\n111"}},
		{"sized, truncated", sized, "010\n110\n111\n", []string{"1 2x3 010110", "3 truncated the source ends after 1 of the 2 rows"}, []string{"111"}},
		{"sized, truncated in a row", sized, "010\n11", []string{"1 truncated the source ends after 2 of the 3 cells of row 2"}, []string{"010\n11"}},
		{"truncated in a row", sizeless, "010\n11", []string{"1 truncated the source ends after 2 of the 3 cells of row 2"}, []string{"010\n11"}},
		{"too many rows", sizeless, strings.Repeat("1\n", 257) + "\n1\n", []string{
			"1 too_large size 257x1: the shorter side may have at most 64 cells and the longer at most 256", "259 1x1 1",
		}, []string{strings.Repeat("1\n", 128)}},
		{"too many cells", sizeless, strings.Repeat(strings.Repeat("0", 1000)+"\n", 100) + "\n1\n", []string{"1 too_large more than 16384 cells", "102 1x1 1"}, []string{strings.Repeat("0", 256)}},
		{"too large", sizeless, strings.Repeat(strings.Repeat("0", 65)+"\n", 65) + "\n1\n", []string{
			"1 too_large size 65x65: the shorter side may have at most 64 cells and the longer at most 256", "67 1x1 1",
		}, []string{strings.Repeat(strings.Repeat("0", 65)+"\n", 65)[:256]}},
		{"long line", short, "01\n0000000010\n10\n\n11\n11\n", []string{"1 line_too_long line 2 has more than 8 bytes", "5 2x2 1111"}, []string{"01\n0000000010\n10"}},
	}
}
