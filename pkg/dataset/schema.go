package dataset

import (
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Column names. They are in every file: do not change them.
const (
	colIndex        = "puzzle_index"
	colSource       = "source"
	colLine         = "line"
	colID           = "id"
	colRule         = "rule"
	colTarget       = "target"
	colRows         = "rows"
	colCols         = "cols"
	colBoard        = "board"
	colStatus       = "status"
	colMinMoves     = "min_moves"
	colSolution     = "solution"
	colReached      = "reached"
	colNullity      = "nullity"
	colOptimalCount = "optimal_count"

	colLit           = "lit"
	colCanonical     = "canonical"
	colOrbit         = "orbit_size"
	colSplit         = "split"
	colUniqueOptimum = "unique_optimal"
	colMaxMoves      = "max_moves"
	colDifficulty    = "difficulty"
	colWitness       = "witness"
	colMoves         = "moves"
	colGrid          = "board_grid"

	colReason = "reason"
	colDetail = "detail"
	colRaw    = "raw"

	colBoards        = "boards"
	colUniqueOptimal = "unique_optimal_boards"
	colOptimal       = "optimal_solutions"
)

// The tables of a dataset, named as their folders.
const (
	tableResults = "results"
	tableRejects = "rejects"
	tableStats   = "stats"
)

// Columns returns the names of the result columns of a dataset for which nobody
// chooses them, in schema order.
func Columns() []string {
	var names []string
	for _, c := range resultColumns(CellsText) {
		names = append(names, c.name)
	}
	return names
}

// Extras returns the names of the result columns that there are only where they are
// chosen, in schema order, behind the others.
func Extras() []string {
	var names []string
	for _, x := range extraColumns(CellsText) {
		names = append(names, x.name)
	}
	return names
}

// column is a column's name, type, nullability and encoding. The encoding is
// always said: parquet-go's default for strings differs from other writers'.
type column struct {
	name string
	parquet.Node
}

// Name implements parquet.Field.
func (c column) Name() string { return c.name }

// Value implements parquet.Field for Go structs, which we never map to rows.
func (c column) Value(reflect.Value) reflect.Value {
	panic("BUG: dataset: Go value of column " + c.name)
}

// cellsType is the type of a board's cells.
func cellsType(cells string) parquet.Node {
	if cells == CellsBits {
		return parquet.Leaf(parquet.ByteArrayType)
	}
	return parquet.String()
}

func resultColumns(cells string) []column {
	board := deltaLength(cellsType(cells))
	return []column{
		{colIndex, delta(parquet.Int64Type)},
		{colSource, parquet.Optional(dict(parquet.String()))},
		{colLine, parquet.Optional(delta(parquet.Int64Type))},
		{colID, parquet.Optional(deltaLength(parquet.String()))},
		{colRule, dict(parquet.String())},
		{colTarget, dict(parquet.String())},
		{colRows, dict(parquet.Leaf(parquet.Int32Type))},
		{colCols, dict(parquet.Leaf(parquet.Int32Type))},
		{colBoard, board},
		{colStatus, dict(parquet.String())},
		{colMinMoves, parquet.Optional(dict(parquet.Leaf(parquet.Int32Type)))},
		{colSolution, parquet.Optional(board)},
		{colReached, parquet.Optional(dict(parquet.String()))},
		{colNullity, dict(parquet.Leaf(parquet.Int32Type))},
		{colOptimalCount, parquet.Optional(delta(parquet.Int64Type))},
	}
}

func rejectColumns() []column {
	return []column{
		{colIndex, delta(parquet.Int64Type)},
		{colSource, parquet.Optional(dict(parquet.String()))},
		{colLine, parquet.Optional(delta(parquet.Int64Type))},
		{colReason, dict(parquet.String())},
		{colDetail, deltaLength(parquet.String())},
		{colRaw, deltaLength(parquet.String())},
	}
}

func statsColumns() []column {
	return []column{
		{colRule, dict(parquet.String())},
		{colTarget, dict(parquet.String())},
		{colRows, dict(parquet.Leaf(parquet.Int32Type))},
		{colCols, dict(parquet.Leaf(parquet.Int32Type))},
		{colNullity, dict(parquet.Leaf(parquet.Int32Type))},
		{colStatus, dict(parquet.String())},
		{colMinMoves, parquet.Optional(dict(parquet.Leaf(parquet.Int32Type)))},
		{colBoards, delta(parquet.Int64Type)},
		{colUniqueOptimal, delta(parquet.Int64Type)},
		{colOptimal, delta(parquet.Int64Type)},
	}
}

func dict(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.RLEDictionary) }
func delta(t parquet.Type) parquet.Node {
	return parquet.Encoded(parquet.Leaf(t), &parquet.DeltaBinaryPacked)
}
func deltaLength(n parquet.Node) parquet.Node {
	return parquet.Encoded(n, &parquet.DeltaLengthByteArray)
}

// tableSchema returns the columns of a table, in order, for a spec.
func tableSchema(table string, spec puzzle.Spec) *parquet.Schema {
	var columns []column
	switch table {
	case tableResults:
		columns = resultColumns(spec.Cells)
		for _, x := range extraColumns(spec.Cells) {
			columns = append(columns, x.column)
		}
		columns = slices.DeleteFunc(columns, func(c column) bool {
			return !slices.Contains(spec.Columns, c.name) && !(rowless(spec) && c.name == colIndex)
		})
		for _, name := range spec.Keep {
			columns = append(columns, column{name, parquet.Optional(deltaLength(parquet.String()))})
		}
	case tableRejects:
		columns = rejectColumns()
	case tableStats:
		columns = statsColumns()
	default:
		panic("BUG: dataset: no table " + table)
	}
	return parquet.NewSchema(table, inOrder(columns...))
}

// inOrder makes a group of columns, whose order parquet.Group would not keep.
func inOrder(columns ...column) parquet.Node {
	group := ordered{Group: make(parquet.Group)}
	for _, c := range columns {
		group.Group[c.name] = c.Node
		group.fields = append(group.fields, c)
	}
	return group
}

// ordered is a parquet.Group whose fields keep their order.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

// Fields implements parquet.Node.
func (o ordered) Fields() []parquet.Field { return o.fields }
