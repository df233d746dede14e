package report

import (
	"fmt"
	"html/template"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/draw"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/view"
)

// hard is a board that needs as many presses as any of its size.
type hard struct{ dataset.Row }

// SVG draws it with its solution.
func (h hard) SVG() template.HTML {
	return draw.Board{
		Name: fmt.Sprintf("Board %d with its %d presses", h.Index, *h.MinMoves),
		Rows: int(*h.Rows), Cols: int(*h.Cols), Cells: *h.Board, Presses: *h.Solution,
	}.SVG()
}

// Presses says how many it needs.
func (h hard) Presses() string { return view.Times(int(*h.MinMoves), "press", "presses") }

// Optima says how many minimum solutions it has.
func (h hard) Optima() string {
	switch {
	case h.OptimalCount == nil:
		return ""
	case *h.OptimalCount == 1:
		return ", one optimum"
	}
	return fmt.Sprintf(", %s optima", view.Thousands(*h.OptimalCount))
}

// hardest finds boards of a size that need the most presses, the first in the
// corpus.
func hardest(path string, s *view.SizeStats, several bool) (found []hard, err error) {
	if len(s.Moves) == 0 {
		return nil, nil
	}
	most := int64(s.Moves[len(s.Moves)-1].MinMoves)
	want := dataset.Filter{Moves: &most}
	if several {
		want.Size = puzzle.Size{Rows: s.Rows, Cols: s.Cols}
	}
	for row, err := range dataset.Find(path, want) {
		if err != nil {
			return nil, err
		}
		if found = append(found, hard{row}); len(found) == mostHardest {
			break
		}
	}
	return found, nil
}

// examples finds the first rejects of each reason.
func examples(path string, reasons []*reason) error {
	lacking := 0
	by := map[puzzle.Reason]*reason{}
	for _, r := range reasons {
		by[r.Reason] = r
		lacking += int(min(mostExamples, r.Records))
	}
	if lacking == 0 {
		return nil
	}
	for row, err := range dataset.Find(path, dataset.Filter{Status: dataset.Rejected}) {
		if err != nil {
			return err
		}
		r := by[puzzle.Reason(*row.Reason)]
		if r == nil {
			return fmt.Errorf("record %d was rejected for %q, of which the manifest does not know", row.Index, *row.Reason)
		}
		if len(r.Examples) == mostExamples {
			continue
		}
		r.Examples = append(r.Examples, row)
		if lacking--; lacking == 0 {
			return nil
		}
	}
	return nil
}
