// Package generate makes the boards of generated corpora. Board i of a corpus is
// a function of the spec and i alone: whoever needs some boards makes them, in any
// order, on any machine, and nobody has to hand them over.
//
//	g, err := generate.New(spec, nil)
//	...
//	g.Fill(&run, first, count) // boards first to first+count-1 of g.Count()
//
// A Generator never changes after New and may be used by many goroutines at once.
//
// Which board has which number is a promise to people who make the same boards
// elsewhere, and what verify compares datasets with: docs/generate.md specifies
// it, and no change may alter it.
package generate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// countable is the most cells of a board whose number fits a puzzle_index.
const countable = 62

// mostDrawn is how many boards there are where it is not the size that says so: the
// numbers of their random words, up to 4,097 for each, do not overflow.
const mostDrawn = 1 << 48

// wordCells is the number of cells that one random word decides.
const wordCells = 64

// Generator makes the boards of one generated corpus.
type Generator struct {
	what   puzzle.Generate
	size   puzzle.Size
	rule   puzzle.Rule
	target puzzle.Target
	count  int64
	words  int   // random words that belong to each board, or each try
	all    []int // cells, where some are chosen

	solver *solver.Solver // of GenerateMoves
	tail   *tail          // of GenerateMoves, where others are not found
	orbits *orbits        // of GenerateOrbits
}

// New returns the generator of a spec whose Generate says what to make. Boards that
// are chosen by their answers need solvers of the rule and the search limit of the
// spec; they may be nil where there are no such specs.
func New(spec puzzle.Spec, solvers *solver.Set) (*Generator, error) {
	g := &Generator{what: spec.Generate, size: spec.Size, rule: spec.Rule, target: spec.Target}
	if g.size == (puzzle.Size{}) {
		return nil, errors.New("generated boards need a size, such as 5x5")
	}
	if err := g.rule.CheckSize(g.size); err != nil {
		return nil, err
	}
	cells := g.size.Cells()
	drawn := cells // bits, of which the last one chooses between two targets
	if g.toTarget() && g.target == puzzle.Either {
		drawn++
	}
	g.words = (drawn + wordCells - 1) / wordCells
	if g.pressed() {
		if g.what.Presses > cells {
			return nil, fmt.Errorf("generate %s: %d presses at different cells: a board of %s has %d", g.what, g.what.Presses, g.size, cells)
		}
		g.words = g.what.Presses + drawn - cells
		for cell := range cells {
			g.all = append(g.all, cell)
		}
	}
	switch g.what.Kind {
	case puzzle.GenerateMoves:
		g.words++ // the lot
		if err := g.setMoves(solvers); err != nil {
			return nil, err
		}
	case puzzle.GenerateOrbits:
		if err := g.setOrbits(); err != nil {
			return nil, err
		}
	}
	if err := g.setCount(cells); err != nil {
		return nil, err
	}
	return g, nil
}

// setCount finds out how many boards there are.
func (g *Generator) setCount(cells int) error {
	there := int64(mostDrawn)
	if g.orbits != nil {
		there = g.orbits.count
	} else if cells <= countable && g.what.Countable() {
		there = 1 << cells
	} else if g.what.Kind == puzzle.GenerateAll || g.what.Count == 0 {
		return fmt.Errorf("generate %s: boards of %s cannot be counted, which takes at most %d cells", g.what, g.size, countable)
	}
	if g.what.First >= there || g.what.Count > there-g.what.First {
		return fmt.Errorf("generate %s: there are %d boards of %s", g.what, there, g.size)
	}
	if g.count = g.what.Count; g.count == 0 {
		g.count = there - g.what.First
	}
	return nil
}

// toTarget reports whether the boards are made from the target, by presses.
func (g *Generator) toTarget() bool { return g.what.Kind == puzzle.GenerateSolvable || g.pressed() }

// pressed reports whether that is a given number of presses.
func (g *Generator) pressed() bool {
	return g.what.Kind == puzzle.GeneratePresses || g.what.Kind == puzzle.GenerateMoves
}

// Count returns the number of boards.
func (g *Generator) Count() int64 { return g.count }

// Size returns the size of the boards.
func (g *Generator) Size() puzzle.Size { return g.size }

// String names the corpus: equal names mean equal boards.
func (g *Generator) String() string {
	name := g.what.String() + " " + g.size.String()
	if g.toTarget() || g.orbits != nil {
		name += " " + g.rule.String() + " " + g.target.String()
	}
	return name
}

// Sum returns the SHA-256 of String, which stands for that of the boards.
func (g *Generator) Sum() [sha256.Size]byte { return sha256.Sum256([]byte(g.String())) }

// Fill makes run the boards first to first+count-1.
func (g *Generator) Fill(run *puzzle.Run, first int64, count int) {
	if first < 0 || count < 0 || first > g.count-int64(count) {
		panic(fmt.Sprintf("BUG: generate: boards %d to %d of %d", first, first+int64(count)-1, g.count))
	}
	run.Reset(g.size, count)
	from := uint64(g.what.First + first)
	switch {
	case g.what.Kind == puzzle.GenerateMoves:
		g.chooseByMoves(*run, from)
	case g.orbits != nil:
		g.drawOrbits(*run, from)
	case g.toTarget():
		presses := puzzle.NewRun(g.size, count)
		if g.pressed() {
			for i := range count {
				g.choose(presses, i, g.all, g.what.Presses, g.what.Seed, (from+uint64(i))*uint64(g.words))
			}
		} else {
			g.draw(presses, from)
		}
		g.press(*run, presses, func(i int) bool { return g.chooses(from + uint64(i)) })
	default:
		g.draw(*run, from)
	}
}

// press makes boards of the target, by presses. one says of each board whether that is
// the target of all 1, where both are.
func (g *Generator) press(run, presses puzzle.Run, one func(i int) bool) {
	clear(run.Masks)
	g.rule.Press(run, presses)
	if g.target == puzzle.Zero {
		return
	}
	inverse := make([]uint16, run.Count) // all ones where the board is made from that of all 1
	for i := range inverse {
		if g.target == puzzle.One || one(i) {
			inverse[i] = ^uint16(0)
		}
	}
	for k := range run.BoardMasks() {
		full, masks := run.FullMask(k), run.Masks[k*run.Count:]
		for i, all := range inverse {
			masks[i] ^= all & full
		}
	}
}

// draw sets the cells of the boards from number from on: those of a number, or as
// random words say. Some boards at a time, line by line, is three times as fast as
// board by board.
func (g *Generator) draw(run puzzle.Run, from uint64) {
	cells := g.size.Cells()
	if cells > wordCells || g.size.Transposed() {
		g.drawLarge(run, from)
		return
	}
	const some = 256
	var values [some]uint64 // a board each, the last cell in bit 0
	width := g.size.Width()
	full := uint16(1)<<width - 1
	for lo := 0; lo < run.Count; lo += some {
		values := values[:min(some, run.Count-lo)]
		g.values(values, from+uint64(lo))
		for l := range run.Lines() {
			shift := (run.Lines() - 1 - l) * width & 63
			line := run.Masks[l*run.Count+lo:][:len(values)]
			for i, v := range values {
				line[i] = uint16(v>>shift) & full
			}
		}
	}
}

// values returns the boards from number from on as numbers.
func (g *Generator) values(values []uint64, from uint64) {
	cells := g.size.Cells()
	switch {
	case g.what.Kind == puzzle.GenerateAll:
		for i := range values {
			values[i] = from + uint64(i)
		}
	case g.what.Kind == puzzle.GenerateDistinct && cells < wordCells:
		for i := range values {
			values[i] = permute(g.what.Seed, cells, from+uint64(i))
		}
	default:
		for i := range values {
			values[i] = word(g.what.Seed, (from+uint64(i))*uint64(g.words)) >> (wordCells - cells)
		}
	}
}

// drawLarge is draw for boards that are more than a word, or whose lines are
// columns.
func (g *Generator) drawLarge(run puzzle.Run, from uint64) {
	clear(run.Masks)
	cells, cols := g.size.Cells(), g.size.Cols
	var value [1]uint64
	for i := range run.Count {
		b := bitSource{seed: g.what.Seed, next: (from + uint64(i)) * uint64(g.words)}
		if cells <= wordCells {
			g.values(value[:], from+uint64(i))
			b.word, b.left = value[0]<<(wordCells-cells), cells
		}
		if !g.size.Transposed() {
			for k := range run.BoardMasks() {
				run.Masks[k*run.Count+i] = b.take(run.MaskWidth(k))
			}
			continue
		}
		for k := range cells {
			if b.take(1) == 1 {
				run.SetCell(i, k/cols, k%cols)
			}
		}
	}
}

// choose sets so many of these cells of board i, all 0 before, by the words of a seed
// from number at on. It is Floyd's algorithm (Bentley and Floyd, A Sample of Brilliance,
// 1987): each set of cells is equally likely, and takes one random word for each cell.
func (g *Generator) choose(run puzzle.Run, i int, cells []int, presses int, seed, at uint64) {
	cols := g.size.Cols
	for k := range presses {
		last := len(cells) - presses + k
		high, _ := bits.Mul64(word(seed, at+uint64(k)), uint64(last)+1)
		cell := cells[high]
		if run.Cell(i, cell/cols, cell%cols) {
			cell = cells[last]
		}
		run.SetCell(i, cell/cols, cell%cols)
	}
}

// chooses reports which target a board is made from: the bit behind its random
// cells, or behind the words of its presses, is 1 for all 1.
func (g *Generator) chooses(board uint64) bool {
	last := word(g.what.Seed, (board+1)*uint64(g.words)-1)
	if g.what.Kind == puzzle.GeneratePresses {
		return last>>(wordCells-1) == 1
	}
	return last>>(wordCells-1-g.size.Cells()%wordCells)&1 == 1
}
