// Package draw is what pages draw with: boards with the presses that solve them are
// SVG that is made here, charts are drawn by Apache ECharts in the reader's browser.
//
// A board is a complete svg element for HTML. It has a name for those who do not
// see it, and no colours, scripts or styles of its own: its parts have classes, for
// which [Style] is a sheet that follows the reader's choice of dark or light. It is
// a function of its values alone.
//
// A chart is an empty element that names a table of the same page, whose numbers
// [Scripts] draw. Whatever is drawn stands beside it as text or as a table, too.
// Texts in both may be anybody's.
package draw

import (
	_ "embed"
	"html"
	"html/template"
	"strconv"
	"strings"
)

//go:embed draw.css
var style string

//go:embed echarts/echarts.common.min.js
var library string

//go:embed charts.js
var charts string

// Scripts returns the scripts that a page with charts runs, in this order, after its
// tables: the library as its authors publish it, and ours. Neither loads anything,
// and neither needs styles or code that a strict policy forbids.
func Scripts() (echarts, ours string) { return library, charts }

// Style returns the style sheet of the drawings. The properties in its :root are
// the colours, which the rest of a page may use.
func Style() string { return style }

// mostScale is how many pixels a unit of a drawing has where the page has room.
const mostScale = 4.8

// svg is a drawing being written.
type svg struct{ strings.Builder }

// open begins the drawing. A drawing that is only there to be looked at, because
// what it shows is said beside it, has no name.
func (s *svg) open(class, name string, width, height float64) {
	s.WriteString(`<svg class="` + class + `" viewBox="0 0 ` + number(width) + " " + number(height) + `" width="` + number(width*mostScale) + `"`)
	if name == "" {
		s.WriteString(` aria-hidden="true">`)
		return
	}
	s.WriteString(` role="img" aria-label="` + html.EscapeString(name) + `">`)
}

func (s *svg) close() template.HTML {
	s.WriteString("</svg>")
	return template.HTML(s.String()) // all texts have been escaped
}

// text writes a text at a place. The class says what it is and how it is aligned.
func (s *svg) text(class string, x, y float64, text string) {
	s.WriteString(`<text class="` + class + `" x="` + number(x) + `" y="` + number(y) + `">` + html.EscapeString(text) + "</text>")
}

// number writes a coordinate as short as it can be with two digits.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
