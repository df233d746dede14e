package corpus_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func csvTests() []readTest {
	plain := corpus.Options{Format: corpus.CSV}
	sized := corpus.Options{Format: corpus.CSV, Size: puzzle.Size{Rows: 2, Cols: 3}}
	byColumns := corpus.Options{Format: corpus.CSV, Size: puzzle.Size{Rows: 2, Cols: 3}, ColumnMajor: true}
	tabs := corpus.Options{Format: corpus.TSV}
	short := corpus.Options{Format: corpus.CSV, MaxLine: 16}
	kept := corpus.Options{Format: corpus.CSV, Keep: []string{"level", "author"}}
	renamed := corpus.Options{Format: corpus.CSV, Fields: puzzle.Fields{Board: "grid", ID: "key", Rows: "h", Cols: "w"}}
	return []readTest{
		{"boards alone", plain, "board\n01/10\n1/0/1\n", []string{"2 2x2 0110 [-]", "3 3x1 101 [-]"}, nil},
		{"ids", plain, "id,board\na,01/10\n,11/00\n\"b,c\",11/11\n", []string{"2 2x2 0110 [a]", "3 2x2 1100 [-]", "4 2x2 1111 [b,c]"}, nil},
		{"given size", sized, "board,id\n010110,7\n010/110,8\n01/10,9\n01011,10\n", []string{
			"2 2x3 010110 [7]", "3 2x3 010110 [8]", "4 bad_size board of 2x2, want 2x3", "5 ragged_row 5 cells, want 6 for 2x3"}, []string{"01/10,9", "01011,10"}},
		{"column by column", byColumns, "board\n011001\n010/110\n", []string{"2 2x3 010101 [-]", "3 2x3 010110 [-]"}, nil},
		{"sizes of their own", plain, "rows,cols,board\n2,3,010110\n3,2,010110\n, ,01/10\n2,,01/10\nx,2,01/10\n65,65,0\n2,2,011\n0,0,\n", []string{
			"2 2x3 010110 [-]", "3 3x2 010110 [-]", "4 2x2 0110 [-]", `5 bad_size "2" rows and "" columns, want two numbers`,
			`6 bad_size "x" rows and "2" columns, want two numbers`,
			"7 too_large size 65x65: the shorter side may have at most 64 cells and the longer at most 256", "8 ragged_row 3 cells, want 4 for 2x2",
			"9 bad_size size 0x0: a board has at least 1 row and 1 column"}, []string{"2,,01/10", "x,2,01/10", "65,65,0", "2,2,011", "0,0,"}},
		{"quotes", plain, "\"id\",\"board\"\n\"a\"\"b\",\"01/10\"\n\"two\nlines\",\"01\n10\"\n\"\",\"0110\n\"\n", []string{
			"2 2x2 0110 [a\"b]", "3 2x2 0110 [two\nlines]", "6 1x4 0110 [-]"}, nil},
		{"bad quotes", plain, "id,board\na\"b,01/10\n\"a\"b,01/10\n\"a\",01/10\n\"a\n\n", []string{
			"2 bad_syntax line 2: a quote within a field that does not begin with one", "3 bad_syntax line 3: text behind a closing quote",
			"4 2x2 0110 [a]", "5 truncated the source ends within a quoted field"}, []string{"a\"b,01/10", "\"a\"b,01/10", "\"a\n"}},
		{"a quote that is never closed", short, "id,board\na,01/10\n\"b,01/10\nc,01/10\nd,11/11\n", []string{
			"2 2x2 0110 [a]", "3 line_too_long line 5: a quoted field makes the record longer than 16 bytes"}, []string{"\"b,01/10\nc,01/10\nd,11/11"}},
		{"other numbers of fields", plain, "id,board\na\nb,01/10\nc,01/10,\nd", []string{
			"2 bad_field 1 fields, want 2 as in the header", "3 2x2 0110 [b]", "4 bad_field 3 fields, want 2 as in the header", "5 truncated the source ends after 1 of the 2 fields"},
			[]string{"a", "c,01/10,", "d"}},
		{"bad boards", plain, "id,board\na,\nb,01/1x\nc,0110\nd,01/1\n", []string{
			"2 bad_field a board without cells", "3 unknown_symbol byte 5 of the board: 'x'" + noCell,
			"4 bad_size 4 cells do not show the size of their board: give --size ROWSxCOLS, rows and cols, or a / between rows", "5 ragged_row row 2 has 1 cells, want 2"},
			[]string{"a,", "b,01/1x", "c,0110", "d,01/1"}},
		{"kept fields", kept, "author,board,level,x\n\u00e9\xff,01/10,3,\n,11/11,,\n", []string{"2 2x2 0110 [-|3|\u00e9\ufffd]", "3 2x2 1111 [-|-|-]"}, nil},
		{"names of their own", renamed, "key,w,h,grid\n1,2,3,010110\n", []string{"2 3x2 010110 [1]"}, nil},
		{"long labels", kept, "author,board,level\n" + strings.Repeat("a", 1025) + ",01/10,1\n" + strings.Repeat("b", 1024) + ",11/11,2\n", []string{
			`2 bad_field field "author" has 1025 bytes, want at most 1024`, "3 2x2 1111 [-|2|" + strings.Repeat("b", 1024) + "]"}, []string{strings.Repeat("a", 256)}},
		{"tabs", tabs, "id\tboard\na,b\t01/10\n\"c\td\"\t11/11\n", []string{"2 2x2 0110 [a,b]", "3 2x2 1111 [c\td]"}, nil},
	}
}

// TestCSVHeader: a header that does not tell where the boards are is an error
// that says what to do.
func TestCSVHeader(t *testing.T) {
	for _, test := range []struct {
		text, want string
		opts       corpus.Options
	}{
		{"a,b\n1,2\n", `line 1: no column "board" among "a b": say which one has the boards with --fields board=NAME`, corpus.Options{}},
		{"\n\nboard,board\n", `line 3: two columns are called "board"`, corpus.Options{}},
		{"board\n", `no column "level" to keep among "board"`, corpus.Options{Keep: []string{"level"}}},
		{"board\n", `no column "key", which --fields names, among "board"`, corpus.Options{Fields: puzzle.Fields{ID: "key"}}},
		{"board,\"a\n", "header: the source ends within a quoted field", corpus.Options{}},
		{"board" + strings.Repeat(",", 1024) + "\n", "header: 1025 columns, want at most 1024", corpus.Options{}},
	} {
		test.opts.Format = corpus.CSV
		if _, _, err := readAll(t, strings.NewReader(test.text), test.opts); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: %v, want %s", test.text, err, test.want)
		}
	}
}

// FuzzCSV: what encoding/csv reads as records of one width, we read with the same
// fields; and for every text holds what holds for every format.
func FuzzCSV(f *testing.F) {
	for _, test := range csvTests() {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		opts := corpus.Options{Format: corpus.CSV, Keep: []string{"level"}, MaxLine: fuzzMaxLine}
		shown, _, err := readAll(t, strings.NewReader(text), opts)
		pieced, _, piecedErr := readAll(t, &oneByte{text}, opts)
		if fmt.Sprint(err) != fmt.Sprint(piecedErr) || !slices.Equal(shown, pieced) {
			t.Errorf("%q %v, but in single bytes %q %v", shown, err, pieced, piecedErr)
		}
	})
}

// oneByte gives out a byte at a time.
type oneByte struct{ text string }

func (o *oneByte) Read(p []byte) (int, error) {
	if o.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(1, len(p))], o.text)
	o.text = o.text[n:]
	return n, nil
}

// TestCSVAgainstStandard writes random fields with encoding/csv, which knows
// nothing of ours, and reads them back.
func TestCSVAgainstStandard(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, comma := range []rune{',', '\t'} {
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		w.Comma = comma
		errs := []error{w.Write([]string{"id", "level", "board"})}
		var want []string
		for range 300 {
			label := func() string {
				b := make([]byte, 1+rng.IntN(5))
				for i := range b {
					b[i] = "ab,\"\n \t/"[rng.IntN(8)]
				}
				return string(b)
			}
			row := []string{label(), label(), "01/10"}
			errs = append(errs, w.Write(row))
			want = append(want, fmt.Sprintf("2x2 0110 [%s|%s]", row[0], row[1]))
		}
		if w.Flush(); errors.Join(append(errs, w.Error())...) != nil {
			t.Fatal(errs)
		}
		format := map[rune]string{',': corpus.CSV, '\t': corpus.TSV}[comma]
		shown, _, err := readAll(t, &text, corpus.Options{Format: format, Keep: []string{"level"}})
		for i := range shown {
			_, shown[i], _ = strings.Cut(shown[i], " ")
		}
		if err != nil || !slices.Equal(shown, want) {
			t.Errorf("%s: %d records, want %d, %v", format, len(shown), len(want), err)
		}
	}
}
