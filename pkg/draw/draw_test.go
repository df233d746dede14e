package draw_test

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/draw"
)

// element is one of a drawing.
type element struct {
	name, class, text string
	attributes        map[string]string
}

// elements reads a drawing as XML, which also shows that it is well-formed.
func elements(t *testing.T, drawing template.HTML) (all []element) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(drawing)))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %s", err, drawing)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			e.class = e.attributes["class"]
			all = append(all, e)
		case xml.CharData:
			all[len(all)-1].text += string(token)
		}
	}
}

var start = regexp.MustCompile(`M([\d.]+) ([\d.]+)h`)

// cells returns the numbers of the cells whose squares a path draws.
func cells(t *testing.T, path string, cols int) (found []int) {
	t.Helper()
	for _, m := range start.FindAllStringSubmatch(path, -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		y, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, int(y/10)*cols+int(x/10))
	}
	return found
}

// where returns where a board's text has a character.
func where(text string, c byte) (found []int) {
	for i := range len(text) {
		if text[i] == c {
			found = append(found, i)
		}
	}
	return found
}

func TestBoard(t *testing.T) {
	b := draw.Board{Name: `a "board" <b>`, Rows: 2, Cols: 3, Cells: "010011", Presses: "101001", Made: 1, Next: true}
	all := elements(t, b.SVG())
	if svg := all[0]; svg.attributes["aria-label"] != b.Name || svg.attributes["role"] != "img" || svg.attributes["viewBox"] != "0 0 31 21" {
		t.Errorf("the drawing is %v", svg.attributes)
	}
	var presses, numbers []string
	for _, e := range all {
		switch {
		case e.class == "on" || e.class == "off":
			want := where(b.Cells, map[string]byte{"on": '1', "off": '0'}[e.class])
			if got := cells(t, e.attributes["d"], b.Cols); !slices.Equal(got, want) {
				t.Errorf("cells %s are %v, want %v", e.class, got, want)
			}
		case e.name == "circle":
			presses = append(presses, fmt.Sprintf("%s at %s,%s", e.class, e.attributes["cx"], e.attributes["cy"]))
		case e.name == "text":
			numbers = append(numbers, e.text)
		}
	}
	if want := []string{"press made at 5.5,5.5", "press next at 25.5,5.5", "press at 25.5,15.5"}; !slices.Equal(presses, want) {
		t.Errorf("presses are %v, want %v", presses, want)
	}
	if want := []string{"1", "2", "3"}; !slices.Equal(numbers, want) {
		t.Errorf("their numbers are %v", numbers)
	}
}

// TestNumbers: the presses of a board have numbers, all or none, and a list knows of
// which boards they are too small to be read.
func TestNumbers(t *testing.T) {
	for _, test := range []struct {
		rows, cols, presses, numbers int
		class                        string
	}{
		{10, 10, 99, 99, "board"}, {10, 10, 100, 0, "board"}, {11, 4, 3, 3, "board large"}, {4, 11, 3, 3, "board large"},
	} {
		cells := strings.Repeat("0", test.rows*test.cols)
		b := draw.Board{Rows: test.rows, Cols: test.cols, Cells: cells, Presses: strings.Repeat("1", test.presses) + cells[test.presses:]}
		all := elements(t, b.SVG())
		numbers := 0
		for _, e := range all {
			if e.name == "text" {
				numbers++
			}
		}
		if numbers != test.numbers || all[0].class != test.class || draw.Numbered(test.rows, test.cols) != (test.class == "board") {
			t.Errorf("%+v: %d numbers, class %s", test, numbers, all[0].class)
		}
	}
}

func TestBoardWithoutName(t *testing.T) {
	svg := elements(t, draw.Board{Rows: 1, Cols: 1, Cells: "1"}.SVG())[0]
	if svg.attributes["aria-hidden"] != "true" || svg.attributes["role"] != "" {
		t.Errorf("what is described beside it is announced: %v", svg.attributes)
	}
}

// TestStyle: the sheet names every class that the drawings have and that is more
// than a place, and both schemes have the same colours.
func TestStyle(t *testing.T) {
	sheet := draw.Style()
	for _, class := range []string{"board", "on", "off", "press", "made", "next", "number", "chart"} {
		if !strings.Contains(sheet, "."+class+" ") {
			t.Errorf("the style sheet says nothing of %s", class)
		}
	}
	light, dark, _ := strings.Cut(sheet, "prefers-color-scheme: dark")
	dark, _, _ = strings.Cut(dark, "svg.board")
	for _, m := range regexp.MustCompile(`--[a-z-]+:`).FindAllString(light, -1) {
		if !strings.Contains(dark, m) {
			t.Errorf("there is no dark %s", m)
		}
	}
}
