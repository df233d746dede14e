package tally

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// The bytes of a tally are kept in datasets and messages: do not change them.
// All numbers are unsigned varints.
//
//	version (1)
//	number of groups, then per group, sorted as Rows sorts them:
//	    rows, cols, nullity, status, min_moves, boards, unique_optimal, optimal_solutions
//	number of reasons, then per reason, sorted:
//	    length, the reason's bytes, records
const version = 1

const (
	minGroupBytes  = 8 // eight numbers of one byte each
	minRejectBytes = 3
	maxReason      = 64 // bytes of a reason; ours are below 16
)

// Append appends the tally's bytes to dst.
func (t *Tally) Append(dst []byte) []byte {
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(len(t.groups)))
	for _, g := range t.sorted() {
		c := t.groups[g]
		for _, n := range [...]int64{int64(g.rows), int64(g.cols), int64(g.nullity), int64(g.status), int64(g.minMoves), c.boards, c.uniqueOptimal, c.optimal} {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(t.rejects)))
	for _, r := range t.Rejects() {
		dst = binary.AppendUvarint(dst, uint64(len(r.Reason)))
		dst = append(dst, r.Reason...)
		dst = binary.AppendUvarint(dst, uint64(r.Records))
	}
	return dst
}

// Parse reads what Append writes. The bytes may come from anywhere: whatever
// Append could not have written is an error, and memory stays proportional to
// len(data).
func Parse(data []byte) (*Tally, error) {
	p := parser{data: data}
	t := &Tally{}
	if v := p.number(math.MaxUint8); p.err == nil && v != version {
		return nil, fmt.Errorf("parse tally: version %d, want %d", v, version)
	}
	p.groups(t)
	p.rejects(t)
	if p.err == nil && len(p.data) > 0 {
		p.err = fmt.Errorf("%d bytes after the end", len(p.data))
	}
	if p.err != nil {
		return nil, fmt.Errorf("parse tally: %w", p.err)
	}
	return t, nil
}

// parser takes numbers from the front of data until the first error.
type parser struct {
	data []byte
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) number(limit int64) int64 {
	if p.err != nil {
		return 0
	}
	n, size := binary.Uvarint(p.data)
	if size <= 0 {
		p.err = errors.New("a number is cut off or too long")
		return 0
	}
	if size > 1 && p.data[size-1] == 0 {
		p.err = errors.New("a number is longer than it needs to be")
		return 0
	}
	if n > uint64(limit) {
		p.err = fmt.Errorf("%d, want at most %d", n, limit)
		return 0
	}
	p.data = p.data[size:]
	return int64(n)
}

// length reads the length of a list whose items take at least size bytes.
func (p *parser) length(size int) int {
	n := p.number(math.MaxInt64)
	if n > int64(len(p.data)/size) {
		p.fail("a list of %d items in %d bytes", n, len(p.data))
		return 0
	}
	return int(n)
}

func (p *parser) groups(t *Tally) {
	n := p.length(minGroupBytes)
	t.groups = make(map[group]counts, n)
	var last group
	for i := range n {
		var g group
		g.rows, g.cols = int32(p.number(puzzle.MaxLines)), int32(p.number(puzzle.MaxLines))
		size := puzzle.Size{Rows: int(g.rows), Cols: int(g.cols)}
		cells := int64(size.Cells())
		g.nullity, g.status = int32(p.number(cells)), puzzle.Status(p.number(int64(puzzle.Unproven)))
		g.minMoves = int32(p.number(cells))
		c := counts{p.number(math.MaxInt64), p.number(math.MaxInt64), p.number(math.MaxInt64)}
		if p.err != nil {
			return
		}
		if err := size.Validate(); err != nil {
			p.err = err
			return
		}
		if i > 0 && compare(last, g) >= 0 {
			p.fail("group %d is not in order", i)
		}
		if err := check(g, c); err != nil {
			p.fail("group %d: %w", i, err)
		}
		t.groups[g], last = c, g
	}
}

// check reports counts that no boards have.
func check(g group, c counts) error {
	switch {
	case c.boards == 0:
		return errors.New("no boards")
	case g.status != puzzle.Solved && (g.minMoves != 0 || c.uniqueOptimal != 0 || c.optimal != 0):
		return fmt.Errorf("%s boards with minimum solutions", g.status)
	case g.status == puzzle.Solved && (c.uniqueOptimal > c.boards || c.optimal < c.boards):
		return fmt.Errorf("%d boards with %d minimum solutions, %d of them unique", c.boards, c.optimal, c.uniqueOptimal)
	}
	return nil
}

func (p *parser) rejects(t *Tally) {
	n := p.length(minRejectBytes)
	last := puzzle.Reason("")
	for range n {
		size := int(p.number(maxReason))
		if size > len(p.data) {
			p.fail("a reason is cut off")
		}
		if p.err != nil {
			return
		}
		reason := puzzle.Reason(p.data[:size])
		p.data = p.data[size:]
		records := p.number(math.MaxInt64)
		if p.err != nil {
			return
		}
		if reason <= last || !plain(reason) || records == 0 {
			p.fail("reason %q of %d records after %q", reason, records, last)
			return
		}
		t.AddRejects(reason, records)
		last = reason
	}
}

// plain reports whether a reason is spelled like one: lower case, digits, '_'.
func plain(r puzzle.Reason) bool {
	for i := range len(r) {
		if c := r[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
