package puzzle

import (
	"fmt"
	"math/bits"
	"strings"
)

// Rule says which cells one press toggles. The zero Rule is not valid; make one
// with ParseRule. Rules can be compared with ==.
type Rule struct {
	name    string
	fridge  bool     // the whole row and column of the press
	stencil [3]uint8 // rows of the 3×3 pattern around the press, left cell in bit 2
	torus   bool     // the pattern wraps around the edges
}

const torusSuffix = "-torus"

// ParseRule reads a rule's name: plus, fridge, king, x, or stencil:abc/def/ghi
// with the nine cells around a press as 0 or 1; all but fridge may end in
// -torus, which makes the pattern wrap around the edges. Where wrapping meets a
// cell twice the toggles cancel.
func ParseRule(name string) (Rule, error) {
	r := Rule{name: name}
	base, torus := strings.CutSuffix(name, torusSuffix)
	r.torus = torus
	switch base {
	case "plus":
		r.stencil = [3]uint8{0b010, 0b111, 0b010}
	case "king":
		r.stencil = [3]uint8{0b111, 0b111, 0b111}
	case "x":
		r.stencil = [3]uint8{0b101, 0b010, 0b101}
	case "fridge":
		if torus {
			return Rule{}, fmt.Errorf("rule %q: a fridge press has no edges to wrap around; want fridge", name)
		}
		r.fridge = true
	default:
		pattern, ok := strings.CutPrefix(base, "stencil:")
		if !ok {
			return Rule{}, fmt.Errorf("rule %q: want plus, fridge, king, x or stencil:abc/def/ghi, all but fridge optionally with -torus", name)
		}
		var err error
		if r.stencil, err = parseStencil(pattern); err != nil {
			return Rule{}, fmt.Errorf("rule %q: %w", name, err)
		}
	}
	return r, nil
}

func parseStencil(pattern string) (s [3]uint8, err error) {
	rows := strings.Split(pattern, "/")
	if len(rows) != 3 {
		return s, fmt.Errorf("a stencil has 3 rows of 3 cells, such as 010/111/010")
	}
	for i, row := range rows {
		if len(row) != 3 || strings.Trim(row, "01") != "" {
			return s, fmt.Errorf("stencil row %q: want 3 cells, each 0 or 1", row)
		}
		for _, cell := range []byte(row) {
			s[i] = s[i]<<1 | cell&1
		}
	}
	if s == [3]uint8{} {
		return s, fmt.Errorf("a stencil toggles at least one cell")
	}
	return s, nil
}

// String returns the name that ParseRule reads.
func (r Rule) String() string { return r.name }

// Fridge reports whether a press toggles its whole row and column.
func (r Rule) Fridge() bool { return r.fridge }

// Torus reports whether the stencil wraps around the edges.
func (r Rule) Torus() bool { return r.torus }

// Stencil returns the 3×3 pattern around a press as three rows of three bits,
// the left cell in bit 2. It is zero for the fridge rule.
func (r Rule) Stencil() [3]uint8 { return r.stencil }

// CheckSize reports boards that cannot be solved by the rule: beyond 16 cells on the
// shorter side, that of fridge takes time exponential in it.
func (r Rule) CheckSize(size Size) error {
	if err := size.Validate(); err != nil {
		return err
	}
	if r.fridge && size.LineMasks() > 1 {
		return fmt.Errorf("size %s: with the rule fridge the shorter side may have at most %d cells", size, maskBits)
	}
	return nil
}

// Oriented returns the stencil as the stored lines of a board see it:
// transposed where the size is.
func (r Rule) Oriented(size Size) [3]uint8 {
	if !size.Transposed() {
		return r.stencil
	}
	var t [3]uint8
	for i, row := range r.stencil {
		for j := range 3 {
			t[j] |= row >> (2 - j) & 1 << (2 - i)
		}
	}
	return t
}

// Press applies presses to boards: each board's cells that an odd number of its
// presses toggles are inverted. The two runs have equal count, and one size, which
// CheckSize accepts. It is the definition of the rules, kept apart from the solver
// so that it can check the solver's answers.
func (r Rule) Press(boards, presses Run) {
	if boards.Size != presses.Size || boards.Count != presses.Count {
		panic("BUG: puzzle: Press on runs of different shape")
	}
	if r.fridge {
		pressFridge(boards, presses)
		return
	}
	lines := boards.Lines()
	stencil := r.Oriented(boards.Size)
	for l := range lines {
		// A press one line below meets line l with its stencil's upper row.
		for d, row := range stencil {
			from := l + 1 - d
			if r.torus {
				from = (from + lines) % lines
			}
			if from < 0 || from >= lines {
				continue
			}
			r.pressLine(boards, presses, l, from, row)
		}
	}
}

// pressLine toggles the cells of line l that one stencil row reaches from the presses
// of line from.
func (r Rule) pressLine(boards, presses Run, l, from int, row uint8) {
	masks := boards.LineMasks()
	for k := range masks {
		dst, src := boards.mask(l*masks+k), presses.mask(from*masks+k)
		shiftRow(dst, src, row, boards.MaskWidth(k), r.torus && masks == 1)
		if masks == 1 || k == masks-1 && !r.torus {
			continue
		}
		// Neighbours across the border to the next mask, or from the last to the first.
		next := (k + 1) % masks
		if row>>2&1 == 1 {
			carry(dst, presses.mask(from*masks+next), boards.MaskWidth(next)-1, 0)
		}
		if row&1 == 1 {
			carry(boards.mask(l*masks+next), src, 0, boards.MaskWidth(next)-1)
		}
	}
}

// carry toggles one bit of the masks in dst where another one of those in src is 1.
func carry(dst, src []uint16, from, to int) {
	for i, x := range src {
		dst[i] ^= x >> from & 1 << to
	}
}

// shiftRow toggles in dst the cells that one stencil row reaches from the
// presses in src, both of the given width, at most 16. Four lines at a time are one
// word; the masks keep what would be shifted out of a line from reaching the next.
func shiftRow(dst, src []uint16, row uint8, width int, torus bool) {
	full := uint16(1)<<width - 1
	keep := func(has uint8, mask uint16) uint64 { return lanes(mask & -uint16(has&1)) }
	toLeft, self, toRight := keep(row>>2, full>>1), keep(row>>1, full), keep(row, full&^1)
	var wrapLeft, wrapRight uint64 // the cells that leave on one side and come back on the other
	if torus {
		wrapLeft, wrapRight = keep(row>>2, 1<<(width-1)), keep(row, 1)
	}
	reach := func(x uint64) uint64 {
		return (x&toLeft)<<1 ^ (x&wrapLeft)>>(width-1) ^ x&self ^ (x&toRight)>>1 ^ (x&wrapRight)<<(width-1)
	}
	src = src[:len(dst)]
	for len(src) >= 4 {
		d, s := dst[:4], src[:4] // the compiler makes one load and one store of each
		x := reach(uint64(s[0]) | uint64(s[1])<<16 | uint64(s[2])<<32 | uint64(s[3])<<48)
		x ^= uint64(d[0]) | uint64(d[1])<<16 | uint64(d[2])<<32 | uint64(d[3])<<48
		d[0], d[1], d[2], d[3] = uint16(x), uint16(x>>16), uint16(x>>32), uint16(x>>48)
		dst, src = dst[4:], src[4:]
	}
	for i, x := range src {
		dst[i] ^= uint16(reach(uint64(x)))
	}
}

// lanes returns four copies of m.
func lanes(m uint16) uint64 { return uint64(m) * 0x0001_0001_0001_0001 }

// pressFridge works on a few boards at a time, line by line, so that what it
// reads is adjacent and stays in the cache for the second pass.
func pressFridge(boards, presses Run) {
	const some = 64
	n, lines := boards.Count, boards.Lines()
	full := uint16(1)<<boards.Width() - 1
	for lo := 0; lo < n; lo += some {
		hi := min(lo+some, n)
		var columns [some]uint16 // columns with an odd number of presses
		for l := range lines {
			for i, x := range presses.Masks[l*n+lo : l*n+hi] {
				columns[i] ^= x
			}
		}
		for l := range lines {
			dst := boards.Masks[l*n+lo : l*n+hi]
			for i, x := range presses.Masks[l*n+lo : l*n+hi] {
				odd := -uint16(bits.OnesCount16(x)&1) & full
				dst[i] ^= columns[i] ^ odd ^ x
			}
		}
	}
}
