package tally_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// answers returns random answers to n boards of a size; rng nil means none.
func answers(rng *rand.Rand, size puzzle.Size, n int) *puzzle.Answers {
	a := &puzzle.Answers{Nullity: rng.IntN(min(3, size.Cells()+1))}
	a.Reset(size, n)
	for i := range n {
		a.Status[i], a.MinMoves[i], a.OptimalCount[i] = puzzle.Status(rng.IntN(3)), int32(rng.IntN(size.Cells()+1)), 0
		switch a.Status[i] {
		case puzzle.Solved:
			a.OptimalCount[i] = 1 + rng.Int64N(3)
		case puzzle.Impossible:
			a.MinMoves[i] = 0
		}
	}
	return a
}

// naive counts one board at a time, by text.
type naive struct{ boards, unique, optimal map[string]int64 }

func newNaive() naive {
	return naive{make(map[string]int64), make(map[string]int64), make(map[string]int64)}
}

func (n naive) add(size puzzle.Size, a *puzzle.Answers) {
	for i, s := range a.Status {
		key := fmt.Sprint(size, " ", a.Nullity, " ", s)
		if s == puzzle.Solved {
			key += fmt.Sprint(" ", a.MinMoves[i])
			n.optimal[key] += a.OptimalCount[i]
			if a.OptimalCount[i] == 1 {
				n.unique[key]++
			}
		}
		n.boards[key]++
	}
}

func (n naive) check(t *testing.T, rows []tally.Row) {
	t.Helper()
	if len(rows) != len(n.boards) {
		t.Errorf("%d groups, want %d", len(rows), len(n.boards))
	}
	for _, r := range rows {
		key := fmt.Sprint(r.Size, " ", r.Nullity, " ", r.Status)
		if r.Status == puzzle.Solved {
			key += fmt.Sprint(" ", r.MinMoves)
		}
		if r.Boards != n.boards[key] || r.UniqueOptimal != n.unique[key] || r.OptimalSolutions != n.optimal[key] {
			t.Errorf("%s: got %+v, want %d, %d, %d", key, r, n.boards[key], n.unique[key], n.optimal[key])
		}
	}
}

var sizes = []puzzle.Size{{Rows: 1, Cols: 1}, {Rows: 5, Cols: 5}, {Rows: 256, Cols: 16}, {Rows: 2, Cols: 3}, {Rows: 3, Cols: 100}}

func TestAdd(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var got tally.Tally
	want := newNaive()
	for i := range 200 {
		size := sizes[rng.IntN(len(sizes))]
		a := answers(rng, size, i%20)
		got.Add(size, a)
		want.add(size, a)
	}
	want.check(t, got.Rows())
	order := func(r tally.Row) []int { return []int{r.Rows, r.Cols, r.Nullity, int(r.Status), r.MinMoves} }
	if !slices.IsSortedFunc(got.Rows(), func(a, b tally.Row) int { return slices.Compare(order(a), order(b)) }) {
		t.Error("rows are not sorted")
	}
	var solved, boards int64
	for _, n := range got.Histogram() {
		solved += n
	}
	for _, n := range want.boards {
		boards += n
	}
	if solved != got.With(puzzle.Solved) || got.Boards() != boards || got.With(puzzle.Solved)+got.With(puzzle.Impossible)+got.With(puzzle.Unproven) != boards {
		t.Errorf("%d solved, %d in the histogram, %d boards, want %d", got.With(puzzle.Solved), solved, got.Boards(), boards)
	}
}

// Tallies merged in any order, by twos or all into one, are equal to the last byte.
func TestMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var whole tally.Tally
	parts := make([]*tally.Tally, 10)
	for i := range parts {
		parts[i] = &tally.Tally{}
		size := sizes[i%len(sizes)]
		a := answers(rng, size, 50)
		for _, x := range []*tally.Tally{parts[i], &whole} {
			x.Add(size, a)
			x.AddRejects(puzzle.RaggedRow, int64(i))
			x.AddRejects(puzzle.BadSize, 2)
		}
	}
	for range 5 {
		list := slices.Clone(parts)
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for len(list) > 1 {
			sum := &tally.Tally{}
			sum.Merge(list[0])
			sum.Merge(list[1])
			list = append(list[2:], sum)
		}
		if !bytes.Equal(list[0].Append(nil), whole.Append(nil)) || !list[0].Equal(&whole) {
			t.Fatal("other counts in another order")
		}
	}
	if whole.Rejected() != 65 {
		t.Errorf("%d rejects, want 65", whole.Rejected())
	}
}

// Sums saturate, and do so in any order.
func TestSaturate(t *testing.T) {
	size := puzzle.Size{Rows: 1, Cols: 1}
	a := &puzzle.Answers{Nullity: 1}
	a.Reset(size, 3)
	for i := range 3 {
		a.Status[i], a.MinMoves[i], a.OptimalCount[i] = puzzle.Solved, 1, math.MaxInt64/2
	}
	var x, y tally.Tally
	x.Add(size, a)
	if got := x.Rows()[0].OptimalSolutions; got != math.MaxInt64 {
		t.Errorf("got %d", got)
	}
	y.Merge(&x)
	y.Merge(&x)
	y.AddRejects(puzzle.BadSize, math.MaxInt64)
	y.AddRejects(puzzle.BadSize, 1)
	y.AddRejects(puzzle.RaggedRow, 1)
	if y.Rows()[0].OptimalSolutions != math.MaxInt64 || y.Rows()[0].Boards != 6 || y.Rejected() != math.MaxInt64 {
		t.Errorf("got %+v, %d rejects", y.Rows(), y.Rejected())
	}
	if back, err := tally.Parse(y.Append(nil)); err != nil || !back.Equal(&y) {
		t.Errorf("parsed back as %v, %v", back, err)
	}
}

func TestBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var x tally.Tally
	if got := x.Append([]byte("kept")); string(got) != "kept\x01\x00\x00" {
		t.Errorf("empty tally is %q", got)
	}
	for i, size := range sizes {
		x.Add(size, answers(rng, size, 20))
		x.AddRejects(puzzle.Reason(fmt.Sprint("reason_", i)), 300)
	}
	data := x.Append(nil)
	back, err := tally.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if !back.Equal(&x) || !bytes.Equal(back.Append(nil), data) {
		t.Error("parsed back to other counts")
	}
	for n := range data {
		if _, err := tally.Parse(data[:n]); err == nil {
			t.Errorf("%d bytes of %d are accepted", n, len(data))
		}
	}
}

// The bytes are on disk and on the wire: this is what they are.
func TestBytesFixed(t *testing.T) {
	var x tally.Tally
	size := puzzle.Size{Rows: 5, Cols: 6}
	a := &puzzle.Answers{Nullity: 2}
	a.Reset(size, 3)
	copy(a.Status, []puzzle.Status{puzzle.Solved, puzzle.Impossible, puzzle.Solved})
	copy(a.MinMoves, []int32{7, 0, 7})
	copy(a.OptimalCount, []int64{1, 0, 200})
	x.Add(size, a)
	x.AddRejects(puzzle.TooLarge, 1)
	want := []byte("\x01" + "\x02" + "\x05\x06\x02\x00\x07\x02\x01\xc9\x01" + "\x05\x06\x02\x01\x00\x01\x00\x00" + "\x01" + "\x09too_large\x01")
	if got := x.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseErrors(t *testing.T) {
	for want, data := range map[string]string{
		"cut off":                             "",
		"version 2":                           "\x02\x00\x00",
		"2 items in 1 bytes":                  "\x01\x02\x00",
		"at most":                             "\x01\x01\x05\xff\x7f\x00\x00\x00\x01\x00\x00\x00",
		"size 66x65":                          "\x01\x01\x42\x41\x00\x01\x00\x01\x00\x00\x00",
		"at most 25":                          "\x01\x01\x05\x05\x1a\x01\x00\x01\x00\x00\x00",
		"at most 2":                           "\x01\x01\x05\x05\x00\x03\x00\x01\x00\x00\x00",
		"no boards":                           "\x01\x01\x05\x05\x00\x01\x00\x00\x00\x00\x00",
		"impossible boards with minimum":      "\x01\x01\x05\x05\x00\x01\x01\x01\x00\x00\x00",
		"2 boards with 1 minimum solutions":   "\x01\x01\x05\x05\x00\x00\x01\x02\x00\x01\x00",
		"group 1 is not in order":             "\x01\x02\x05\x05\x00\x01\x00\x01\x00\x00\x05\x05\x00\x01\x00\x01\x00\x00\x00",
		"after the end":                       "\x01\x00\x00\x00",
		"longer than it needs to be":          "\x01\x80\x00\x00",
		`reason "" of 1 records`:              "\x01\x00\x01\x00\x01\x00",
		`reason "A" of 1 records`:             "\x01\x00\x01\x01A\x01",
		`reason "a" of 0 records`:             "\x01\x00\x01\x01a\x00",
		`reason "a" of 1 records after "b"`:   "\x01\x00\x02\x01b\x01\x01a\x01",
		"a reason is cut off":                 "\x01\x00\x01\x09ab",
		"at most 64":                          "\x01\x00\x01\x41" + strings.Repeat("a", 65) + "\x01",
		"9223372036854775808, want at most 9": "\x01\x01\x05\x05\x00\x01\x00\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00\x00\x00",
	} {
		if _, err := tally.Parse([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", data, err, want)
		}
	}
}

// Whatever is accepted is what Append writes.
func FuzzParse(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	var x tally.Tally
	f.Add(x.Append(nil))
	for _, size := range sizes {
		x.Add(size, answers(rng, size, 20))
		x.AddRejects(puzzle.BadSize, 300)
		f.Add(x.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := tally.Parse(data)
		if err == nil && !bytes.Equal(got.Append(nil), data) {
			t.Errorf("%q is accepted and written as %q", data, got.Append(nil))
		}
	})
}

// Counting allocates nothing once a size has been seen.
func TestAddAllocates(t *testing.T) {
	size := puzzle.Size{Rows: 5, Cols: 5}
	a := answers(rand.New(rand.NewPCG(1, 2)), size, 1000)
	var x tally.Tally
	x.Add(size, a)
	if n := testing.AllocsPerRun(10, func() { x.Add(size, a) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
