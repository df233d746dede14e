package draw_test

import (
	"encoding/xml"
	"fmt"
	"html/template"
	"io"
	"math"
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

func TestBoardWithoutName(t *testing.T) {
	svg := elements(t, draw.Board{Rows: 1, Cols: 1, Cells: "1"}.SVG())[0]
	if svg.attributes["aria-hidden"] != "true" || svg.attributes["role"] != "" {
		t.Errorf("what is described beside it is announced: %v", svg.attributes)
	}
}

// TestBars: heights are in the ratio of the numbers, and texts stay texts.
func TestBars(t *testing.T) {
	b := draw.Bars{Name: "presses", X: "min_moves", Y: "boards"}
	values := []float64{0, 3, 12_000, 6_000, 24_000}
	for i, v := range values {
		b.Bars = append(b.Bars, draw.Bar{Label: fmt.Sprint(i), Value: v, Title: "<script>"})
	}
	var heights []float64
	for _, e := range elements(t, b.SVG()) {
		if e.name == "script" {
			t.Error("a text has become an element")
		}
		if e.class == "bar" {
			h, err := strconv.ParseFloat(e.attributes["height"], 64)
			if err != nil {
				t.Fatal(err)
			}
			heights = append(heights, h)
		}
	}
	if len(heights) != len(values) || heights[0] != 0 || heights[1] != 1 {
		t.Fatalf("heights are %v; nothing is 0, few are 1", heights)
	}
	for i := 2; i < len(values); i++ {
		if want := heights[4] * values[i] / values[4]; math.Abs(heights[i]-want) > 0.02 {
			t.Errorf("bar of %v is %v high, want %v", values[i], heights[i], want)
		}
	}
}

func TestLine(t *testing.T) {
	l := draw.Line{Name: "rate", X: "time", Y: "records/s", Points: []draw.Point{{0, 5}, {1, 10}, {4, 0}}, Ticks: []draw.Tick{{0, "now"}}}
	for _, e := range elements(t, l.SVG()) {
		if e.class != "line" {
			continue
		}
		// The plot is 574 wide from 58 on, and 174 high down to 198; its top is 10.
		if want := "M58 111L201.5 24L632 198"; e.attributes["d"] != want {
			t.Errorf("the line is %s, want %s", e.attributes["d"], want)
		}
	}
	elements(t, draw.Line{}.SVG()) // nothing is known yet
	elements(t, draw.Bars{}.SVG())
}

// TestGauge: the mark is where the bar of the same share ends.
func TestGauge(t *testing.T) {
	for _, share := range []float64{0, 0.25, 1} {
		var end, mark float64
		for _, e := range elements(t, draw.Gauge{Value: share, Mark: share}.SVG()) {
			switch e.class {
			case "bar":
				fmt.Sscan(e.attributes["width"], &end)
			case "mark":
				fmt.Sscanf(e.attributes["d"], "M%g", &mark)
			}
		}
		if end != 120*share || math.Abs(mark-end) > 1 {
			t.Errorf("%v: the bar ends at %v, the mark is at %v", share, end, mark)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 7: "7", 999: "999", 1000: "1k", 1500: "1.5k", 999_900: "1M", 2_500_000: "2.5M", 3e9: "3G", 1e12: "1T", 0.5: "0.5"} {
		if got := draw.Short(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

// TestStyle: the sheet names every class that the drawings have and that is more
// than a place, and both schemes have the same colours.
func TestStyle(t *testing.T) {
	sheet := draw.Style()
	for _, class := range []string{"board", "chart", "on", "off", "press", "made", "next", "number", "grid", "bar", "line", "area", "middle", "end"} {
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
