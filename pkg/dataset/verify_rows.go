package dataset

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf8"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// rowCheck is a check of result rows, and the first column it needs that the
// dataset does not have.
type rowCheck struct{ what, missing string }

func rowChecks(spec puzzle.Spec) []rowCheck {
	var checks []rowCheck
	for _, c := range []struct {
		what  string
		needs []string
	}{
		{"boards: as many cells as the size says", []string{colRows, colCols, colBoard}},
		{"solutions: pressed on their boards, they reach what their rows say", []string{colRows, colCols, colBoard, colStatus, colSolution, colReached}},
		{"min_moves: the presses of the solution", []string{colRows, colCols, colStatus, colMinMoves, colSolution}},
	} {
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

	file    string
	wrong   span // rows with the same message, not yet reported
	message string

	boards, presses puzzle.Run
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

// results checks result rows in batches of one size and nullity.
func (r *partRows) results(t table) {
	r.constant(t, colRule, r.v.spec.Rule.String())
	r.constant(t, colTarget, r.v.spec.Target.String())
	if !t.has(colRows, colCols) {
		return
	}
	key := func(i int) [3]int64 {
		k := [3]int64{t.number(colRows, i), t.number(colCols, i)}
		if t.has(colNullity) {
			k[2] = t.number(colNullity, i)
		}
		return k
	}
	for i := 0; i < t.rows; {
		k, j := key(i), i+1
		for j < t.rows && j-i < batchRows && key(j) == k {
			j++
		}
		size := puzzle.Size{Rows: int(k[0]), Cols: int(k[1])}
		if size.Validate() != nil || k[2] < 0 || k[2] > int64(size.Cells()) {
			for ; i < j; i++ {
				r.bad(t.number(colIndex, i), "have a size or nullity that no board has")
			}
			continue
		}
		r.batch(t, i, j, size, int(k[2]))
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
func (r *partRows) batch(t table, from, to int, size puzzle.Size, nullity int) {
	n := to - from
	r.answers.Reset(size, n)
	r.answers.Nullity = nullity
	sound := t.has(colStatus) // every row's values can be used below
	for i := range n {
		if message := r.answer(t, from+i, i); message != "" {
			r.bad(t.number(colIndex, from+i), message)
			sound = false
		}
	}
	if t.has(colBoard) {
		sound = r.cells(t, colBoard, from, &r.boards, size, n) && sound
	}
	if sound && t.has(colSolution) {
		sound = r.cells(t, colSolution, from, &r.presses, size, n)
	}
	if !sound {
		return
	}
	if t.has(colSolution, colMinMoves) {
		r.checkMoves(t, from)
	}
	if t.has(colBoard, colSolution, colReached) {
		r.checkReached(t, from)
	}
	if canCount(r.v.spec) {
		r.tally.Add(size, &r.answers)
	}
}

// answer reads row's answer into the batch's answer i. It returns what is wrong.
func (r *partRows) answer(t table, row, i int) string {
	a := &r.answers
	a.MinMoves[i], a.OptimalCount[i], a.Reached[i] = 0, 0, puzzle.Zero
	if !t.has(colStatus) {
		return ""
	}
	status, err := puzzle.ParseStatus(string(t.bytes(colStatus, row)))
	if err != nil {
		return "have an unknown status"
	}
	a.Status[i] = status
	for _, column := range [...]string{colMinMoves, colOptimalCount, colSolution, colReached} {
		want := status != puzzle.Impossible
		if column == colMinMoves || column == colOptimalCount {
			want = status == puzzle.Solved
		}
		if t.has(column) && t.null(column, row) == want {
			return "have a null, or none, in " + column + " against their status"
		}
	}
	if status == puzzle.Impossible {
		return ""
	}
	if t.has(colReached) {
		a.Reached[i], err = puzzle.ParseTarget(string(t.bytes(colReached, row)))
		if err != nil || a.Reached[i] == puzzle.Either || r.v.spec.Target != puzzle.Either && a.Reached[i] != r.v.spec.Target {
			return "reach what is not the target"
		}
	}
	if status == puzzle.Unproven {
		return ""
	}
	if t.has(colMinMoves) {
		moves := t.number(colMinMoves, row)
		if moves < 0 || moves > int64(a.Solutions.Cells()) {
			return "have min_moves that no board has"
		}
		a.MinMoves[i] = int32(moves)
	}
	if t.has(colOptimalCount) {
		count := t.number(colOptimalCount, row)
		if count < 1 || t.has(colNullity) && a.Nullity < 62 && count > 1<<a.Nullity {
			return "have an optimal_count that their nullity does not allow"
		}
		a.OptimalCount[i] = count
	}
	return ""
}

// cells reads the boards in a column's rows from from on into run.
func (r *partRows) cells(t table, column string, from int, run *puzzle.Run, size puzzle.Size, n int) bool {
	run.Reset(size, n)
	clear(run.Masks)
	ok := true
	for i := range n {
		if t.null(column, from+i) {
			continue
		}
		cells := t.bytes(column, from+i)
		parse := parseText
		if r.v.spec.Cells == CellsBits {
			parse = parseBits
		}
		if !parse(run, i, cells) {
			r.bad(t.number(colIndex, from+i), "have a "+column+" that does not fit the size")
			ok = false
		}
	}
	return ok
}

// parseText reads board i of run from its text form.
func parseText(run *puzzle.Run, i int, text []byte) bool {
	if len(text) != run.Cells() {
		return false
	}
	odd := byte(0)
	for row := range run.Rows {
		for col, c := range text[row*run.Cols : (row+1)*run.Cols] {
			if odd |= c ^ '0'; c&1 == 1 {
				run.SetCell(i, row, col)
			}
		}
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

func (r *partRows) checkMoves(t table, from int) {
	for i, status := range r.answers.Status {
		if status != puzzle.Solved {
			continue
		}
		presses := 0
		for l := range r.presses.Lines() {
			presses += bits.OnesCount16(r.presses.Masks[l*r.presses.Count+i])
		}
		if presses != int(r.answers.MinMoves[i]) {
			r.bad(t.number(colIndex, from+i), "have min_moves other than the presses of their solution")
		}
	}
}

// checkReached presses the solutions on their boards, which change.
func (r *partRows) checkReached(t table, from int) {
	r.v.spec.Rule.Press(r.boards, r.presses)
	full := uint16(1)<<r.boards.Width() - 1
	for i, status := range r.answers.Status {
		want := uint16(0)
		if r.answers.Reached[i] == puzzle.One {
			want = full
		}
		wrong := uint16(0)
		for l := range r.boards.Lines() {
			wrong |= r.boards.Masks[l*r.boards.Count+i] ^ want
		}
		if status != puzzle.Impossible && wrong != 0 {
			r.bad(t.number(colIndex, from+i), "have a solution that does not reach its target")
		}
	}
}
