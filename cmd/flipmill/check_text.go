package main

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/view"
)

// firstRecords keeps the first records of a corpus.
type firstRecords struct {
	limit int
	keep  []string // fields besides the id
	rows  []dataset.Row
}

func (f *firstRecords) full() bool { return len(f.rows) == f.limit }

// add takes what is wanted from the next chunk.
func (f *firstRecords) add(c *puzzle.Chunk) {
	rejects := c.Rejects
	run, at := 0, 0 // the next board
	for k := 0; k < c.Records() && !f.full(); k++ {
		if len(rejects) > 0 && rejects[0].Index == c.First+int64(k) {
			f.rows = append(f.rows, rowOfReject(c, rejects[0]))
			rejects = rejects[1:]
			continue
		}
		row := rowOfBoard(c.First+int64(k), c.Runs[run], at)
		row.Source, row.Line = placeOf(c, k)
		row.ID, row.Kept = labelsOf(c, k, f.keep)
		f.rows = append(f.rows, row)
		if at++; at == c.Runs[run].Count {
			run, at = run+1, 0
		}
	}
}

// rejectsOf yields the rejects of a chunk.
func rejectsOf(c *puzzle.Chunk) iter.Seq[dataset.Row] {
	return func(yield func(dataset.Row) bool) {
		for _, r := range c.Rejects {
			if !yield(rowOfReject(c, r)) {
				return
			}
		}
	}
}

func rowOfReject(c *puzzle.Chunk, r puzzle.Reject) dataset.Row {
	row := dataset.Row{Index: r.Index, Reason: new(string(r.Reason)), Detail: new(r.Detail), Raw: new(string(r.Raw))}
	row.Source, row.Line = placeOf(c, int(r.Index-c.First))
	return row
}

func rowOfBoard(index int64, run puzzle.Run, i int) dataset.Row {
	return dataset.Row{
		Index: index, Rows: new(int64(run.Rows)), Cols: new(int64(run.Cols)),
		Board: new(string(run.AppendText(nil, i))),
	}
}

// labelsOf returns what record k of a chunk is called, and the kept fields that it has.
func labelsOf(c *puzzle.Chunk, k int, keep []string) (id *string, kept map[string]string) {
	kept = make(map[string]string)
	for i := range c.Labels {
		switch label := string(c.Labels[i].At(k)); {
		case label == "":
		case i == 0:
			id = &label
		default:
			kept[keep[i-1]] = label
		}
	}
	return id, kept
}

// placeOf says where record k of a chunk comes from.
func placeOf(c *puzzle.Chunk, k int) (source *string, line *int64) {
	left := k
	for _, s := range c.Spans {
		if left < s.Records {
			return new(s.Source), new(c.Lines[k])
		}
		left -= s.Records
	}
	panic("BUG: check: spans do not cover their chunk")
}

// text renders the report for people.
func (r *checked) text(spec puzzle.Spec, g glyphs) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-12s %15s\n", "format", r.Format)
	if r.Files > 0 {
		fmt.Fprintf(&b, "%-12s %15s  %s\n", "files", view.Thousands(int64(r.Files)), size(float64(r.Bytes)))
	}
	fmt.Fprintf(&b, "%-12s %15s\n", "records", view.Thousands(r.Records))
	fmt.Fprintf(&b, "%-12s %15s\n", "boards", view.Thousands(r.Boards))
	for _, s := range r.Sizes {
		fmt.Fprintf(&b, "  %-10s %15s\n", fmt.Sprintf("%dx%d", s.Rows, s.Cols), view.Thousands(s.Boards))
	}
	fmt.Fprintf(&b, "%-12s %15s\n", "rejected", view.Thousands(r.Rejected))
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, "  %-18s %7s\n", reason.Reason, view.Thousands(reason.Records))
		for _, row := range reason.First {
			fmt.Fprintf(&b, "    %s:%d: %s\n", view.Harmless(*row.Source), *row.Line, view.Harmless(*row.Detail))
		}
	}
	b.WriteByte('\n')
	d := &drawing{spec: dataset.Options{Rule: spec.Rule.String(), Target: spec.Target.String()}, glyphs: g}
	for _, row := range r.First {
		d.draw(&b, row)
		b.WriteByte('\n')
	}
	r.Forecast.write(&b)
	return b.Bytes()
}

// write renders the forecast for people.
func (f *forecast) write(b *bytes.Buffer) {
	fmt.Fprintf(b, "A run, judging by %d of its %s chunks:\n", f.Sampled, view.Thousands(f.Tasks))
	fmt.Fprintf(b, "  tasks    %s, %s\n", view.Thousands(f.Tasks), f.TaskBytes.text(size))
	fmt.Fprintf(b, "  results  %s, %s\n", view.Thousands(f.Tasks), f.ResultBytes.text(size))
	fmt.Fprintf(b, "  dataset  %s, parts: %s\n", f.OutputBytes.text(size), view.Thousands(f.Parts))
	fmt.Fprintf(b, "  time     %s with %d workers on this machine, idle\n", f.Seconds.text(seconds), f.Workers)
}

// text renders both ends of a range, or one where they look the same.
func (e estimate) text(form func(float64) string) string {
	low, high := form(e.Low), form(e.High)
	if low == high {
		return low
	}
	return low + " to " + high
}

// size renders a number of bytes with three digits.
func size(n float64) string {
	unit, units := "bytes", []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	for n >= 1000 && len(units) > 0 {
		n, unit, units = n/1024, units[0], units[1:]
	}
	return strings.TrimSuffix(fmt.Sprintf("%.3g", n), ".0") + " " + unit
}

// seconds renders a time with about two digits.
func seconds(s float64) string {
	switch {
	case s < 60:
		return fmt.Sprintf("%.1f s", s)
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%.0f h", s/3600)
	}
	return fmt.Sprintf("%s days", view.Thousands(int64(s/86400)))
}
