package report

import (
	"slices"

	"github.com/flipmill/flipmill/pkg/view"
)

// histogram is how many presses some boards need.
type histogram struct {
	ID     string // of its table
	Rows   []histogramRow
	Boards int64 // solved
	Mean   float64
	Half   int // of the boards need so many presses or fewer; as do nine, and 99, of a hundred
	Ninety int
	Almost int
	Most   int
}

// histogramRow is about the boards that need the same number of presses.
type histogramRow struct {
	view.Moves
	Fewer int64 // boards that need so many or fewer
}

// newHistogram returns the histogram of numbers of presses, which ascend.
func newHistogram(id string, moves []view.Moves) *histogram {
	h := &histogram{ID: "moves-" + id}
	sum := 0.0
	for _, m := range moves {
		h.Boards += m.Boards
		sum += float64(m.MinMoves) * float64(m.Boards)
		h.Most = m.MinMoves
		h.Rows = append(h.Rows, histogramRow{m, h.Boards})
	}
	if h.Boards == 0 {
		return h
	}
	h.Mean = sum / float64(h.Boards)
	h.Half, h.Ninety, h.Almost = h.quantile(50), h.quantile(90), h.quantile(99)
	return h
}

// quantile returns the fewest presses with which so many of a hundred boards are
// solved.
func (h *histogram) quantile(percent int64) int {
	for _, r := range h.Rows {
		if r.Fewer >= (h.Boards*percent+99)/100 { // rounded up
			return r.MinMoves
		}
	}
	return h.Most
}

// together adds up the boards of all sizes.
func together(sizes []*view.SizeStats) (all []view.Moves) {
	for _, s := range sizes {
		for _, m := range s.Moves {
			i, found := slices.BinarySearchFunc(all, m.MinMoves, func(a view.Moves, moves int) int { return a.MinMoves - moves })
			if !found {
				all = slices.Insert(all, i, view.Moves{MinMoves: m.MinMoves})
			}
			all[i].Boards += m.Boards
			all[i].Unique += m.Unique
		}
	}
	return all
}
