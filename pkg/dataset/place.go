package dataset

import (
	"errors"

	"github.com/parquet-go/parquet-go/encoding"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// place is where the rows of a chunk's table come from: the columns that results
// and rejects have in common.
type place struct {
	index   []int64
	line    []int64
	source  []int32  // numbers in sources, of the rows that have a source
	sources []string // distinct, in order of first appearance

	hasSource []byte // 1 per row with a source
	sourced   levels
	lined     levels
	none      levels // no row has a value
	scratch   []byte
}

// boards places the boards of a chunk: the records that are no rejects.
func (p *place) boards(c *puzzle.Chunk) error {
	p.index, p.line = p.index[:0], p.line[:0]
	from := 0
	for _, r := range c.Rejects {
		at := int(r.Index - c.First)
		p.add(c, from, at)
		from = at + 1
	}
	p.add(c, from, c.Records())
	return p.finish(c)
}

// rejects places the rejects of a chunk.
func (p *place) rejects(c *puzzle.Chunk) error {
	p.index, p.line = p.index[:0], p.line[:0]
	for _, r := range c.Rejects {
		at := int(r.Index - c.First)
		p.add(c, at, at+1)
	}
	return p.finish(c)
}

// add places the records from..to of the chunk.
func (p *place) add(c *puzzle.Chunk, from, to int) {
	for k := from; k < to; k++ {
		p.index = append(p.index, c.First+int64(k))
	}
	if len(c.Lines) > 0 {
		p.line = append(p.line, c.Lines[from:to]...)
	}
}

// finish finds the sources of the rows and encodes which columns have values.
func (p *place) finish(c *puzzle.Chunk) error {
	n := len(p.index)
	p.source, p.sources = p.source[:0], p.sources[:0]
	p.hasSource = resize(p.hasSource, n)
	var numbers map[string]int32 // of sources; made when there is more than one span
	if len(c.Spans) > 1 {
		numbers = make(map[string]int32)
	}
	row, end := 0, c.First
	for _, span := range c.Spans {
		end += int64(span.Records)
		from := row
		for row < n && p.index[row] < end {
			row++
		}
		has := byte(0)
		if span.Source != "" {
			has = 1
			p.source = appendSame(p.source, p.number(numbers, span.Source, row > from), row-from)
		}
		for i := from; i < row; i++ {
			p.hasSource[i] = has
		}
	}
	p.scratch = resize(p.scratch, n)
	clear(p.scratch)
	err := errors.Join(p.none.set(p.scratch), p.sourced.set(p.hasSource))
	if len(p.line) == 0 {
		return errors.Join(err, p.lined.set(p.scratch))
	}
	for i := range p.scratch {
		p.scratch[i] = 1
	}
	return errors.Join(err, p.lined.set(p.scratch))
}

// number returns a source's number in p.sources, adding it if it is used.
func (p *place) number(numbers map[string]int32, source string, used bool) int32 {
	if n, ok := numbers[source]; ok || !used {
		return n
	}
	n := int32(len(p.sources))
	p.sources = append(p.sources, source)
	if numbers != nil {
		numbers[source] = n
	}
	return n
}

// column returns one of the columns, with names as the memory of its dictionary.
func (p *place) column(name string, names *text) content {
	switch name {
	case colIndex:
		return content{values: encoding.Int64Values(p.index), count: len(p.index)}
	case colLine:
		return content{defined: &p.lined, values: encoding.Int64Values(p.line), count: len(p.line)}
	case colSource:
		names.reset()
		for _, s := range p.sources {
			names.add(valid(s))
		}
		return content{defined: &p.sourced, values: encoding.Int32Values(p.source), count: len(p.source), dict: names.values(), dictLen: names.count()}
	}
	panic("BUG: dataset: no column " + name)
}
