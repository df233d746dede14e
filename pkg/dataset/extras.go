package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// extraColumn is a result column that there is only where it is chosen: it can be
// worked out from others.
type extraColumn struct {
	column
	needs  []string // the columns it can be worked out from again
	leaves []fill   // how each of its columns of values is filled
}

// fill appends the values of some boards to those of a leaf.
type fill func(x *extras, l *leaf, b *batch) error

func extraColumns(cells string) []extraColumn {
	number := dict(parquet.Leaf(parquet.Int32Type))
	board := []string{colRows, colCols, colBoard}
	place := inOrder(column{"row", number}, column{"col", number})
	return []extraColumn{
		{column{colLit, number}, board, []fill{fillLit}},
		{column{colCanonical, deltaLength(cellsType(cells))}, board, []fill{fillCanonical}},
		{column{colOrbit, number}, board, []fill{fillOrbit}},
		{column{colSplit, dict(parquet.String())}, board, []fill{fillSplit}},
		{column{colUniqueOptimum, parquet.Optional(parquet.Encoded(parquet.Leaf(parquet.BooleanType), &parquet.Plain))},
			[]string{colRows, colCols, colStatus, colOptimalCount}, []fill{fillUnique}},
		{column{colMaxMoves, parquet.Optional(number)}, append(board, colStatus, colReached), []fill{fillMaxMoves}},
		{column{colDifficulty, parquet.Optional(dict(parquet.Leaf(parquet.DoubleType)))},
			[]string{colRows, colCols, colStatus, colMinMoves}, []fill{fillDifficulty}},
		{column{colWitness, parquet.Optional(dict(cellsType(cells)))}, append(board, colStatus), []fill{fillWitness}},
		{column{colMoves, parquet.Optional(parquet.List(place))},
			[]string{colRows, colCols, colStatus, colSolution}, []fill{fillMoves(0), fillMoves(1)}},
		{column{colGrid, parquet.List(parquet.List(number))}, board, []fill{fillGrid}},
	}
}

// extras works out the chosen extra columns. It keeps its memory: use one per
// goroutine.
type extras struct {
	spec    puzzle.Spec
	solvers *solver.Set
	columns map[string][]*leaf
	leaves  []*leaf // of all columns
	orbits  bool    // whether a column needs the boards' images
	sizes   map[puzzle.Size]*sizeFacts
	cells   int // of all these sizes

	batch   batch
	longest solver.Longest
	scratch []byte
	numbers []int32
}

// batch is boards of one size, and what several columns want of them.
type batch struct {
	run       puzzle.Run
	answers   *puzzle.Answers
	facts     *sizeFacts
	canonical text // as text
	orbits    []int32
}

// leaf is the values of a column of values, nulls left out.
type leaf struct {
	parquet.LeafColumn
	fill   fill
	needs  []string
	reps   []byte           // repetition levels, in a column of lists
	defs   []byte           // definition levels, in one of lists or with nulls
	number []int32          // values or, where there are names, their numbers
	text   text             // values, or names
	named  map[string]int32 // numbers of the names
	levels levels
}

func (l *leaf) reset() {
	l.reps, l.defs, l.number = l.reps[:0], l.defs[:0], l.number[:0]
	l.text.reset()
	clear(l.named)
}

// present tells whether the next board has a value.
func (l *leaf) present(is bool) bool {
	def := byte(0)
	if is {
		def = 1
	}
	l.defs = append(l.defs, def)
	return is
}

// name appends a name's number.
func (l *leaf) name(name []byte) {
	n, ok := l.named[string(name)]
	if !ok {
		n = int32(len(l.named))
		l.named[string(name)] = n
		l.text.data = append(l.text.data, name...)
		l.text.end()
	}
	l.number = append(l.number, n)
}

// newExtras returns what works out the extra columns of a spec, nil where it has
// none. The layout is that of its results.
func newExtras(spec puzzle.Spec, results *layout, solvers *solver.Set) *extras {
	x := &extras{spec: spec, solvers: solvers, columns: map[string][]*leaf{}}
	for _, c := range extraColumns(spec.Cells) {
		if !slices.Contains(spec.Columns, c.name) {
			continue
		}
		x.orbits = x.orbits || c.name == colCanonical || c.name == colOrbit || c.name == colSplit
		for _, column := range results.leaves {
			if at := len(x.columns[c.name]); column.Path[0] == c.name {
				l := &leaf{LeafColumn: column, fill: c.leaves[at], needs: c.needs, named: map[string]int32{}}
				x.columns[c.name] = append(x.columns[c.name], l)
				x.leaves = append(x.leaves, l)
			}
		}
	}
	if len(x.leaves) == 0 {
		return nil
	}
	return x
}

// of returns the leaves of a column; nil where it is none of the extra ones.
func (x *extras) of(name string) []*leaf {
	if x == nil {
		return nil
	}
	return x.columns[name]
}

// reset forgets all values.
func (x *extras) reset() {
	if x == nil {
		return
	}
	for _, l := range x.leaves {
		l.reset()
	}
}

// add appends the values of a run's boards.
func (x *extras) add(run puzzle.Run, answers *puzzle.Answers) (err error) {
	if x == nil {
		return nil
	}
	b := &x.batch
	b.run, b.answers = run, answers
	if b.facts, err = x.factsOf(run.Size); err != nil {
		return err
	}
	if x.orbits {
		x.findOrbits(b)
	}
	for _, l := range x.leaves {
		if err := l.fill(x, l, b); err != nil {
			return fmt.Errorf("column %s: %w", nameOf(l.LeafColumn), err)
		}
	}
	return nil
}

func (x *extras) findOrbits(b *batch) {
	b.canonical.reset()
	b.orbits = b.orbits[:0]
	for i := range b.run.Count {
		x.scratch = b.run.AppendText(x.scratch[:0], i)
		var orbit int
		b.canonical.data, orbit = b.facts.symmetries.Canonical(b.canonical.data, x.scratch)
		b.canonical.end()
		b.orbits = append(b.orbits, int32(orbit))
	}
}

// at returns string i.
func (t *text) at(i int) []byte { return t.data[t.ends[i]:t.ends[i+1]] }

func fillLit(x *extras, l *leaf, b *batch) error {
	from := len(l.number)
	l.number = appendSame(l.number, 0, b.run.Count)
	lit := l.number[from:]
	for k := 0; k < len(b.run.Masks); k += len(lit) {
		for i, mask := range b.run.Masks[k : k+len(lit)] {
			lit[i] += int32(bits.OnesCount16(mask))
		}
	}
	return nil
}

func fillCanonical(x *extras, l *leaf, b *batch) error {
	for i := range b.run.Count {
		l.text.data = x.appendCells(l.text.data, b.canonical.at(i))
		l.text.end()
	}
	return nil
}

// appendCells appends a board's cells, given as text, as boards are stored.
func (x *extras) appendCells(dst, text []byte) []byte {
	if x.spec.Cells == CellsText {
		return append(dst, text...)
	}
	for ; len(text) > 0; text = text[min(8, len(text)):] {
		packed := byte(0)
		for i, c := range text[:min(8, len(text))] {
			packed |= c & 1 << (7 - i)
		}
		dst = append(dst, packed)
	}
	return dst
}

func fillOrbit(_ *extras, l *leaf, b *batch) error {
	l.number = append(l.number, b.orbits...)
	return nil
}

// The splits, and the hexadecimal SHA-256 of a least image from which on a board is
// in the next one: 80, 10 and 10 in 100 boards.
const (
	splitTrain, splitValidation, splitTest = "train", "validation", "test"

	fromValidation, fromTest = "cccc", "e666"
)

func fillSplit(x *extras, l *leaf, b *batch) error {
	for i := range b.run.Count {
		sum := sha256.Sum256(b.canonical.at(i))
		var start [4]byte
		hex.Encode(start[:], sum[:2])
		name := splitTrain
		if string(start[:]) >= fromTest {
			name = splitTest
		} else if string(start[:]) >= fromValidation {
			name = splitValidation
		}
		l.name([]byte(name))
	}
	return nil
}

func fillUnique(_ *extras, l *leaf, b *batch) error {
	for i, status := range b.answers.Status {
		if l.present(status == puzzle.Solved) {
			unique := int32(0)
			if b.answers.OptimalCount[i] == 1 {
				unique = 1
			}
			l.number = append(l.number, unique)
		}
	}
	return nil
}

func fillMaxMoves(x *extras, l *leaf, b *batch) error {
	x.numbers = x.longest.Append(x.numbers[:0], b.facts.solver, b.run, b.answers)
	for i, status := range b.answers.Status {
		if l.present(status == puzzle.Solved) {
			l.number = append(l.number, x.numbers[i])
		}
	}
	return nil
}

func fillDifficulty(x *extras, l *leaf, b *batch) error {
	for i, status := range b.answers.Status {
		if l.present(status == puzzle.Solved && b.facts.easier != nil) {
			x.scratch = binary.LittleEndian.AppendUint64(x.scratch[:0], math.Float64bits(b.facts.easier[b.answers.MinMoves[i]]))
			l.name(x.scratch)
		}
	}
	return nil
}

func fillWitness(x *extras, l *leaf, b *batch) error {
	for i, status := range b.answers.Status {
		if !l.present(status == puzzle.Impossible) {
			continue
		}
		x.scratch = b.run.AppendText(x.scratch[:0], i)
		w := b.facts.proofs.Least(x.scratch)
		if w == nil {
			return fmt.Errorf("board %s is said to be impossible, but nothing proves it", x.scratch)
		}
		l.name(x.appendCells(x.scratch[:0], w))
	}
	return nil
}

// fillMoves returns the fill of the moves' rows (0) or columns (1).
func fillMoves(which int) fill {
	return func(x *extras, l *leaf, b *batch) error {
		const null, empty, value = 0, 1, 2 // definition levels
		cols := b.run.Cols
		for i, status := range b.answers.Status {
			if status == puzzle.Impossible {
				l.reps, l.defs = append(l.reps, 0), append(l.defs, null)
				continue
			}
			x.scratch = b.answers.Solutions.AppendText(x.scratch[:0], i)
			rep := byte(0) // of the first
			for k, c := range x.scratch {
				if c == '1' {
					place := [2]int{k / cols, k % cols}
					l.reps, l.defs, l.number = append(l.reps, rep), append(l.defs, value), append(l.number, int32(place[which]))
					rep = 1
				}
			}
			if rep == 0 {
				l.reps, l.defs = append(l.reps, 0), append(l.defs, empty)
			}
		}
		return nil
	}
}

func fillGrid(x *extras, l *leaf, b *batch) error {
	const board, row, cell = 0, 1, 2 // repetition levels: of what the cell is the next, or the first of the next
	for i := range b.run.Count {
		x.scratch = b.run.AppendText(x.scratch[:0], i)
		for k, c := range x.scratch {
			rep := byte(cell)
			if k == 0 {
				rep = board
			} else if k%b.run.Cols == 0 {
				rep = row
			}
			l.reps, l.defs, l.number = append(l.reps, rep), append(l.defs, byte(l.MaxDefinitionLevel)), append(l.number, int32(c&1))
		}
	}
	return nil
}

// addLeaves writes a column that the encoder's extras have gathered.
func (e *Encoder) addLeaves(leaves []*leaf) error {
	for _, l := range leaves {
		c, err := e.leafColumn(l)
		if err == nil {
			err = e.results.add(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Encoder) leafColumn(l *leaf) (content, error) {
	var defined *levels
	var err error
	switch {
	case l.MaxRepetitionLevel > 0:
		defined, err = &l.levels, l.levels.setLists(l.reps, l.defs, l.LeafColumn)
	case l.MaxDefinitionLevel > 0:
		defined, err = &l.levels, l.levels.set(l.defs)
	}
	if err != nil {
		return content{}, err
	}
	switch kind := l.Node.Type().Kind(); {
	case kind == parquet.Int32:
		return e.numeric(l.number, defined), nil
	case kind == parquet.Boolean:
		packed := make([]byte, (len(l.number)+7)/8)
		for i, n := range l.number {
			packed[i/8] |= byte(n) << (i % 8)
		}
		return content{defined: defined, values: encoding.BooleanValues(packed), count: len(l.number)}, nil
	case l.Node.Encoding().Encoding() != format.RLEDictionary:
		return e.cells(&l.text, defined), nil
	default:
		names := l.text.values()
		if kind == parquet.Double {
			names = encoding.DoubleValuesFromBytes(l.text.data)
		}
		return content{defined: defined, values: encoding.Int32Values(l.number), count: len(l.number), dict: names, dictLen: l.text.count()}, nil
	}
}
