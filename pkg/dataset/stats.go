package dataset

import (
	"encoding/json"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// writeStats publishes the table of statistics.
func (d *Dir) writeStats(t *tally.Tally, in Input) (File, error) {
	out, err := d.create(tableStats, "stats.parquet")
	if err != nil {
		return File{}, err
	}
	defer out.remove()
	rows := t.Rows()
	if len(rows) > 0 {
		group, err := encodeStats(out, d.spec, rows)
		if err != nil {
			return File{}, err
		}
		if err := out.copy(group, int64(len(rows))); err != nil {
			return File{}, err
		}
	}
	footer, err := json.Marshal(statsFooter{
		SchemaVersion: SchemaVersion, Job: d.job, Table: tableStats, Input: in, Tally: t.Append(nil), Spec: d.options,
	})
	if err != nil {
		return File{}, err
	}
	if err := out.finish(footerKey, string(footer)); err != nil {
		return File{}, err
	}
	file, err := out.file()
	if err != nil {
		return File{}, err
	}
	return file, d.publish(out)
}

// encodeStats returns the rows as a Parquet file of one row group.
func encodeStats(t *tableFile, spec puzzle.Spec, rows []tally.Row) ([]byte, error) {
	g := &rowGroup{layout: t.layout}
	e := &Encoder{spec: spec}
	var boards, unique, optimal []int64
	solved := make([]byte, len(rows))
	for i, r := range rows {
		e.rows, e.cols = append(e.rows, int32(r.Rows)), append(e.cols, int32(r.Cols))
		e.nullity, e.status = append(e.nullity, int32(r.Nullity)), append(e.status, int32(r.Status))
		if r.Status == puzzle.Solved {
			solved[i] = 1
			e.minMoves = append(e.minMoves, int32(r.MinMoves))
		}
		boards, unique, optimal = append(boards, r.Boards), append(unique, r.UniqueOptimal), append(optimal, r.OptimalSolutions)
	}
	if err := e.solved.set(solved); err != nil {
		return nil, err
	}
	g.begin(len(rows))
	for _, field := range t.schema.Fields() {
		var c content
		switch name := field.Name(); name {
		case colBoards:
			c = content{values: encoding.Int64Values(boards), count: len(rows)}
		case colUniqueOptimal:
			c = content{values: encoding.Int64Values(unique), count: len(rows)}
		case colOptimal:
			c = content{values: encoding.Int64Values(optimal), count: len(rows)}
		default:
			c = e.resultColumn(name, len(rows))
		}
		if err := g.add(c); err != nil {
			return nil, fmt.Errorf("column %s: %w", field.Name(), err)
		}
	}
	return g.finish()
}
