package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"github.com/flipmill/flipmill/pkg/draw"
	"github.com/flipmill/flipmill/pkg/view"
)

// histogram is how many presses some boards need.
type histogram struct {
	Moves        []view.Moves // ascending
	Boards       int64        // solved
	Mean         float64
	Median, Most int
}

func newHistogram(moves []view.Moves) *histogram {
	h := &histogram{Moves: moves}
	sum := 0.0
	for _, m := range moves {
		h.Boards += m.Boards
		sum += float64(m.MinMoves) * float64(m.Boards)
		h.Most = m.MinMoves
	}
	if h.Boards == 0 {
		return h
	}
	h.Mean = sum / float64(h.Boards)
	below := int64(0)
	for _, m := range moves {
		if below += m.Boards; below >= (h.Boards+1)/2 { // of an even number, the lower of the two in the middle
			h.Median = m.MinMoves
			break
		}
	}
	return h
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

// Chart draws it. Numbers of presses that no board needs have their place, too.
func (h *histogram) Chart() template.HTML {
	c := draw.Bars{Name: "Boards by the fewest presses they need, and which of them have one optimum; the table has the numbers", X: "fewest presses (min_moves)", Y: "boards"}
	for _, m := range h.Moves {
		for first := h.Moves[0].MinMoves; first+len(c.Bars) < m.MinMoves; {
			c.Bars = append(c.Bars, draw.Bar{Label: strconv.Itoa(first + len(c.Bars))})
		}
		c.Bars = append(c.Bars, draw.Bar{
			Label: strconv.Itoa(m.MinMoves), Value: float64(m.Boards), Part: float64(m.Unique),
			Title: fmt.Sprintf("%d presses: %s boards, of which %s have one optimum", m.MinMoves, view.Thousands(m.Boards), view.Thousands(m.Unique)),
		})
	}
	return c.SVG()
}
