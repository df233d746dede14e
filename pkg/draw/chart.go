package draw

import (
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Bars is a bar chart: a number for each of some labels, from left to right.
type Bars struct {
	Name string // for those who do not see it
	X, Y string // what the labels are, and the numbers
	Bars []Bar
}

// Bar is one of them.
type Bar struct {
	Label string
	Value float64 // not negative
	Part  float64 // of the value, drawn in a stronger colour; 0 in all bars for none
	Title string  // shown when it is pointed at
}

// Line is a number over time.
type Line struct {
	Name   string // for those who do not see it
	X, Y   string // what both axes are
	Points []Point
	Ticks  []Tick // on the axis of X
}

// Point is a number at a time; neither is negative, and times ascend.
type Point struct{ X, Y float64 }

// Tick is the label of a time.
type Tick struct {
	X     float64
	Label string
}

// A chart in its own units, which are about pixels.
const (
	chartWidth, chartHeight            = 640.0, 240.0
	chartLeft, chartRight              = 58.0, 8.0
	chartTop, chartBottom              = 24.0, 42.0
	plotWidth, plotHeight              = chartWidth - chartLeft - chartRight, chartHeight - chartTop - chartBottom
	plotBase                           = chartTop + plotHeight
	leastLabel                         = 26.0 // room for a label below the plot
	barShare                           = 0.82 // of the room of a bar
	widestBar                          = 48.0
	tickLabelGap, axisLabelY, yNameTop = 16.0, chartHeight - 6, 12.0
)

// SVG draws the bars.
func (b Bars) SVG() template.HTML {
	var s svg
	s.open("chart", b.Name, chartWidth, chartHeight)
	most, whole := 0.0, "bar"
	for _, bar := range b.Bars {
		most = max(most, bar.Value)
		if bar.Part > 0 {
			whole = "bar whole"
		}
	}
	top := s.grid(most, b.X, b.Y)
	step := plotWidth / float64(max(1, len(b.Bars)))
	width := min(step*barShare, widestBar)
	every := int(math.Ceil(leastLabel / step)) // bars between two labels
	for i, bar := range b.Bars {
		center := chartLeft + (float64(i)+0.5)*step
		height := bar.Value / top * plotHeight
		if bar.Value > 0 {
			height = max(height, 1) // few are not none
		}
		s.bar(whole, center-width/2, height, width, bar.Title)
		if bar.Part > 0 {
			s.bar("bar", center-width/2, bar.Part/top*plotHeight, width, bar.Title)
		}
		if i%every == 0 {
			s.text("tick middle", center, plotBase+tickLabelGap, bar.Label)
		}
	}
	return s.close()
}

// bar draws a bar, or the lower part of one.
func (s *svg) bar(class string, x, height, width float64, title string) {
	s.WriteString(`<rect class="` + class + `" x="` + number(x) + `" y="` + number(plotBase-height) +
		`" width="` + number(width) + `" height="` + number(height) + `"><title>` + html.EscapeString(title) + "</title></rect>")
}

// SVG draws the line, with what is below it filled.
func (l Line) SVG() template.HTML {
	var s svg
	s.open("chart", l.Name, chartWidth, chartHeight)
	most, span := 0.0, 0.0
	for _, p := range l.Points {
		most, span = max(most, p.Y), max(span, p.X)
	}
	top := s.grid(most, l.X, l.Y)
	if span == 0 {
		span = 1
	}
	x := func(v float64) float64 { return chartLeft + v/span*plotWidth }
	var path strings.Builder
	for i, p := range l.Points {
		path.WriteString(map[bool]string{true: "M", false: "L"}[i == 0] + number(x(p.X)) + " " + number(plotBase-p.Y/top*plotHeight))
	}
	if n := len(l.Points); n > 0 {
		s.WriteString(`<path class="area" d="` + path.String() + "L" + number(x(l.Points[n-1].X)) + " " + number(plotBase) +
			"L" + number(x(l.Points[0].X)) + " " + number(plotBase) + `z"/><path class="line" d="` + path.String() + `"/>`)
	}
	for _, t := range l.Ticks {
		class := "tick middle"
		if t.X >= span {
			class = "tick end"
		}
		s.text(class, x(t.X), plotBase+tickLabelGap, t.Label)
	}
	return s.close()
}

// Gauge is a share of a whole, with a mark at another that it is compared with.
// What it shows must be said beside it.
type Gauge struct{ Value, Mark float64 } // 0 to 1

// SVG draws the gauge.
func (g Gauge) SVG() template.HTML {
	const width, height = 120.0, 12.0
	var s svg
	s.open("gauge", "", width, height)
	s.WriteString(`<rect class="off" x="0" y="2" width="120" height="8" rx="4"/><rect class="bar" x="0" y="2" width="` +
		number(width*min(1, max(0, g.Value))) + `" height="8" rx="4"/>`)
	at := 1 + (width-2)*min(1, max(0, g.Mark))
	s.line("mark", at, 0, at, height)
	return s.close()
}

// grid draws the axes of numbers up to most, and returns the number at the top.
func (s *svg) grid(most float64, x, y string) (top float64) {
	step := niceStep(most)
	top = max(step, math.Ceil(most/step)*step)
	for v := 0.0; v <= top*1.001; v += step {
		at := plotBase - v/top*plotHeight
		s.line("grid", chartLeft, at, chartWidth-chartRight, at)
		s.text("tick end", chartLeft-8, at+4, Short(v))
	}
	s.text("axis", 0, yNameTop, y)
	s.text("axis middle", chartLeft+plotWidth/2, axisLabelY, x)
	return top
}

// niceStep returns the distance of a handful of lines of a grid: 1, 2 or 5 times a
// power of ten.
func niceStep(most float64) float64 {
	if most <= 0 {
		return 1
	}
	const lines = 4
	power := math.Pow(10, math.Floor(math.Log10(most/lines)))
	for _, times := range [...]float64{1, 2, 5} {
		if most/(times*power) <= lines {
			return times * power
		}
	}
	return 10 * power
}

// Short writes a number in the room of an axis: 1500000 is 1.5M.
func Short(v float64) string {
	for _, unit := range [...]struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= unit.size*0.9995 {
			return strconv.FormatFloat(v/unit.size, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
