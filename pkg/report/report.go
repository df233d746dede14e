// Package report writes an HTML page about a finished dataset: what its boards are
// like, the hardest of them with their solutions, what was rejected, and what it was
// made from.
//
// The page is one file that needs no other and no network, and runs no script but
// those that draw its charts: its policy says so to the browser. Boards and charts are
// those of package draw; what they show stands beside them in tables. It is a function
// of the dataset alone: no clock, no path. Texts in it may be anybody's.
package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/draw"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/view"
)

//go:embed report.html
var layout string

//go:embed report.css
var style string

// What a page shows at most, so that it stays one that a browser opens.
const (
	mostDetailed = 12  // sizes with a histogram and boards
	mostHardest  = 3   // boards of a size
	mostExamples = 3   // rejects of a reason
	mostParts    = 100 // in the manifest
	mostSources  = 100
)

// page is what the template shows.
type page struct {
	Policy   string
	Style    template.CSS
	Scripts  []template.JS // in their order
	Manifest *dataset.Manifest
	Stats    *view.Statistics
	Unique   int64 // solved boards with exactly one minimum solution
	Whole    *histogram
	Sizes    []*size // all of them
	Detailed []*size // the most frequent
	Columns  string  // that hardest boards lack; empty where there are all
	Reasons  []*reason
	Options  []option
	Sources  []dataset.Source // the first, as are the next
	Parts    []dataset.Files
	Further  further
}

// further counts what is not shown.
type further struct{ Sizes, Sources, Parts int }

// size is what is said of the boards of one size.
type size struct {
	*view.SizeStats
	Presses *histogram
	Hardest []hard
}

// Numbered reports whether the presses of its boards have numbers.
func (s *size) Numbered() bool { return draw.Numbered(s.Rows, s.Cols) }

// reason is what is said of the rejects of one reason.
type reason struct {
	Reason   puzzle.Reason
	Records  int64
	Examples []dataset.Row
}

// option is a job's option as its manifest has it.
type option struct{ Name, Value string }

// Write writes the page about the dataset at path. It calls step, unless that is nil,
// with how much of its work is done; the unit is a search among the rows.
func Write(w io.Writer, path string, step func(done, total int64)) error {
	p, err := newPage(path)
	if err != nil {
		return err
	}
	done, total := int64(0), int64(len(p.Detailed)+1)
	advance := func() {
		if step != nil {
			step(done, total)
		}
		done++
	}
	for _, s := range p.Detailed {
		advance()
		if p.Columns != "" {
			continue
		}
		if s.Hardest, err = hardest(path, s.SizeStats, len(p.Sizes) > 1); err != nil {
			return err
		}
	}
	advance()
	if err := examples(path, p.Reasons); err != nil {
		return err
	}
	advance()
	text, err := p.html()
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// newPage returns the page but for what has to be looked up among the rows.
func newPage(path string) (*page, error) {
	m, counts, err := dataset.ReadTally(path)
	if err != nil {
		return nil, err
	}
	spec, err := m.Spec.ParseSpec()
	if err != nil {
		return nil, err
	}
	stats, err := view.NewStatistics(m.Job, spec, counts)
	if err != nil {
		return nil, err
	}
	css := draw.Style() + style
	echarts, charts := draw.Scripts()
	p := &page{
		Policy: "default-src 'none'; style-src " + digest(css) + "; script-src " + digest(echarts) + " " + digest(charts) + "; base-uri 'none'; form-action 'none'",
		Style:  template.CSS(css), Scripts: []template.JS{template.JS(echarts), template.JS(charts)}, // ours
		Manifest: m, Stats: stats, Columns: missing(m.Spec),
		Options: options(m.Spec), Sources: m.Input.Sources[:min(len(m.Input.Sources), mostSources)], Parts: m.Parts[:min(len(m.Parts), mostParts)],
	}
	for _, s := range stats.Sizes {
		p.Sizes = append(p.Sizes, &size{SizeStats: s, Presses: newHistogram(fmt.Sprintf("%dx%d", s.Rows, s.Cols), s.Moves)})
		p.Unique += s.Unique
	}
	p.Detailed = detailed(p.Sizes)
	p.Further = further{len(p.Sizes) - len(p.Detailed), len(m.Input.Sources) - len(p.Sources), len(m.Parts) - len(p.Parts)}
	if len(p.Sizes) > 1 {
		p.Whole = newHistogram("all", together(stats.Sizes))
	}
	for r, n := range m.Counts.Reasons {
		p.Reasons = append(p.Reasons, &reason{Reason: r, Records: n})
	}
	slices.SortFunc(p.Reasons, func(a, b *reason) int {
		if a.Records != b.Records {
			return int(max(-1, min(1, b.Records-a.Records)))
		}
		return strings.Compare(string(a.Reason), string(b.Reason))
	})
	return p, nil
}

// digest names a text in a policy.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// missing names the columns without which boards cannot be chosen and drawn.
func missing(o dataset.Options) string {
	needed := []string{"board", "min_moves", "solution"}
	if o.Size == "" { // then the boards may have several
		needed = append(needed, "rows", "cols")
	}
	var lacking []string
	for _, name := range needed {
		if !slices.Contains(o.Columns, name) {
			lacking = append(lacking, name)
		}
	}
	return strings.Join(lacking, ", ")
}

// detailed returns the sizes with the most boards, by size.
func detailed(sizes []*size) []*size {
	if len(sizes) <= mostDetailed {
		return sizes
	}
	most := slices.Clone(sizes)
	slices.SortStableFunc(most, func(a, b *size) int { return int(max(-1, min(1, b.Boards-a.Boards))) })
	most = most[:mostDetailed]
	return slices.DeleteFunc(slices.Clone(sizes), func(s *size) bool { return !slices.Contains(most, s) })
}

// options lists a job's options under the names that the manifest has for them.
func options(o dataset.Options) (all []option) {
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		value := fmt.Sprint(v.Field(i).Interface())
		if list, ok := v.Field(i).Interface().([]string); ok {
			value = strings.Join(list, ", ")
		}
		if value != "" && value != "false" { // what is left out of the manifest, too
			all = append(all, option{name, value})
		}
	}
	return all
}

// html renders the page.
func (p *page) html() ([]byte, error) {
	t, err := template.New("report").Funcs(template.FuncMap{
		"thousands": view.Thousands,
		"harmless":  view.Harmless,
		"share":     view.Share,
		"percent":   view.Percent,
		"times":     view.Times,
		"decimal":   func(x float64) string { return fmt.Sprintf("%.2f", x) },
	}).Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("read the layout of reports: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("make the report: %w", err)
	}
	return b.Bytes(), nil
}
