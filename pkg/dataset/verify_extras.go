package dataset

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// checkable returns the spec without the extra columns that cannot be worked out
// again because others were left out.
func checkable(spec puzzle.Spec) puzzle.Spec {
	spec.Columns = slices.Clone(spec.Columns)
	for _, x := range extraColumns(spec.Cells) {
		missing := func(name string) bool { return !slices.Contains(spec.Columns, name) }
		if slices.ContainsFunc(x.needs, missing) {
			spec.Columns = slices.DeleteFunc(spec.Columns, func(name string) bool { return name == x.name })
		}
	}
	return spec
}

// extraValues is a leaf as a row group has it.
type extraValues struct {
	leaf   *leaf
	values []parquet.Value
	starts []int // where each row begins, in a column of lists
}

// valuesOf returns the leaves of a table.
func (x *extras) valuesOf(t table) (all []extraValues) {
	if x == nil {
		return nil
	}
	for _, l := range x.leaves {
		v := extraValues{leaf: l, values: t.columns[nameOf(l.LeafColumn)]}
		if l.MaxRepetitionLevel > 0 {
			for i, value := range v.values {
				if value.RepetitionLevel() == 0 {
					v.starts = append(v.starts, i)
				}
			}
			v.starts = append(v.starts, len(v.values))
		}
		all = append(all, v)
	}
	return all
}

// checkExtras compares the extra columns of the batch, the rows from..to, with what
// its boards and answers say.
func (r *partRows) checkExtras(c *answerColumns, from, to int) {
	x := r.v.extras
	if x == nil {
		return
	}
	answers := r.answers
	answers.Solutions = r.presses
	x.reset()
	if err := x.add(r.boards, &answers); err != nil {
		r.bad(c.index[from].Int64(), "have an extra column that cannot be worked out: "+err.Error())
		return
	}
	for _, v := range c.extras {
		next := cursor{leaf: v.leaf}
		for row := from; row < to; row++ {
			if !next.equal(v.row(row)) {
				r.bad(c.index[row].Int64(), "have another "+nameOf(v.leaf.LeafColumn)+" than is worked out")
			}
		}
	}
}

// row returns what a row has: one value or null, but in a column of lists.
func (v *extraValues) row(i int) []parquet.Value {
	switch {
	case v.leaf.MaxRepetitionLevel == 0:
		return v.values[i : i+1]
	case i+1 < len(v.starts):
		return v.values[v.starts[i]:v.starts[i+1]]
	}
	return nil // there are fewer lists than rows
}

// cursor goes through a leaf's rows.
type cursor struct {
	*leaf
	level, value int // the next of both; they differ where there are nulls
}

// equal reports whether the next row is this one.
func (c *cursor) equal(row []parquet.Value) bool {
	same, last := true, false
	for i := 0; !last; i++ {
		has, rep, def := true, 0, c.MaxDefinitionLevel
		if c.MaxDefinitionLevel > 0 {
			def = int(c.defs[c.level])
			has = def == c.MaxDefinitionLevel
		}
		last = c.reps == nil || c.level+1 == len(c.reps) || c.reps[c.level+1] == 0
		if c.reps != nil {
			rep = int(c.reps[c.level])
		}
		same = same && i < len(row) && row[i].RepetitionLevel() == rep && row[i].DefinitionLevel() == def && (!has || c.is(row[i]))
		same = same && (!last || i+1 == len(row))
		if c.level++; has {
			c.value++
		}
	}
	return same
}

// is reports whether the next value is this one, which is of the leaf's type.
func (c *cursor) is(v parquet.Value) bool {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean() == (c.number[c.value] == 1)
	case parquet.Int32:
		return v.Int32() == c.number[c.value]
	case parquet.Double:
		return math.Float64bits(v.Double()) == binary.LittleEndian.Uint64(c.text.at(int(c.number[c.value])))
	}
	if c.Node.Encoding().Encoding() != format.RLEDictionary {
		return bytes.Equal(v.ByteArray(), c.text.at(c.value))
	}
	return bytes.Equal(v.ByteArray(), c.text.at(int(c.number[c.value])))
}
