package puzzle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// quarterTurn turns a grid by 90 degrees to the right.
func (g grid) quarterTurn() grid {
	h := grid{puzzle.Size{Rows: g.size.Cols, Cols: g.size.Rows}, make([]bool, len(g.cells))}
	for k, on := range g.cells {
		h.cells[k%g.size.Cols*h.size.Cols+h.size.Cols-1-k/g.size.Cols] = on
	}
	return h
}

func (g grid) mirrored() grid {
	h := grid{g.size, slices.Clone(g.cells)}
	for row := range g.size.Rows {
		slices.Reverse(h.cells[row*g.size.Cols:][:g.size.Cols])
	}
	return h
}

// shifted moves the cells down and to the right, around the edges.
func (g grid) shifted(rows, cols int) grid {
	h := grid{g.size, make([]bool, len(g.cells))}
	for k, on := range g.cells {
		h.cells[(k/g.size.Cols+rows)%g.size.Rows*g.size.Cols+(k+cols)%g.size.Cols] = on
	}
	return h
}

// ways lists the turns, mirror images and shifts that leave boards their size and,
// pressed cell by cell, their rule.
func ways(rule string, size puzzle.Size, torus bool) (kept []func(grid) grid) {
	keeps := func(way func(grid) grid) bool {
		for k := range size.Cells() {
			pressed, image := grid{size, make([]bool, size.Cells())}, grid{size, make([]bool, size.Cells())}
			image.cells[k] = true
			at := slices.Index(way(image).cells, true)
			image.cells[k] = false
			pressed.press(rule, k/size.Cols, k%size.Cols)
			if image.press(rule, at/size.Cols, at%size.Cols); way(pressed).text() != image.text() {
				return false
			}
		}
		return true
	}
	rows, cols := 1, 1
	if torus {
		rows, cols = size.Rows, size.Cols
	}
	for i := range 8 * rows * cols {
		way := func(g grid) grid {
			for range i % 4 {
				g = g.quarterTurn()
			}
			if i/4%2 == 1 {
				g = g.mirrored()
			}
			return g.shifted(i/8%rows, i/8/rows)
		}
		if way(grid{size, make([]bool, size.Cells())}).size == size && keeps(way) {
			kept = append(kept, way)
		}
	}
	return kept
}

// TestCanonical compares with all images that can be had by turning grids of
// bools, of those turns that keep the rule cell by cell.
func TestCanonical(t *testing.T) {
	rules := []string{
		"plus", "fridge", "king-torus", "x-torus", "stencil:010/011/000", "stencil:010/110/010", "stencil:110/010/011",
		"stencil:110/100/000", "stencil:001/010/100-torus", "stencil:011/010/000-torus", "stencil:010/011/010",
	}
	sizes := []puzzle.Size{
		{Rows: 1, Cols: 1}, {Rows: 1, Cols: 2}, {Rows: 5, Cols: 1}, {Rows: 2, Cols: 2}, {Rows: 2, Cols: 3}, {Rows: 3, Cols: 3}, {Rows: 4, Cols: 4}, {Rows: 5, Cols: 3}, {Rows: 2, Cols: 17},
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for _, name := range rules {
		rule, err := puzzle.ParseRule(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range sizes {
			kept := ways(name, size, rule.Torus())
			for _, target := range []puzzle.Target{puzzle.Zero, puzzle.One, puzzle.Either} {
				s := puzzle.NewSymmetries(rule, target, size)
				for _, g := range someGrids(rng, size) {
					want, images := g.text(), map[string]bool{}
					for _, way := range kept {
						image := way(g)
						texts := []string{image.text()}
						if target == puzzle.Either {
							texts = append(texts, image.inverted().text())
						}
						for _, text := range texts {
							want, images[text] = min(want, text), true
						}
					}
					got, orbit := s.Canonical([]byte("before"), []byte(g.text()))
					if string(got) != "before"+want || orbit != len(images) {
						t.Errorf("%s %s %s board %s: %s with %d images, want %s with %d", name, target, size, g.text(), got[len("before"):], orbit, want, len(images))
					}
				}
			}
		}
	}
}

func (g grid) inverted() grid {
	h := grid{g.size, slices.Clone(g.cells)}
	for k := range h.cells {
		h.cells[k] = !h.cells[k]
	}
	return h
}

// someGrids returns random grids, and some that equal their images.
func someGrids(rng *rand.Rand, size puzzle.Size) []grid {
	even := grid{size, make([]bool, size.Cells())}
	stripes := even.inverted()
	for k := range stripes.cells {
		stripes.cells[k] = k%2 == 0
	}
	some := []grid{even, even.inverted(), stripes}
	for range 6 {
		g := randomGrid(rng, size)
		some = append(some, g)
		if turned := g.quarterTurn(); turned.size == size {
			for k, on := range turned.cells {
				g.cells[k] = g.cells[k] && on
			}
			some = append(some, g)
		}
	}
	return some
}

func BenchmarkCanonical(b *testing.B) {
	for _, c := range []struct {
		rule string
		size puzzle.Size
	}{{"plus", puzzle.Size{Rows: 5, Cols: 5}}, {"plus", puzzle.Size{Rows: 16, Cols: 16}}, {"plus-torus", puzzle.Size{Rows: 5, Cols: 5}}, {"plus-torus", puzzle.Size{Rows: 16, Cols: 16}}} {
		b.Run(fmt.Sprintf("%s-%s", c.rule, c.size), func(b *testing.B) {
			rule, err := puzzle.ParseRule(c.rule)
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			var boards [][]byte
			for range 1024 {
				boards = append(boards, []byte(randomGrid(rng, c.size).text()))
			}
			s, least := puzzle.NewSymmetries(rule, puzzle.Zero, c.size), []byte(nil)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				least, _ = s.Canonical(least[:0], boards[i%len(boards)])
			}
		})
	}
}

// All yields the same images as Canonical looks at: the least of them is its least,
// and as many are different.
func TestAllSymmetries(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		rule   string
		target puzzle.Target
		size   puzzle.Size
	}{
		{"plus", puzzle.Zero, puzzle.Size{Rows: 4, Cols: 4}},
		{"fridge", puzzle.Either, puzzle.Size{Rows: 3, Cols: 5}},
		{"king-torus", puzzle.Either, puzzle.Size{Rows: 3, Cols: 3}},
		{"stencil:110/010/000-torus", puzzle.Zero, puzzle.Size{Rows: 2, Cols: 5}},
		{"stencil:110/011/010", puzzle.One, puzzle.Size{Rows: 3, Cols: 3}},
		{"x", puzzle.Either, puzzle.Size{Rows: 1, Cols: 7}},
	} {
		rule, err := puzzle.ParseRule(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		symmetries := puzzle.NewSymmetries(rule, c.target, c.size)
		for range 50 {
			board := make([]byte, c.size.Cells())
			for k := range board {
				board[k] = '0' + byte(random.IntN(2))
			}
			images := map[string]bool{}
			for from, invert := range symmetries.All() {
				image := make([]byte, len(board))
				for k, cell := range from {
					image[k] = board[cell]
					if invert {
						image[k] ^= 1
					}
				}
				images[string(image)] = true
			}
			least, orbit := symmetries.Canonical(nil, board)
			if got := slices.Min(slices.Collect(maps.Keys(images))); got != string(least) || len(images) != orbit {
				t.Errorf("%s %s: %d images of %s, the least is %s; want %d, %s", c.rule, c.size, len(images), board, got, orbit, least)
			}
		}
	}
}
