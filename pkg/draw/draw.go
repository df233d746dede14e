// Package draw makes SVG drawings for pages: boards with the presses that solve
// them, bars, and a line over time.
//
// A drawing is a complete svg element for HTML. It has a name for those who do not
// see it, and no colours, scripts or styles of its own: its parts have classes, for
// which [Style] is a sheet that follows the reader's choice of dark or light. What
// a drawing tells must stand beside it as text or as a table, too.
//
// Drawings are functions of their values alone. Texts in them may be anybody's.
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

// Style returns the style sheet of the drawings. The properties in its :root are
// the colours, which the rest of a page may use.
func Style() string { return style }

// svg is a drawing being written.
type svg struct{ strings.Builder }

// open begins the drawing. A drawing that is only there to be looked at, because
// what it shows is said beside it, has no name.
func (s *svg) open(class, name string, width, height float64) {
	s.WriteString(`<svg class="` + class + `" viewBox="0 0 ` + number(width) + " " + number(height) + `"`)
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

func (s *svg) line(class string, x1, y1, x2, y2 float64) {
	s.WriteString(`<path class="` + class + `" d="M` + number(x1) + " " + number(y1) + "L" + number(x2) + " " + number(y2) + `"/>`)
}

// number writes a coordinate as short as it can be with two digits.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', 2, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
