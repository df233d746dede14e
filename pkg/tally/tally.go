// Package tally counts answers and rejects.
//
// A Tally counts boards per group (rows, cols, nullity, status, min_moves) and
// rejected records per reason. Rule and target are not part of a group: a tally
// belongs to one job, which has one of each.
//
// Tallies merge in any order with the same outcome, so chunks may be counted
// wherever and whenever they are solved. Sums saturate at math.MaxInt64 instead
// of wrapping; saturating addition of counts is still commutative and
// associative. The bytes of a tally (see [Tally.Append]) are a function of its
// counts alone.
//
// A Tally is a plain value without locks: one goroutine uses it at a time.
package tally

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Tally holds the counts. The zero value is empty and ready to use.
type Tally struct {
	groups  map[group]counts
	rejects map[puzzle.Reason]int64
	moves   []counts // scratch of Add, indexed by status and min_moves, all zero between calls
}

// group is what boards are counted by. minMoves is 0 unless status is Solved.
type group struct {
	rows, cols, nullity int32
	status              puzzle.Status
	minMoves            int32
}

const statuses = int(puzzle.Unproven) + 1

type counts struct {
	boards, uniqueOptimal, optimal int64
}

// Row is the counts of one group.
type Row struct {
	puzzle.Size
	Nullity          int
	Status           puzzle.Status
	MinMoves         int   // meaningful only where Status is Solved: elsewhere no minimum is proved
	Boards           int64 // boards in the group
	UniqueOptimal    int64 // boards with exactly one minimum solution; 0 unless Solved
	OptimalSolutions int64 // sum of the boards' numbers of minimum solutions; 0 unless Solved
}

// Reject is the number of records rejected for one reason.
type Reject struct {
	Reason  puzzle.Reason
	Records int64
}

// Add counts the answers to a run of boards of the given size.
func (t *Tally) Add(size puzzle.Size, a *puzzle.Answers) {
	if len(a.Status) == 0 {
		return
	}
	// One table for all statuses: a branch on the status of a random board is
	// mispredicted too often.
	width := int(slices.Max(a.MinMoves)) + 1
	used := width * statuses
	if used > len(t.moves) {
		t.moves = append(t.moves, make([]counts, used-len(t.moves))...)
	}
	table := t.moves[:used]
	moves, optimal := a.MinMoves[:len(a.Status)], a.OptimalCount[:len(a.Status)]
	for i, status := range a.Status {
		c := &table[int(status)*width+int(moves[i])]
		n := optimal[i]
		c.boards++
		c.optimal = plus(c.optimal, n)
		c.uniqueOptimal += isOne(n)
	}
	g := group{rows: int32(size.Rows), cols: int32(size.Cols), nullity: int32(a.Nullity)}
	for i, c := range table {
		if c.boards == 0 {
			continue
		}
		table[i] = counts{}
		g.status, g.minMoves = puzzle.Status(i/width), int32(i%width)
		if g.status != puzzle.Solved {
			g.minMoves, c = 0, counts{boards: c.boards}
		}
		t.add(g, c)
	}
}

// isOne returns 1 for 1 and 0 for every other number that is not negative,
// without a branch.
func isOne(n int64) int64 { return int64(uint64((n^1)-1) >> 63) }

// AddRejects counts records rejected for one reason.
func (t *Tally) AddRejects(reason puzzle.Reason, records int64) {
	if records == 0 {
		return
	}
	if t.rejects == nil {
		t.rejects = make(map[puzzle.Reason]int64)
	}
	t.rejects[reason] = plus(t.rejects[reason], records)
}

// AddChunk counts a whole chunk: its rejects and the answers to its runs.
func (t *Tally) AddChunk(c *puzzle.Chunk, answers []puzzle.Answers) {
	for i := range answers {
		t.Add(c.Runs[i].Size, &answers[i])
	}
	for _, r := range c.Rejects {
		t.AddRejects(r.Reason, 1)
	}
}

// Merge adds the counts of u, which is left as it is.
func (t *Tally) Merge(u *Tally) {
	for g, c := range u.groups {
		t.add(g, c)
	}
	for reason, records := range u.rejects {
		t.AddRejects(reason, records)
	}
}

func (t *Tally) add(g group, c counts) {
	if t.groups == nil {
		t.groups = make(map[group]counts)
	}
	sum := t.groups[g]
	sum.boards = plus(sum.boards, c.boards)
	sum.uniqueOptimal = plus(sum.uniqueOptimal, c.uniqueOptimal)
	sum.optimal = plus(sum.optimal, c.optimal)
	t.groups[g] = sum
}

// plus adds counts, which are not negative, and saturates.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// Rows returns the counts of all groups, sorted by rows, cols, nullity, status
// and min_moves.
func (t *Tally) Rows() []Row {
	rows := make([]Row, 0, len(t.groups))
	for _, g := range t.sorted() {
		c := t.groups[g]
		rows = append(rows, Row{
			Size:    puzzle.Size{Rows: int(g.rows), Cols: int(g.cols)},
			Nullity: int(g.nullity), Status: g.status, MinMoves: int(g.minMoves),
			Boards: c.boards, UniqueOptimal: c.uniqueOptimal, OptimalSolutions: c.optimal,
		})
	}
	return rows
}

func (t *Tally) sorted() []group { return slices.SortedFunc(maps.Keys(t.groups), compare) }

func compare(a, b group) int {
	return cmp.Or(
		cmp.Compare(a.rows, b.rows), cmp.Compare(a.cols, b.cols), cmp.Compare(a.nullity, b.nullity),
		cmp.Compare(a.status, b.status), cmp.Compare(a.minMoves, b.minMoves))
}

// Rejects returns the rejected records by reason, sorted.
func (t *Tally) Rejects() []Reject {
	rejects := make([]Reject, 0, len(t.rejects))
	for _, reason := range slices.Sorted(maps.Keys(t.rejects)) {
		rejects = append(rejects, Reject{reason, t.rejects[reason]})
	}
	return rejects
}

// Boards returns the number of boards counted.
func (t *Tally) Boards() int64 {
	var n int64
	for _, c := range t.groups {
		n = plus(n, c.boards)
	}
	return n
}

// With returns the number of boards of one status.
func (t *Tally) With(status puzzle.Status) int64 {
	var n int64
	for g, c := range t.groups {
		if g.status == status {
			n = plus(n, c.boards)
		}
	}
	return n
}

// Rejected returns the number of records rejected.
func (t *Tally) Rejected() int64 {
	var n int64
	for _, records := range t.rejects {
		n = plus(n, records)
	}
	return n
}

// Histogram returns the number of solved boards per min_moves, of all sizes
// together; element m counts those with a minimum of m.
func (t *Tally) Histogram() []int64 {
	var h []int64
	for g, c := range t.groups {
		if g.status != puzzle.Solved {
			continue
		}
		if n := int(g.minMoves) + 1; n > len(h) {
			h = append(h, make([]int64, n-len(h))...)
		}
		h[g.minMoves] = plus(h[g.minMoves], c.boards)
	}
	return h
}

// Equal reports whether two tallies have the same counts.
func (t *Tally) Equal(u *Tally) bool {
	return maps.Equal(t.groups, u.groups) && maps.Equal(t.rejects, u.rejects)
}
