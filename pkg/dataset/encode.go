package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/encoding"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
)

// Encoder turns answered chunks into row groups. Its output depends on the chunk
// alone, not on what it encoded before. It keeps its buffers: use one per
// goroutine.
type Encoder struct {
	spec             puzzle.Spec
	results, rejects *rowGroup
	extras           *extras // nil where none are chosen

	place            place // of the rows being encoded
	solved, answered levels

	// Values of the boards of a chunk, without nulls.
	boards, solutions           text
	rows, cols, nullity, status []int32
	minMoves, reached           []int32
	optimal                     []int64
	isSolved, isAnswered        []byte // 1 per board that has the value

	labels   []text // values of id and kept columns
	labeled  []levels
	hasLabel []byte // 1 per row that has a value

	reasons     []int32
	details     text
	raws        text
	names       text // dictionary of the column being written
	numbers     []int32
	seen, zeros []int32
}

// text is a list of byte strings, end to end.
type text struct {
	data []byte
	ends []uint32 // ends[0] is 0, then where each string ends
}

func (t *text) reset() { t.data, t.ends = t.data[:0], append(t.ends[:0], 0) }
func (t *text) end()   { t.ends = append(t.ends, uint32(len(t.data))) }
func (t *text) add(s string) {
	t.data = append(t.data, s...)
	t.end()
}
func (t *text) count() int              { return len(t.ends) - 1 }
func (t *text) values() encoding.Values { return encoding.ByteArrayValues(t.data, t.ends) }

// NewEncoder returns an encoder for the jobs of one spec. Some extra columns need
// the solvers of the spec's rule and search limit, which encoders can share; nil will
// do where there are none of these.
func NewEncoder(spec puzzle.Spec, solvers *solver.Set) (*Encoder, error) {
	if err := CheckSpec(spec); err != nil {
		return nil, err
	}
	layouts, err := newLayouts(spec)
	if err != nil {
		return nil, err
	}
	results, rejects := layouts[tableResults], layouts[tableRejects]
	return &Encoder{
		spec: spec, results: &rowGroup{layout: results}, rejects: &rowGroup{layout: rejects},
		extras: newExtras(spec, results, solvers),
	}, nil
}

// Encode returns a chunk's results and rejects, each as a Parquet file of one
// row group, or nil where it has no rows. answers[i] answers c.Runs[i]. The
// bytes are valid until the next call.
func (e *Encoder) Encode(c *puzzle.Chunk, answers []puzzle.Answers) (results, rejects []byte, err error) {
	if err := checkChunk(c, answers); err != nil {
		return nil, nil, fmt.Errorf("encode chunk at record %d: %w", c.First, err)
	}
	if c.Boards() > 0 && !rowless(e.spec) {
		if results, err = e.encodeResults(c, answers); err != nil {
			return nil, nil, fmt.Errorf("encode results at record %d: %w", c.First, err)
		}
	}
	if len(c.Rejects) > 0 {
		if rejects, err = e.encodeRejects(c); err != nil {
			return nil, nil, fmt.Errorf("encode rejects at record %d: %w", c.First, err)
		}
	}
	return results, rejects, nil
}

// checkChunk reports a chunk whose lists do not fit each other.
func checkChunk(c *puzzle.Chunk, answers []puzzle.Answers) error {
	if len(answers) != len(c.Runs) {
		return fmt.Errorf("answers to %d runs of %d", len(answers), len(c.Runs))
	}
	for i := range answers {
		a, run := &answers[i], c.Runs[i]
		n := run.Count
		if len(a.Status) != n || len(a.MinMoves) != n || len(a.OptimalCount) != n || len(a.Reached) != n || a.Solutions.Count != n || a.Solutions.Size != run.Size {
			return fmt.Errorf("answers to run %d do not fit its %d boards of %s", i, n, run.Size)
		}
	}
	records := c.Records()
	if len(c.Lines) != 0 && len(c.Lines) != records {
		return fmt.Errorf("%d lines of %d records", len(c.Lines), records)
	}
	if len(c.Labels) > 1+puzzle.MaxKeep {
		return fmt.Errorf("%d lists of labels", len(c.Labels))
	}
	for i := range c.Labels {
		if n := c.Labels[i].Len(); n != records {
			return fmt.Errorf("%d labels of %d records", n, records)
		}
	}
	spanned := 0
	for _, s := range c.Spans {
		spanned += s.Records
	}
	if spanned != records {
		return fmt.Errorf("spans of %d records, not %d", spanned, records)
	}
	next := c.First
	for _, r := range c.Rejects {
		if r.Index < next || r.Index >= c.First+int64(records) {
			return fmt.Errorf("reject %d is out of order or out of the chunk", r.Index)
		}
		next = r.Index + 1
	}
	return nil
}

func (e *Encoder) encodeResults(c *puzzle.Chunk, answers []puzzle.Answers) ([]byte, error) {
	if err := e.gather(c, answers); err != nil {
		return nil, err
	}
	if err := e.place.boards(c); err != nil {
		return nil, err
	}
	if err := e.gatherLabels(c); err != nil {
		return nil, err
	}
	n := c.Boards()
	e.results.begin(n)
	for _, name := range e.spec.Columns {
		if leaves := e.extras.of(name); leaves != nil {
			if err := e.addLeaves(leaves); err != nil {
				return nil, err
			}
		} else if err := e.results.add(e.resultColumn(name, n)); err != nil {
			return nil, err
		}
	}
	for i := range e.spec.Keep {
		if err := e.results.add(e.labelColumn(1 + i)); err != nil {
			return nil, err
		}
	}
	return e.results.finish()
}

// resultColumn returns a result column of n rows.
func (e *Encoder) resultColumn(name string, n int) content {
	switch name {
	case colIndex, colSource, colLine:
		return e.place.column(name, &e.names)
	case colID:
		return e.labelColumn(0)
	case colRule:
		return e.constant(e.spec.Rule.String(), n)
	case colTarget:
		return e.constant(e.spec.Target.String(), n)
	case colRows:
		return e.numeric(e.rows, nil)
	case colCols:
		return e.numeric(e.cols, nil)
	case colNullity:
		return e.numeric(e.nullity, nil)
	case colMinMoves:
		return e.numeric(e.minMoves, &e.solved)
	case colStatus:
		return e.named(e.status, nil, func(i int32) string { return puzzle.Status(i).String() })
	case colReached:
		return e.named(e.reached, &e.answered, func(i int32) string { return puzzle.Target(i).String() })
	case colBoard:
		return e.cells(&e.boards, nil)
	case colSolution:
		return e.cells(&e.solutions, &e.answered)
	case colOptimalCount:
		return content{defined: &e.solved, values: encoding.Int64Values(e.optimal), count: len(e.optimal)}
	}
	panic("BUG: dataset: no column " + name)
}

// labelColumn returns the ids (0) or the values of a kept column.
func (e *Encoder) labelColumn(i int) content {
	if i >= len(e.labels) {
		e.names.reset()
		return content{defined: &e.place.none, values: e.names.values()}
	}
	return content{defined: &e.labeled[i], values: e.labels[i].values(), count: e.labels[i].count()}
}

func (e *Encoder) cells(t *text, defined *levels) content {
	c := content{defined: defined, values: t.values(), count: t.count()}
	if e.spec.Cells == CellsText {
		c.cells = len(t.data)
	}
	return c
}

// constant is a column with one value in all n rows.
func (e *Encoder) constant(name string, n int) content {
	if len(e.zeros) < n {
		e.zeros = make([]int32, n)
	}
	e.names.reset()
	e.names.add(name)
	return content{values: encoding.Int32Values(e.zeros[:n]), count: n, dict: e.names.values(), dictLen: 1}
}

// numeric is a dictionary column of small numbers, which become numbers of the
// dictionary in place.
func (e *Encoder) numeric(values []int32, defined *levels) content {
	e.compact(values)
	return content{defined: defined, values: encoding.Int32Values(values), count: len(values), dict: encoding.Int32Values(e.numbers), dictLen: len(e.numbers)}
}

// named is numeric with a name for each number.
func (e *Encoder) named(values []int32, defined *levels, name func(int32) string) content {
	e.compact(values)
	e.names.reset()
	for _, n := range e.numbers {
		e.names.add(name(n))
	}
	return content{defined: defined, values: encoding.Int32Values(values), count: len(values), dict: e.names.values(), dictLen: len(e.numbers)}
}

// compact replaces values, which are small and not negative, by their ranks
// among the distinct ones, which it leaves in e.numbers.
func (e *Encoder) compact(values []int32) {
	e.numbers = e.numbers[:0]
	if len(values) == 0 {
		return
	}
	top := int(slices.Max(values))
	if len(e.seen) <= top {
		e.seen = make([]int32, top+1)
	}
	seen := e.seen[:top+1]
	clear(seen)
	for _, v := range values {
		seen[v] = 1
	}
	for v, used := range seen {
		if used != 0 {
			seen[v] = int32(len(e.numbers))
			e.numbers = append(e.numbers, int32(v))
		}
	}
	for i, v := range values {
		values[i] = seen[v]
	}
}

// gather collects the values of a chunk's boards.
func (e *Encoder) gather(c *puzzle.Chunk, answers []puzzle.Answers) error {
	n := c.Boards()
	e.boards.reset()
	e.solutions.reset()
	e.rows, e.cols, e.nullity = e.rows[:0], e.cols[:0], e.nullity[:0]
	e.status, e.minMoves, e.reached, e.optimal = e.status[:0], e.minMoves[:0], e.reached[:0], e.optimal[:0]
	e.isSolved, e.isAnswered = resize(e.isSolved, n), resize(e.isAnswered, n)
	e.extras.reset()
	done := 0
	for i, run := range c.Runs {
		a := &answers[i]
		e.rows = appendSame(e.rows, int32(run.Rows), run.Count)
		e.cols = appendSame(e.cols, int32(run.Cols), run.Count)
		e.nullity = appendSame(e.nullity, int32(a.Nullity), run.Count)
		if err := e.gatherAnswers(a, done); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		e.gatherCells(run, a)
		if err := e.extras.add(run, a); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		done += run.Count
	}
	return errors.Join(e.solved.set(e.isSolved), e.answered.set(e.isAnswered))
}

// gatherAnswers collects a run's answers besides their cells. The run's first
// board is row done of the chunk.
func (e *Encoder) gatherAnswers(a *puzzle.Answers, done int) error {
	limit := int32(a.Solutions.Cells())
	for i, status := range a.Status {
		moves, reached := a.MinMoves[i], a.Reached[i]
		if status > puzzle.Unproven || moves < 0 || moves > limit || reached > puzzle.One {
			return fmt.Errorf("board %d: no such answer: %s, %d moves, %s reached", i, status, moves, reached)
		}
		e.status = append(e.status, int32(status))
		e.isSolved[done+i], e.isAnswered[done+i] = 0, 0
		if status == puzzle.Solved {
			e.isSolved[done+i] = 1
			e.minMoves = append(e.minMoves, moves)
			e.optimal = append(e.optimal, a.OptimalCount[i])
		}
		if status != puzzle.Impossible {
			e.isAnswered[done+i] = 1
			e.reached = append(e.reached, int32(reached))
		}
	}
	return nil
}

func (e *Encoder) gatherCells(run puzzle.Run, a *puzzle.Answers) {
	form := puzzle.Run.AppendText
	if e.spec.Cells == CellsBits {
		form = puzzle.Run.AppendBits
	}
	for i, status := range a.Status {
		e.boards.data = form(run, e.boards.data, i)
		e.boards.end()
		if status != puzzle.Impossible {
			e.solutions.data = form(a.Solutions, e.solutions.data, i)
			e.solutions.end()
		}
	}
}

// gatherLabels collects the labels of the rows that e.place has found.
func (e *Encoder) gatherLabels(c *puzzle.Chunk) error {
	e.labels = resize(e.labels, len(c.Labels))
	e.labeled = resize(e.labeled, len(c.Labels))
	e.hasLabel = resize(e.hasLabel, len(e.place.index))
	for i := range c.Labels {
		t := &e.labels[i]
		t.reset()
		for row, index := range e.place.index {
			label := c.Labels[i].At(int(index - c.First))
			e.hasLabel[row] = 0
			if len(label) > 0 {
				e.hasLabel[row] = 1
				t.data = append(t.data, label...)
				t.end()
			}
		}
		if err := e.labeled[i].set(e.hasLabel); err != nil {
			return err
		}
	}
	return nil
}

func appendSame(dst []int32, v int32, n int) []int32 {
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	for i := from; i < len(dst); i++ {
		dst[i] = v
	}
	return dst
}

func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

func (e *Encoder) encodeRejects(c *puzzle.Chunk) ([]byte, error) {
	if err := e.place.rejects(c); err != nil {
		return nil, err
	}
	var reasons []puzzle.Reason
	e.reasons = e.reasons[:0]
	e.details.reset()
	e.raws.reset()
	for _, r := range c.Rejects {
		at := slices.Index(reasons, r.Reason)
		if at < 0 {
			at = len(reasons)
			reasons = append(reasons, r.Reason)
		}
		e.reasons = append(e.reasons, int32(at))
		e.details.add(valid(r.Detail))
		e.raws.add(cut(valid(string(r.Raw)), puzzle.MaxRaw))
	}
	e.rejects.begin(len(c.Rejects))
	for _, field := range e.rejects.layout.schema.Fields() {
		var col content
		switch name := field.Name(); name {
		case colReason:
			col = e.named(e.reasons, nil, func(i int32) string { return valid(string(reasons[i])) })
		case colDetail:
			col = content{values: e.details.values(), count: e.details.count()}
		case colRaw:
			col = content{values: e.raws.values(), count: e.raws.count()}
		default:
			col = e.place.column(name, &e.names)
		}
		if err := e.rejects.add(col); err != nil {
			return nil, err
		}
	}
	return e.rejects.finish()
}

// valid returns s as valid UTF-8: each run of bytes that is not becomes U+FFFD.
func valid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// cut returns the first whole characters of s, at most limit bytes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
