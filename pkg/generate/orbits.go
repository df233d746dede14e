package generate

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"sort"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Boards up to symmetry. An orbit is a board with all its images. The orbits are
// numbered so that the one with a number is found at once, without looking at others:
//
// Take the first cell that is not set, and with it all cells to which symmetries that
// are left take it. They go to each other, so images of a board are images on these
// cells, too. Of the ways to set them take only the least of all its images. Two
// boards with that way are images of each other just by the symmetries that leave it as
// it is: those are the ones that are left. So the choice can be repeated with the
// cells behind; and how many orbits begin with a way is known without making them, by
// counting what each symmetry that is left leaves as it is (Burnside's lemma). It is
// the stabilizer chain of Schreier and Sims, walked along boards.

// maxMoved is the most cells that symmetries take to each other: all ways to set them
// are gone through once. Only a torus has more than 8.
const maxMoved = 25

// symmetry is one symmetry: an image has at cell k the cell from[k] of the board,
// inverted or not.
type symmetry struct {
	from   []int32
	invert bool
}

// orbits numbers the orbits of boards of one size.
type orbits struct {
	count int64
	root  *stage
}

// stage is where some cells are set, and some symmetries leave them as they are.
type stage struct {
	cells []int // to be set next, ascending; where no symmetry but one is left, all that are not set
	ways  []way // the least of their images, ascending; nil where there is nothing to choose
}

// way is a way to set the cells of a stage.
type way struct {
	bits  uint64 // of the cells, the first one highest
	first int64  // number of its first orbit among those of the stage
	next  *stage
}

// setOrbits numbers the orbits of the spec's boards.
func (g *Generator) setOrbits() error {
	cells := g.size.Cells()
	if cells > countable {
		return fmt.Errorf("generate %s: boards of %s cannot be counted, which takes at most %d cells", g.what, g.size, countable)
	}
	b := &builder{stages: map[string]*stage{}}
	seen := map[string]bool{}
	for from, invert := range puzzle.NewSymmetries(g.rule, g.target, g.size).All() {
		s := symmetry{from, invert}
		if key := s.key(nil); !seen[string(key)] { // there are several ways to some
			seen[string(key)] = true
			b.all = append(b.all, s)
		}
	}
	unset := make([]int, cells)
	for k := range unset {
		unset[k] = k
	}
	if moved := len(orbitOf(b.all, 0)); moved > maxMoved {
		return fmt.Errorf("generate %s: symmetries of %s take %d cells of %s to each other, want at most %d", g.what, g.rule, moved, g.size, maxMoved)
	}
	g.orbits = &orbits{count: countOrbits(b.all, unset), root: b.stage(b.all, unset)}
	return nil
}

// key names a symmetry.
func (s symmetry) key(dst []byte) []byte {
	for _, k := range s.from {
		dst = binary.BigEndian.AppendUint16(dst, uint16(k))
	}
	if s.invert {
		dst = append(dst, 1)
	}
	return append(dst, 0)
}

// builder makes stages, each only once.
type builder struct {
	all    []symmetry
	stages map[string]*stage
}

// stage returns the stage where some symmetries are left, and some cells not set.
func (b *builder) stage(left []symmetry, unset []int) *stage {
	if len(left) == 1 || len(unset) == 0 {
		return &stage{cells: unset}
	}
	var key []byte
	for _, s := range left {
		key = s.key(key)
	}
	for _, k := range unset {
		key = append(key, byte(k))
	}
	if s := b.stages[string(key)]; s != nil {
		return s
	}
	cells := orbitOf(left, unset[0])
	behind := slices.DeleteFunc(slices.Clone(unset), func(k int) bool { return slices.Contains(cells, k) })
	s := &stage{cells: cells}
	first := int64(0)
	moved := within(left, cells)
	for x := range uint64(1) << len(cells) {
		stay, least := stabilizer(left, moved, x)
		if !least {
			continue
		}
		s.ways = append(s.ways, way{bits: x, first: first, next: b.stage(stay, behind)})
		first += countOrbits(stay, behind)
	}
	b.stages[string(key)] = s
	return s
}

// orbitOf returns the cells to which symmetries take a cell, ascending.
func orbitOf(symmetries []symmetry, cell int) (cells []int) {
	for _, s := range symmetries {
		cells = append(cells, int(s.from[cell]))
	}
	slices.Sort(cells)
	return slices.Compact(cells)
}

// within returns, for each symmetry, which of the cells each of them shows: as the
// distances from the lowest bit of the numbers that say how they are set.
func within(symmetries []symmetry, cells []int) [][]uint8 {
	shows := make([][]uint8, len(symmetries))
	for i, s := range symmetries {
		for _, k := range cells {
			shows[i] = append(shows[i], uint8(len(cells)-1-slices.Index(cells, int(s.from[k]))))
		}
	}
	return shows
}

// stabilizer returns the symmetries that leave x as it is, and whether no image is less.
func stabilizer(symmetries []symmetry, shows [][]uint8, x uint64) (stay []symmetry, least bool) {
	for i, s := range symmetries {
		flip := uint64(0)
		if s.invert {
			flip = 1
		}
		order := 0
		for k, shift := range shows[i] {
			image, own := x>>shift&1^flip, x>>(len(shows[i])-1-k)&1
			if image != own {
				order = int(image) - int(own)
				break
			}
		}
		if order < 0 {
			return nil, false
		}
		if order == 0 {
			stay = append(stay, s)
		}
	}
	return stay, true
}

// countOrbits returns how many orbits there are of the ways to set some cells: by
// Burnside's lemma, how many ways a symmetry leaves as they are, on average.
func countOrbits(symmetries []symmetry, cells []int) int64 {
	sum := new(big.Int)
	for _, s := range symmetries {
		if cycles, ok := s.cycles(cells); ok {
			sum.Add(sum, new(big.Int).Lsh(big.NewInt(1), uint(cycles)))
		}
	}
	return sum.Div(sum, big.NewInt(int64(len(symmetries)))).Int64()
}

// cycles returns how many cycles the symmetry makes of cells, each of which is set
// as the one before it, or otherwise: where it cannot be as it would have to, ok is
// false.
func (s symmetry) cycles(cells []int) (cycles int, ok bool) {
	var seen uint64
	for _, k := range cells {
		length := 0
		for ; seen>>k&1 == 0; k = int(s.from[k]) {
			seen |= 1 << k
			length++
		}
		if length > 0 {
			cycles++
		}
		if s.invert && length%2 == 1 {
			return 0, false
		}
	}
	return cycles, true
}

// board returns the cells of the board that stands for an orbit, in dst.
func (o *orbits) board(dst []byte, number int64) {
	at := o.root
	for at.ways != nil {
		w := at.ways[sort.Search(len(at.ways), func(k int) bool { return at.ways[k].first > number })-1]
		set(dst, at.cells, w.bits)
		number -= w.first
		at = w.next
	}
	set(dst, at.cells, uint64(number))
}

// set sets cells to bits, the last one to the lowest.
func set(dst []byte, cells []int, x uint64) {
	for i, k := range cells {
		dst[k] = '0' + byte(x>>(len(cells)-1-i)&1)
	}
}

// drawOrbits sets the boards from number from on: the orbits in a random order, each
// as its least board.
func (g *Generator) drawOrbits(run puzzle.Run, from uint64) {
	symmetries := puzzle.NewSymmetries(g.rule, g.target, g.size)
	clear(run.Masks)
	board := make([]byte, g.size.Cells())
	var least []byte
	for i := range run.Count {
		g.orbits.board(board, g.orbits.permute(g.what.Seed, from+uint64(i)))
		least, _ = symmetries.Canonical(least[:0], board)
		for k, cell := range least {
			if cell == '1' {
				run.SetCell(i, k/g.size.Cols, k%g.size.Cols)
			}
		}
	}
}

// permute returns the number that a permutation of all orbits has for x. A permutation
// of more numbers is one of those below a bound if one goes on until the next of
// them (Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002): less than
// twice, on average.
func (o *orbits) permute(seed, x uint64) int64 {
	n := bits.Len64(uint64(o.count) - 1)
	if n == 0 {
		return 0
	}
	for {
		if x = permute(seed, n, x); x < uint64(o.count) {
			return int64(x)
		}
	}
}
