package corpus_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func FuzzLines(f *testing.F)  { fuzz(f, corpus.Lines, expectLines) }
func FuzzBlocks(f *testing.F) { fuzz(f, corpus.Blocks, expectBlocks) }
func FuzzGrid(f *testing.F)   { fuzz(f, corpus.Grid, nil) }
func FuzzAuto(f *testing.F)   { fuzz(f, corpus.Auto, nil) }

const fuzzMaxLine = 600

// fuzz reads any text in one format and checks what holds for every text, and
// that the records are as expected where expect is given.
func fuzz(f *testing.F, format string, expect func(lines []string, size puzzle.Size) []string) {
	for _, test := range slices.Concat(linesTests(), blocksTests(), gridTests()) {
		f.Add(test.text, uint8(test.opts.Size.Rows), uint8(test.opts.Size.Cols))
	}
	f.Fuzz(func(t *testing.T, text string, rows, cols uint8) {
		if strings.HasPrefix(text, "\x1f\x8b") || strings.HasPrefix(text, "\x28\xb5\x2f\xfd") || len(text) >= 4 && text[1:4] == "\x2a\x4d\x18" {
			return // compressed, so not the text that is read
		}
		size := puzzle.Size{Rows: int(rows % 17), Cols: int(cols % 17)}
		if size.Cells() == 0 {
			size = puzzle.Size{}
		}
		opts := corpus.Options{Format: format, Size: size, MaxLine: fuzzMaxLine}
		shown, raws, err := readAll(t, strings.NewReader(text), opts)
		pieced, piecedRaws, piecedErr := readAll(t, iotest.OneByteReader(strings.NewReader(text)), opts)
		if fmt.Sprint(err) != fmt.Sprint(piecedErr) || !slices.Equal(shown, pieced) || !slices.Equal(raws, piecedRaws) {
			t.Errorf("%q %q %v, but in single bytes %q %q %v", shown, raws, err, pieced, piecedRaws, piecedErr)
		}
		like, _, likeErr := readLike(t, strings.NewReader(text), opts)
		if fmt.Sprint(err) != fmt.Sprint(likeErr) || !slices.Equal(shown, like) {
			t.Errorf("%q %v, but by NextLike %q %v", shown, err, like, likeErr)
		}
		lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
		checkStarts(t, lines, shown, err)
		if expect == nil || err != nil {
			return
		}
		for i, s := range shown {
			shown[i] = outcome(s)
		}
		if want := expect(lines, size); !slices.Equal(shown, want) {
			t.Errorf("%q as %s: records %q, want %q", text, size, shown, want)
		}
	})
}

// outcome shortens what show writes of a reject to "line reject".
func outcome(shown string) string {
	var line, rows, cols int
	if n, _ := fmt.Sscanf(shown, "%d %dx%d", &line, &rows, &cols); n < 3 {
		return fmt.Sprint(line, " reject")
	}
	return shown
}

func isLong(line string) bool { return len(strings.TrimSuffix(line, "\r")) > fuzzMaxLine }

func isBlank(line string) bool { return strings.Trim(line, " \t\r") == "" && !isLong(line) }

// checkStarts checks that every record starts at a line that is not blank, and
// the first one at the first such line.
func checkStarts(t *testing.T, lines, shown []string, err error) {
	first := slices.IndexFunc(lines, func(l string) bool { return !isBlank(l) })
	if err == nil && (first < 0) != (len(shown) == 0) {
		t.Fatalf("%q: %d records", lines, len(shown))
	}
	for i, s := range shown {
		var line int
		fmt.Sscan(s, &line)
		if i == 0 && line != first+1 || line > len(lines) || isBlank(lines[line-1]) {
			t.Fatalf("%q: record %q", lines, s)
		}
	}
}

// expectLines says what the lines are as records, one line a record.
func expectLines(lines []string, size puzzle.Size) (want []string) {
	for i, line := range lines {
		if isBlank(line) {
			continue
		}
		rows := strings.Split(strings.ReplaceAll(strings.TrimRight(line, " \t\r"), "|", "/"), "/")
		bars := len(rows) > 1
		if bars && rows[len(rows)-1] == "" {
			rows = rows[:len(rows)-1]
		}
		if cells := squeezed(rows[0]); !bars && size.Cols > 0 && len(cells) == size.Cells() {
			rows = nil
			for row := range size.Rows {
				rows = append(rows, cells[row*size.Cols:][:size.Cols])
			}
			bars = true
		}
		want = append(want, expectBoard(i+1, rows, size, bars && !isLong(line)))
	}
	return want
}

// expectBlocks says what the lines are as records, one row a line.
func expectBlocks(lines []string, size puzzle.Size) (want []string) {
	var rows []string
	start, good := 0, true
	for i, line := range append(lines, "") {
		if !isBlank(line) {
			if rows == nil {
				start, good = i+1, true
			}
			rows = append(rows, strings.TrimRight(line, " \t\r"))
			good = good && !isLong(line)
		}
		if rows != nil && (isBlank(line) || len(rows) == size.Rows) {
			want = append(want, expectBoard(start, rows, size, good))
			rows = nil
		}
	}
	return want
}

// expectBoard says what the rows are, which may have blanks between cells.
func expectBoard(line int, rows []string, size puzzle.Size, good bool) string {
	var text strings.Builder
	cols := len(squeezed(rows[0]))
	for _, row := range rows {
		row = squeezed(row)
		good = good && len(row) == cols && strings.Trim(row, "01") == ""
		text.WriteString(row)
	}
	long, short := max(len(rows), cols), min(len(rows), cols)
	fits := size.Cols == 0 || len(rows) == size.Rows && cols == size.Cols
	if !good || !fits || short < 1 || short > 64 || long > 256 {
		return fmt.Sprint(line, " reject")
	}
	return fmt.Sprintf("%d %dx%d %s", line, len(rows), cols, text.String())
}

func squeezed(row string) string { return strings.NewReplacer(" ", "", "\t", "").Replace(row) }

// FuzzRoundTrip: boards written in a format are read as they were.
func FuzzRoundTrip(f *testing.F) {
	for i := range uint64(12) {
		f.Add(i, uint8(i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, shape uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		l := layout{
			format: corpus.Formats()[1+shape%3],
			bar:    []string{"", "/", " | "}[shape/3%3],
			gap:    []string{"", " ", "\t "}[shape/9%3],
			eol:    []string{"\n", "\r\n", " \t\n"}[shape/27%3],
		}
		opts := corpus.Options{Format: l.format}
		sizes := []puzzle.Size{randomSize(rng), randomSize(rng)}
		if l.format == corpus.Lines && l.bar == "" {
			opts.Size, sizes[1] = sizes[0], sizes[0]
		}
		var text []byte
		var boards []puzzle.Run
		for range 1 + rng.IntN(5) {
			board := randomBoard(rng, sizes[rng.IntN(2)])
			boards = append(boards, board)
			text = l.append(text, board)
		}
		shown, _, err := readAll(t, strings.NewReader(string(text)), opts)
		if err != nil || len(shown) != len(boards) {
			t.Fatalf("%+v: %d records, want %d, %v", l, len(shown), len(boards), err)
		}
		for i, board := range boards {
			_, got, _ := strings.Cut(shown[i], " ")
			if want := fmt.Sprintf("%s %s", board.Size, board.AppendText(nil, 0)); got != want {
				t.Fatalf("%+v: record %d is %s, want %s", l, i, got, want)
			}
		}
	})
}

// randomSize returns any size that boards may have.
func randomSize(rng *rand.Rand) puzzle.Size {
	size := puzzle.Size{Rows: 1 + rng.IntN(puzzle.MaxWidth), Cols: 1 + rng.IntN(puzzle.MaxWidth)}
	switch rng.IntN(4) {
	case 0:
		size.Rows = 1 + rng.IntN(puzzle.MaxLines)
	case 1:
		size.Cols = 1 + rng.IntN(puzzle.MaxLines)
	}
	return size
}

// TestFaultsStayLocal puts a fault somewhere into a corpus: the boards before
// and behind it must all be read, and in the same places.
func TestFaultsStayLocal(t *testing.T) {
	for _, test := range []struct {
		layout layout
		opts   corpus.Options
		faults []string
	}{
		{layout{format: corpus.Lines, bar: "/"}, corpus.Options{}, []string{"x\n", "01/1\n", "0101\n", "\x00\xff\n", "/\n", strings.Repeat("0", 1e5) + "\n"}},
		{layout{format: corpus.Blocks}, corpus.Options{}, []string{"x\n\n", "01\n1\n\n", "01\n1x\n01\n\n", strings.Repeat("1\n", 1e4) + "\n", strings.Repeat("0", 1e5) + "\n1\n\n"}},
		{layout{format: corpus.Blocks}, corpus.Options{Size: puzzle.Size{Rows: 3, Cols: 4}}, []string{"x\n\n", "0101\n1111\n0\n", "0\n0\n0\n", "0101\n0101\n\n"}},
		{layout{format: corpus.Grid, gap: " "}, corpus.Options{}, []string{
			"x\n", "hello, world\n1 2 3\n", "3 3\n0 1 1\n0 1 1\n", "3 3\n0 1 1\n0 1 2\n0 1 1\n", "2 2\n0 1\n0 1 1\n", "0 1 1\n", "0 0\n", "5 0\n", "3\n",
			"999999999 999999999\n", "999999999 2\n1 1\n1 1\n", "1 1\n", "1 3\n10 1\n", "65 65\n0 0\n", strings.Repeat("0", 1e5) + "\n", "2 2\n0 1\n" + strings.Repeat("0", 1e5) + "\n",
		}},
	} {
		rng := rand.New(rand.NewPCG(7, 8))
		for _, fault := range test.faults {
			size := puzzle.Size{Rows: 2 + rng.IntN(4), Cols: 2 + rng.IntN(4)}
			if test.opts.Size.Rows > 0 {
				size = test.opts.Size
			}
			var text []byte
			var want []string
			line := 1
			for i := range 20 {
				if i == 10 {
					text = append(text, fault...)
					line += strings.Count(fault, "\n")
				}
				board := randomBoard(rng, size)
				want = append(want, fmt.Sprintf("%d %s %s", line, size, board.AppendText(nil, 0)))
				n := len(text)
				text = test.layout.append(text, board)
				line += strings.Count(string(text[n:]), "\n")
			}
			shown, raws, err := readAll(t, strings.NewReader(string(text)), test.opts)
			boards := slices.DeleteFunc(slices.Clone(shown), func(s string) bool { return strings.HasSuffix(outcome(s), "reject") })
			if err != nil || len(raws) == 0 || !slices.Equal(boards, want) {
				t.Errorf("%s with %.40q: %q, %v", test.layout.format, fault, shown, err)
			}
		}
	}
}
