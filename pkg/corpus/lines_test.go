package corpus_test

import (
	"strings"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

const noCell = " is not a cell, want 1 or 0"

func linesTests() []readTest {
	sizeless := corpus.Options{Format: corpus.Lines}
	sized := corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 2, Cols: 3}}
	letters := corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 2, Cols: 2}, Symbols: puzzle.Symbols{On: 'b', Off: 'w'}}
	wide := corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 1, Cols: 20}}
	return []readTest{
		{"cells", sized, "010110\n111000\n", []string{"1 2x3 010110", "2 2x3 111000"}, nil},
		{"column by column", corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 2, Cols: 3}, ColumnMajor: true}, "010110\n111/000\n", []string{"1 2x3 001110", "2 2x3 111000"}, nil},
		{"bars", sizeless, "01/10\n110|001\n1/0/1\n", []string{"1 2x2 0110", "2 2x3 110001", "3 3x1 101"}, nil},
		{"bar behind the last row", sizeless, "01/10/\n01010/\n1|\n", []string{"1 2x2 0110", "2 1x5 01010", "3 1x1 1"}, nil},
		{"bars and size", sized, "010/110\n010110\n010|110|\n", []string{"1 2x3 010110", "2 2x3 010110", "3 2x3 010110"}, nil},
		{"blank lines", sized, "\n\n010110\n \t\n111000\n", []string{"3 2x3 010110", "5 2x3 111000"}, nil},
		{"blanks between cells", sized, "0 1 0 1 1 0\n  010\t  110\n0 10 | 1\t10\n", []string{"1 2x3 010110", "2 2x3 010110", "3 2x3 010110"}, nil},
		{"symbols", letters, "bwwb\nbb/ww\n", []string{"1 2x2 1001", "2 2x2 1100"}, nil},
		{"stored by columns", wide, "10000000000000000001\n", []string{"1 1x20 10000000000000000001"}, nil},
		{"too many cells", sized, "0101100\n010110\n", []string{"1 ragged_row 7 cells, want 6 for 2x3", "2 2x3 010110"}, []string{"0101100"}},
		{"too few cells", sized, "01011\n010110\n", []string{"1 ragged_row 5 cells, want 6 for 2x3", "2 2x3 010110"}, []string{"01011"}},
		{"unknown symbols", sized, "0102 10\nO10110\n\x00\n\xff00000\n01011é\n010110,\n1001 -1\n", []string{
			"1 unknown_symbol line 1, column 4: '2'" + noCell,
			"2 unknown_symbol line 2, column 1: 'O'" + noCell,
			"3 unknown_symbol line 3, column 1: '\\x00'" + noCell,
			"4 unknown_symbol line 4, column 1: byte 0xff" + noCell,
			"5 unknown_symbol line 5, column 6: 'é'" + noCell,
			"6 unknown_symbol line 6, column 7: ','" + noCell,
			"7 unknown_symbol line 7, column 6: '-'" + noCell,
		}, []string{"0102 10", "O10110", "\x00", "\xff00000", "01011é", "010110,", "1001 -1"}},
		{"digits where letters are", letters, "0110\n", []string{"1 unknown_symbol line 1, column 1: '0' is not a cell, want b (1) or w (0)"}, []string{"0110"}},
		{"ragged rows", sizeless, "01/1\n01//10\n/01\n01/100\n01/10\n", []string{
			"1 ragged_row row 2 has 1 cells, want 2",
			"2 ragged_row row 2 has 0 cells, want 2",
			"3 ragged_row row 2 has 2 cells, want 0",
			"4 ragged_row row 2 has 3 cells, want 2",
			"5 2x2 0110",
		}, []string{"01/1", "01//10", "/01", "01/100"}},
		{"no cells", sizeless, "/\n|/\n01/10\n", []string{
			"1 bad_size size 1x0: a board has at least 1 row and 1 column",
			"2 bad_size size 2x0: a board has at least 1 row and 1 column",
			"3 2x2 0110",
		}, []string{"/", "|/"}},
		{"other size", sized, "01/10/11\n010/110\n", []string{"1 bad_size board of 3x2, want 2x3", "2 2x3 010110"}, []string{"01/10/11"}},
		{"size not shown", sizeless, "01/10\n0110\n", []string{
			"1 2x2 0110",
			"2 bad_size a line of 4 cells does not show its size: give --size ROWSxCOLS, or put a / between rows",
		}, []string{"0110"}},
		{"too large", sizeless, strings.Repeat("0", 257) + "/\n" + strings.Repeat(strings.Repeat("0", 65)+"/", 65) + "\n" + strings.Repeat("1", 16385) + "\n" + strings.Repeat("1", 256) + "/\n", []string{
			"1 too_large size 1x257: the shorter side may have at most 64 cells and the longer at most 256",
			"2 too_large size 65x65: the shorter side may have at most 64 cells and the longer at most 256",
			"3 too_large more than 16384 cells",
			"4 1x256 " + strings.Repeat("1", 256),
		}, []string{strings.Repeat("0", 256), strings.Repeat(strings.Repeat("0", 65)+"/", 65)[:256], strings.Repeat("1", 256)}},
		{"truncated", sized, "010110\n0101", []string{"1 2x3 010110", "2 truncated the source ends after 4 of the 6 cells"}, []string{"0101"}},
		{"truncated in a row", sizeless, "01/1", []string{"1 truncated the source ends after 1 of the 2 cells of row 2"}, []string{"01/1"}},
		{"truncated between rows", sized, "010/", []string{"1 truncated the source ends after 1 of the 2 rows"}, []string{"010/"}},
		{"too long at the end, not truncated", sized, "0101101", []string{"1 ragged_row 7 cells, want 6 for 2x3"}, []string{"0101101"}},
		{"blanks kept in the raw text", sized, "  01\t0 x \n", []string{"1 unknown_symbol line 1, column 8: 'x'" + noCell}, []string{"  01\t0 x "}},
		{"old Mac line ends", sized, "010110\r111000\n", []string{"1 unknown_symbol line 1, column 7: '\\r'" + noCell}, []string{"010110\r111000"}},
	}
}
