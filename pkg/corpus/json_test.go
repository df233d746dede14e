package corpus_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func jsonLinesTests() []readTest {
	plain := corpus.Options{Format: corpus.JSONL}
	sized := corpus.Options{Format: corpus.JSONL, Size: puzzle.Size{Rows: 2, Cols: 3}}
	byColumns := corpus.Options{Format: corpus.JSONL, Size: puzzle.Size{Rows: 2, Cols: 3}, ColumnMajor: true}
	letters := corpus.Options{Format: corpus.JSONL, Symbols: puzzle.Symbols{On: '#', Off: '.'}}
	inverted := corpus.Options{Format: corpus.JSONL, Symbols: puzzle.Symbols{On: '0', Off: '1'}}
	kept := corpus.Options{Format: corpus.JSONL, Keep: []string{"level", "tags"}, Fields: puzzle.Fields{Board: "grid", ID: "key"}}
	return []readTest{
		{"rows", plain, "[[0,1],[1,0]]\n[ [ 1 , 1 , 0 ] ]\n", []string{"1 2x2 0110", "2 1x3 110"}, nil},
		{"rows as text", plain, "[\"01\",\"10\"]\n\"01/10\"\n[\"1\"]\n", []string{"1 2x2 0110", "2 2x2 0110", "3 1x1 1"}, nil},
		{"line breaks in a text", plain, `"01\n10"` + "\n" + `"0\u0031|1\u0030"` + "\n", []string{"1 2x2 0110", "2 2x2 0110"}, nil},
		{"flat lists", sized, "[0,1,0,1,1,0]\n[0,1,0]\n[[0,1,0],[1,1,0]]\n[[0,1],[1,1]]\n", []string{
			"1 2x3 010110", "2 ragged_row 3 cells, want 6 for 2x3", "3 2x3 010110", "4 bad_size board of 2x2, want 2x3"}, []string{"[0,1,0]", "[[0,1],[1,1]]"}},
		{"column by column", byColumns, "[0,1,1,0,0,1]\n", []string{"1 2x3 010101"}, nil},
		{"no size", plain, "[0,1]\n", []string{"1 bad_size 2 cells do not show the size of their board: give --size ROWSxCOLS, rows and cols, or a / between rows"}, []string{"[0,1]"}},
		{"booleans and symbols", letters, "[[true,false],[0,1]]\n[[\"#\",\".\"],[\"#.\"]]\n[\"#.\"]\n", []string{"1 2x2 1001", "2 2x2 1010", "3 1x2 10"}, nil},
		{"digits as symbols", inverted, "[[0,1,\"1\",true]]\n", []string{"1 1x4 1001"}, nil},
		{"objects", plain, `{"id":"a","board":[[0,1]]}` + "\n" + `{"board":"01/10","id":7,"x":{"y":[]}}` + "\n" + `{"board":"010110","rows":2,"cols":"3","id":null}` + "\n",
			[]string{"1 1x2 01 [a]", "2 2x2 0110 [7]", "3 2x3 010110 [-]"}, nil},
		{"kept members", kept, `{"key":"a","grid":"1/0","level":1.50,"tags":["x", "y"]}` + "\n" + `{"grid":"1/0"}` + "\n[[1]]\n",
			[]string{"1 2x1 10 [a|1.50|[\"x\", \"y\"]]", "2 2x1 10 [-|-|-]", "3 1x1 1"}, nil},
		{"bad boards", plain, `{"id":1}` + "\n{\"board\":null}\n3\n[]\n[[]]\n[[0,1],[1]]\n[[0,2]]\n[[0,null]]\n[[0],1]\n[[\"01x\"]]\n[\"\"]\n", []string{
			`1 bad_field no member "board": say which one has the boards with --fields board=NAME`, `2 bad_field a board is a list or a string, not "null"`,
			`3 bad_field a board is a list or a string, not "3"`, "4 bad_field a board without cells", "5 bad_field a board without cells",
			"6 ragged_row row 2 has 1 cells, want 2", `7 unknown_symbol "2"` + noCell, `8 unknown_symbol "null"` + noCell, "9 bad_field a list of rows and cells",
			`10 unknown_symbol "\"01x\""` + noCell, `11 unknown_symbol "\"\""` + noCell}, nil},
		{"no JSON", plain, "[[0,1]\n[0,1]]\n{\"board\" 1}\nboard\n\u00a0\n", []string{"1 bad_syntax unexpected end of JSON input",
			"2 bad_syntax invalid character ']' after top-level value", "3 bad_syntax invalid character '1' after object key",
			"4 bad_syntax invalid character 'b' looking for beginning of value", "5 bad_syntax invalid character '\u00c2' looking for beginning of value"}, nil},
		{"cut off", plain, "[[0,1]]\n[[0,", []string{"1 1x2 01", "2 truncated the source ends within the value"}, []string{"[[0,"}},
		{"too deep", plain, strings.Repeat("[", 17) + strings.Repeat("]", 17) + "\n", []string{"1 bad_syntax more than 16 brackets deep"}, nil},
		{"too large", plain, "[[" + strings.Repeat("0,", 16384) + "0]]\n", []string{"1 too_large more than 16384 cells"}, nil},
	}
}

func jsonArrayTests() []readTest {
	plain := corpus.Options{Format: corpus.JSON}
	sized := corpus.Options{Format: corpus.JSON, Size: puzzle.Size{Rows: 2, Cols: 2}}
	short := corpus.Options{Format: corpus.JSON, MaxLine: 16}
	return []readTest{
		{"in one line", plain, `[[[0,1],[1,0]],"11/00",{"board":[[1]],"id":"a,]["}]` + "\n", []string{"1 2x2 0110", "1 2x2 1100", "1 1x1 1 [a,][]"}, nil},
		{"over lines", plain, "\n[\n  [[0,1],\n   [1,0]],\n  \"11/00\"\n]\n", []string{"3 2x2 0110", "5 2x2 1100"}, nil},
		{"flat", sized, "[[0,1,1,0],[1,1,0,0]]", []string{"1 2x2 0110", "1 2x2 1100"}, nil},
		{"nothing", plain, "[ ]", nil, nil},
		{"bad elements", plain, "[\n3,\n[[0,1],[1]],\n[[1]],,\n{\"board\":[[1]},\n\"unclosed,\n[[0]]\n]", []string{
			`2 bad_field a board is a list or a string, not "3"`, "3 ragged_row row 2 has 1 cells, want 2", "4 1x1 1", "4 bad_syntax a comma without an element",
			"5 bad_syntax invalid character '}' after array element", "6 bad_syntax invalid character '\\n' in string literal"}, nil},
		{"too deep", plain, "[" + nested("[", 17, "]") + "," + nested("[", 66, "]") + "," + nested("{\"a\":[", 5000, "]}") + ",[[1]]]", []string{
			"1 bad_syntax more than 16 brackets deep", "1 bad_syntax more than 16 brackets deep", "1 bad_syntax more than 16 brackets deep", "1 1x1 1"}, nil},
		{"too deep and not closed", plain, "[{\"board\":" + strings.Repeat("[", 500) + "},\n[" + strings.Repeat("{", 500) + "],\n[[1]]]", []string{
			"1 bad_syntax more than 16 brackets deep", "2 bad_syntax more than 16 brackets deep", "3 1x1 1"}, nil},
		{"cut off", plain, "[[[0,1]],\n[[1,", []string{"1 1x2 01", "2 truncated the source ends within the array"}, nil},
		{"not closed", plain, "[[[0,1]],\n", []string{"1 1x2 01", "1 truncated the source ends within the array"}, nil},
		{"text behind", plain, "[[[0,1]]] x\n[[1]]\n", []string{"1 1x2 01", "1 bad_syntax text behind the array", "2 bad_syntax text behind the array"}, []string{"x", "[[1]]"}},
		{"long elements", short, "[[[0,1]],[" + strings.Repeat("[0],", 20) + "[0]],[[1]]]", []string{"1 1x2 01", "1 line_too_long an element of more than 16 bytes", "1 1x1 1"}, []string{"[[0],[0],[0],[0]"}},
	}
}

// nested returns a text within brackets within brackets.
func nested(opening string, depth int, closing string) string {
	return strings.Repeat(opening, depth) + strings.Repeat(closing, depth)
}

// TestJSON reads good and bad JSON, whole and in pieces.
func TestJSON(t *testing.T) {
	for _, test := range slices.Concat(jsonLinesTests(), jsonArrayTests()) {
		for name, in := range pieces(test.text) {
			c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, test.opts, in)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			shown, raws := drain(t, c)
			if !slices.Equal(shown, test.want) || test.raws != nil && !slices.Equal(raws, test.raws) {
				t.Errorf("%s as %s: records\n%q %q, want\n%q %q", test.name, name, shown, raws, test.want, test.raws)
			}
		}
	}
	_, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: corpus.JSON}, strings.NewReader("{\"board\":1}\n"))
	if err == nil || !strings.Contains(err.Error(), "for a value a line give --format jsonl") {
		t.Errorf("an object where an array should be: %v", err)
	}
}

// FuzzJSON: what encoding/json writes we read, element by element, and for every
// text holds what holds for every format.
func FuzzJSON(f *testing.F) {
	for _, test := range slices.Concat(jsonLinesTests(), jsonArrayTests()) {
		f.Add(test.text, test.opts.Format == corpus.JSON)
	}
	f.Fuzz(func(t *testing.T, text string, array bool) {
		opts := corpus.Options{Format: corpus.JSONL, MaxLine: fuzzMaxLine, Keep: []string{"level"}}
		if array {
			opts.Format = corpus.JSON
		}
		whole, wholeErr := corpus.Open(t.Context(), []string{corpus.Stdin}, opts, strings.NewReader(text))
		pieced, piecedErr := corpus.Open(t.Context(), []string{corpus.Stdin}, opts, &oneByte{text})
		if fmt.Sprint(wholeErr) != fmt.Sprint(piecedErr) {
			t.Fatalf("%v, but in single bytes %v", wholeErr, piecedErr)
		}
		if wholeErr != nil {
			return
		}
		shown, raws := drain(t, whole)
		again, rawsAgain := drain(t, pieced)
		if !slices.Equal(shown, again) || !slices.Equal(raws, rawsAgain) {
			t.Errorf("%q %q, but in single bytes %q %q", shown, raws, again, rawsAgain)
		}
		var elements []json.RawMessage
		if array && json.Unmarshal([]byte(text), &elements) == nil && len(elements) != len(shown) {
			t.Errorf("%d elements became %q", len(elements), shown)
		}
	})
}

// TestJSONAgainstStandard writes random boards with encoding/json in all forms
// and reads them back.
func TestJSONAgainstStandard(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	var elements []any
	var want []string
	for k := range 300 {
		size := puzzle.Size{Rows: 2 + rng.IntN(6), Cols: 1 + rng.IntN(20)}
		board := randomBoard(rng, size)
		text := string(board.AppendText(nil, 0))
		var numbers [][]int
		var rows []string
		for row := range size.Rows {
			rows = append(rows, text[row*size.Cols:][:size.Cols])
			var line []int
			for _, c := range rows[row] {
				line = append(line, int(c-'0'))
			}
			numbers = append(numbers, line)
		}
		id := fmt.Sprintf("%d\"\\\u00e9<", k)
		want = append(want, fmt.Sprintf("%s %s [%s]", size, text, id))
		elements = append(elements, map[string]any{"id": id, "board": []any{numbers, rows, strings.Join(rows, "\n")}[k%3]})
	}
	indented, err := json.MarshalIndent(elements, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	compact, _ := json.Marshal(elements)
	var lines []byte
	for _, e := range elements {
		line, _ := json.Marshal(e)
		lines = append(append(lines, line...), '\n')
	}
	for format, text := range map[string][]byte{"indented": indented, "compact": compact, "lines": lines} {
		c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{}, strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		shown, _ := drain(t, c)
		for i := range shown {
			_, shown[i], _ = strings.Cut(shown[i], " ")
		}
		if !slices.Equal(shown, want) {
			t.Errorf("%s as %s: %d records, want %d", format, c.Format(), len(shown), len(want))
		}
	}
}
