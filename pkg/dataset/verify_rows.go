package dataset

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// rowCheck is a check of result rows, and the first column it needs that the
// dataset does not have.
type rowCheck struct{ what, missing string }

func rowChecks(spec puzzle.Spec) []rowCheck {
	var checks []rowCheck
	type need struct {
		what  string
		needs []string
	}
	all := []need{
		{"boards: as many cells as the size says", []string{colRows, colCols, colBoard}},
		{"solutions: pressed on their boards, they reach what their rows say", []string{colRows, colCols, colBoard, colStatus, colSolution, colReached}},
		{"min_moves: the presses of the solution", []string{colRows, colCols, colStatus, colMinMoves, colSolution}},
	}
	if spec.Generate.Kind != "" {
		all = append(all, need{"boards: made again, they are the same", []string{colRows, colCols, colBoard}})
	}
	for _, x := range extraColumns(spec.Cells) {
		if slices.Contains(spec.Columns, x.name) {
			all = append(all, need{x.name + ": worked out again, it is the same", x.needs})
		}
	}
	for _, c := range all {
		check := rowCheck{what: c.what}
		for _, name := range c.needs {
			if check.missing == "" && !slices.Contains(spec.Columns, name) {
				check.missing = name
			}
		}
		checks = append(checks, check)
	}
	return checks
}

// canCount reports whether the statistics can be counted from result rows.
func canCount(spec puzzle.Spec) bool {
	for _, name := range []string{colRows, colCols, colNullity, colStatus, colMinMoves, colOptimalCount} {
		if !slices.Contains(spec.Columns, name) {
			return false
		}
	}
	return true
}

// span is a range of puzzle_index values, both inclusive.
type span struct{ first, last int64 }

// partRows checks the rows of a part.
type partRows struct {
	v      *verifier
	part   *Files
	footer Footer
	tally  tally.Tally
	found  []span // puzzle_index values of the rows read
	rows   int64  // read

	file    string
	wrong   span // rows with the same message, not yet reported
	message string

	boards, presses puzzle.Run
	made            puzzle.Run
	answers         puzzle.Answers
}

func newPartRows(v *verifier, p *Files) *partRows { return &partRows{v: v, part: p} }

// read checks a file of the part and all of its rows. It returns false if it
// cannot go on.
func (r *partRows) read(file File, table string) bool {
	r.file = file.Name
	first, last := r.part.FirstIndex, r.part.FirstIndex+r.part.Records-1
	f, done, err := r.v.open(file.Name, r.v.layouts[table].open)
	if err != nil {
		r.v.rows(file.Name, first, last, "unreadable: %v", err)
		return false
	}
	defer done()
	if r.footer, err = r.v.checkFooter(f, r.part, file, table); err != nil {
		r.v.rows(file.Name, first, last, "in doubt: %v", err)
		return false
	}
	for _, group := range f.RowGroups() {
		t, err := readGroup(group)
		if err != nil {
			r.v.rows(file.Name, first, last, "unreadable: %v", err)
			return false
		}
		if !r.place(t) {
			return false
		}
		if table == tableResults {
			r.results(t)
		} else {
			r.rejects(t)
		}
		r.rows += int64(t.rows)
		r.v.passed(r.part.FirstIndex + min(r.rows, r.part.Records))
	}
	r.flush()
	return true
}

// place notes which records the rows are.
func (r *partRows) place(t table) bool {
	ok := true
	for _, v := range t.columns[colIndex] {
		index := v.Int64()
		n := len(r.found) - 1
		switch {
		case index < r.part.FirstIndex || index >= r.part.FirstIndex+r.part.Records:
			r.bad(index, fmt.Sprintf("out of place: the part has %d–%d", r.part.FirstIndex, r.part.FirstIndex+r.part.Records-1))
			ok = false
		case n >= 0 && r.found[n].last+1 == index:
			r.found[n].last++
		default:
			r.found = append(r.found, span{index, index})
		}
	}
	if !ok {
		r.flush()
	}
	return ok
}

// finish reports records that are no row or two, and compares the counts.
func (r *partRows) finish() {
	if rowless(r.v.spec) {
		r.finishCounts()
		return
	}
	slices.SortFunc(r.found, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	next, end := r.part.FirstIndex, r.part.FirstIndex+r.part.Records
	for _, s := range append(r.found, span{end, end}) {
		if s.first > next {
			r.v.rows(r.part.Results.Name, next, s.first-1, "missing: they are neither in results nor in rejects")
		}
		if s.first < next {
			r.v.rows(r.part.Results.Name, s.first, min(s.last, next-1), "are there twice")
		}
		next = max(next, s.last+1)
	}
	for _, s := range r.found {
		r.v.report.Rows += s.last - s.first + 1
	}
	stored, err := tally.Parse(r.footer.Tally)
	if err != nil {
		panic("BUG: dataset: checked footer: " + err.Error())
	}
	if canCount(r.v.spec) && !stored.Equal(&r.tally) {
		r.v.rows(r.part.Results.Name, r.part.FirstIndex, end-1, "do not add up to the footer's tally: %s", difference(stored, &r.tally))
	}
}

// finishCounts is finish for a part that has only counts of its boards, which
// with those of the rejects add up to its records: the footer was checked.
func (r *partRows) finishCounts() {
	first, last := r.part.FirstIndex, r.part.FirstIndex+r.part.Records-1
	rejects := r.tally // of the rejects' rows: there are no others
	stored, err := tally.Parse(r.footer.Tally)
	if err != nil {
		panic("BUG: dataset: checked footer: " + err.Error())
	}
	for k := 1; k < len(r.found); k++ {
		if r.found[k].first <= r.found[k-1].last {
			r.v.rows(r.file, r.found[k].first, r.found[k].last, "are there twice, or out of order")
		}
	}
	if got, want := rejects.Rejects(), stored.Rejects(); !slices.Equal(got, want) {
		r.v.rows(r.file, first, last, "do not add up to the footer's tally: rejects by reason are %v, want %v", got, want)
	}
	r.v.report.Rows += rejects.Rejected()
	r.tally = *stored
}

// bad notes that a record's row is wrong. Neighbours that are wrong in the same
// way become one problem.
func (r *partRows) bad(index int64, message string) {
	if r.message == message && r.wrong.last+1 == index {
		r.wrong.last = index
		return
	}
	r.flush()
	r.wrong, r.message = span{index, index}, message
}

func (r *partRows) flush() {
	if r.message != "" {
		r.v.rows(r.file, r.wrong.first, r.wrong.last, "%s", r.message)
		r.message = ""
	}
}

func (r *partRows) rejects(t table) {
	for i := range t.rows {
		index := t.number(colIndex, i)
		raw, detail := t.bytes(colRaw, i), t.bytes(colDetail, i)
		if len(raw) > puzzle.MaxRaw || !utf8.Valid(raw) || !utf8.Valid(detail) {
			r.bad(index, "have a text that is too long or not UTF-8")
		}
		r.tally.AddRejects(puzzle.Reason(t.bytes(colReason, i)), 1)
	}
}

const batchRows = 1024 // boards checked together; their cells stay in the cache

// answerColumns is the columns of result rows; nil where the dataset has none.
type answerColumns struct {
	index, rows, cols, nullity, status, moves, optimal, reached, board, solution []parquet.Value

	extras []extraValues
}

func columnsOf(t table, x *extras) *answerColumns {
	return &answerColumns{
		extras: x.valuesOf(t),
		index:  t.columns[colIndex], rows: t.columns[colRows], cols: t.columns[colCols], nullity: t.columns[colNullity],
		status: t.columns[colStatus], moves: t.columns[colMinMoves], optimal: t.columns[colOptimalCount],
		reached: t.columns[colReached], board: t.columns[colBoard], solution: t.columns[colSolution],
	}
}

// results checks result rows in batches of one size and nullity.
func (r *partRows) results(t table) {
	r.constant(t, colRule, r.v.spec.Rule.String())
	r.constant(t, colTarget, r.v.spec.Target.String())
	c := columnsOf(t, r.v.extras)
	if c.rows == nil || c.cols == nil {
		return
	}
	key := func(i int) [3]int32 {
		k := [3]int32{c.rows[i].Int32(), c.cols[i].Int32()}
		if c.nullity != nil {
			k[2] = c.nullity[i].Int32()
		}
		return k
	}
	for i := 0; i < t.rows; {
		k, j := key(i), i+1
		for j < t.rows && j-i < batchRows && key(j) == k {
			j++
		}
		size := puzzle.Size{Rows: int(k[0]), Cols: int(k[1])}
		if r.v.spec.Rule.CheckSize(size) != nil || k[2] < 0 || int(k[2]) > size.Cells() {
			for ; i < j; i++ {
				r.bad(c.index[i].Int64(), "have a size or nullity that no board has")
			}
			continue
		}
		r.batch(c, i, j, size, int(k[2]))
		i = j
	}
}

func (r *partRows) constant(t table, column, want string) {
	for i, v := range t.columns[column] {
		if string(v.ByteArray()) != want {
			r.bad(t.number(colIndex, i), "have another "+column+" than "+want)
		}
	}
}

// batch checks the rows from..to, which have one size and nullity.
func (r *partRows) batch(c *answerColumns, from, to int, size puzzle.Size, nullity int) {
	n := to - from
	r.answers.Reset(size, n)
	r.answers.Nullity = nullity
	sound := c.status != nil // every row's values can be used below
	for i := 0; i < n && c.status != nil; i++ {
		if message := r.answer(c, from+i, i); message != "" {
			r.bad(c.index[from+i].Int64(), message)
			sound = false
		}
	}
	if c.board != nil {
		sound = r.cells(c, colBoard, c.board[from:to], from, &r.boards) && sound
	}
	if c.solution != nil && sound {
		sound = r.cells(c, colSolution, c.solution[from:to], from, &r.presses)
	}
	if !sound {
		return
	}
	if c.board != nil && r.v.generator != nil {
		r.checkMade(c, from)
	}
	if c.solution != nil && c.moves != nil {
		r.checkMoves(c, from)
	}
	r.checkExtras(c, from, to)
	if c.board != nil && c.solution != nil && c.reached != nil {
		r.checkReached(c, from)
	}
	if canCount(r.v.spec) {
		r.tally.Add(size, &r.answers)
	}
}

// answer reads row's answer into the batch's answer i. It returns what is wrong.
func (r *partRows) answer(c *answerColumns, row, i int) string {
	a := &r.answers
	a.MinMoves[i], a.OptimalCount[i], a.Reached[i] = 0, 0, puzzle.Zero
	status, err := puzzle.ParseStatus(string(c.status[row].ByteArray()))
	if err != nil {
		return "have an unknown status"
	}
	a.Status[i] = status
	solved, answered := status == puzzle.Solved, status != puzzle.Impossible
	switch {
	case misplaced(c.moves, row, solved), misplaced(c.optimal, row, solved),
		misplaced(c.solution, row, answered), misplaced(c.reached, row, answered):
		return "have a null, or none, against their status"
	}
	if answered && c.reached != nil {
		a.Reached[i], err = puzzle.ParseTarget(string(c.reached[row].ByteArray()))
		if err != nil || a.Reached[i] == puzzle.Either || r.v.spec.Target != puzzle.Either && a.Reached[i] != r.v.spec.Target {
			return "reach what is not the target"
		}
	}
	if solved && c.moves != nil {
		a.MinMoves[i] = c.moves[row].Int32()
		if a.MinMoves[i] < 0 || int(a.MinMoves[i]) > a.Solutions.Cells() {
			return "have min_moves that no board has"
		}
	}
	if solved && c.optimal != nil {
		count := c.optimal[row].Int64()
		if count < 1 || c.nullity != nil && a.Nullity < 62 && count > 1<<a.Nullity {
			return "have an optimal_count that their nullity does not allow"
		}
		a.OptimalCount[i] = count
	}
	return ""
}

// misplaced reports whether a column that is there has a null where it should
// have a value, or the other way round.
func misplaced(column []parquet.Value, row int, want bool) bool {
	return column != nil && column[row].IsNull() == want
}

// cells reads a batch's boards from a column into run, for which it has its size.
func (r *partRows) cells(c *answerColumns, name string, column []parquet.Value, from int, run *puzzle.Run) bool {
	run.Reset(r.answers.Solutions.Size, len(column))
	clear(run.Masks)
	parse := parseText
	if r.v.spec.Cells == CellsBits {
		parse = parseBits
	}
	ok := true
	for i, v := range column {
		if !v.IsNull() && !parse(run, i, v.ByteArray()) {
			r.bad(c.index[from+i].Int64(), "have a "+name+" that does not fit the size")
			ok = false
		}
	}
	return ok
}

// parseText reads board i of run, all 0 before, from its text form.
func parseText(run *puzzle.Run, i int, text []byte) bool {
	if len(text) != run.Cells() {
		return false
	}
	odd := byte(0)
	if run.Transposed() {
		for k, c := range text {
			odd |= c ^ '0'
			if c == '1' {
				run.SetCell(i, k/run.Cols, k%run.Cols)
			}
		}
		return odd <= 1
	}
	for m := range run.BoardMasks() {
		width := run.MaskWidth(m)
		mask := uint16(0)
		for _, c := range text[:width] {
			odd |= c ^ '0'
			mask = mask<<1 | uint16(c&1)
		}
		run.Masks[m*run.Count+i], text = mask, text[width:]
	}
	return odd <= 1
}

// parseBits reads board i of run from its packed form.
func parseBits(run *puzzle.Run, i int, packed []byte) bool {
	cells := run.Cells()
	if len(packed) != (cells+7)/8 || cells%8 != 0 && packed[len(packed)-1]<<(cells%8) != 0 {
		return false
	}
	for k := range cells {
		if packed[k/8]>>(7-k%8)&1 == 1 {
			run.SetCell(i, k/run.Cols, k%run.Cols)
		}
	}
	return true
}

// checkMade makes the batch's boards again and compares.
func (r *partRows) checkMade(c *answerColumns, from int) {
	g, n := r.v.generator, r.boards.Count
	for i, next := 0, 0; i < n; i = next {
		first := c.index[from+i].Int64()
		for next = i + 1; next < n && c.index[from+next].Int64() == first+int64(next-i); next++ {
		}
		count := next - i
		fits := r.boards.Size == g.Size() && first+int64(count) <= g.Count()
		if fits {
			g.Fill(&r.made, first, count)
		}
		for k := range count {
			same := fits
			for m := 0; same && m < r.boards.BoardMasks(); m++ {
				same = r.made.Masks[m*count+k] == r.boards.Masks[m*n+i+k]
			}
			if !same {
				r.bad(first+int64(k), "have another board than is generated")
			}
		}
	}
}

func (r *partRows) checkMoves(c *answerColumns, from int) {
	for i, status := range r.answers.Status {
		if status != puzzle.Solved {
			continue
		}
		presses := 0
		for m := range r.presses.BoardMasks() {
			presses += bits.OnesCount16(r.presses.Masks[m*r.presses.Count+i])
		}
		if presses != int(r.answers.MinMoves[i]) {
			r.bad(c.index[from+i].Int64(), "have min_moves other than the presses of their solution")
		}
	}
}

// checkReached presses the solutions on their boards, which change.
func (r *partRows) checkReached(c *answerColumns, from int) {
	r.v.spec.Rule.Press(r.boards, r.presses)
	n := r.boards.Count
	var wrong [batchRows]uint16
	for m := range r.boards.BoardMasks() {
		full := r.boards.FullMask(m)
		for i, mask := range r.boards.Masks[m*n : (m+1)*n] {
			wrong[i] |= mask ^ full&-uint16(r.answers.Reached[i])
		}
	}
	for i, status := range r.answers.Status {
		if status != puzzle.Impossible && wrong[i] != 0 {
			r.bad(c.index[from+i].Int64(), "have a solution that does not reach its target")
		}
	}
}
