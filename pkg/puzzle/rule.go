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
// presses toggles are inverted. The two runs have equal size and count. It is
// the definition of the rules, kept apart from the solver so that it can check
// the solver's answers.
func (r Rule) Press(boards, presses Run) {
	if boards.Size != presses.Size || boards.Count != presses.Count {
		panic("BUG: puzzle: Press on runs of different shape")
	}
	if r.fridge {
		pressFridge(boards, presses)
		return
	}
	n, lines := boards.Count, boards.Lines()
	stencil := r.Oriented(boards.Size)
	for l := range lines {
		dst := boards.Masks[l*n : (l+1)*n]
		// A press one line below meets line l with its stencil's upper row.
		for d, row := range stencil {
			from := l + 1 - d
			if r.torus {
				from = (from + lines) % lines
			}
			if from < 0 || from >= lines {
				continue
			}
			shiftRow(dst, presses.Masks[from*n:(from+1)*n], row, boards.Width(), r.torus)
		}
	}
}

// shiftRow toggles in dst the cells that one stencil row reaches from the
// presses in src, both of the given width.
func shiftRow(dst, src []uint16, row uint8, width int, torus bool) {
	full := uint16(1)<<width - 1
	var left, self, right uint16 // all ones where the stencil has the cell
	left, self, right = -uint16(row>>2&1), -uint16(row>>1&1), -uint16(row&1)
	for i, x := range src[:len(dst)] {
		toLeft, toRight := x<<1, x>>1
		if torus {
			toLeft |= x >> (width - 1)
			toRight |= x << (width - 1)
		}
		dst[i] ^= (toLeft&left ^ x&self ^ toRight&right) & full
	}
}

func pressFridge(boards, presses Run) {
	n, lines := boards.Count, boards.Lines()
	full := uint16(1)<<boards.Width() - 1
	for i := range n {
		var columns uint16 // columns with an odd number of presses
		for l := range lines {
			columns ^= presses.Masks[l*n+i]
		}
		for l := range lines {
			x := presses.Masks[l*n+i]
			odd := -uint16(bits.OnesCount16(x)&1) & full
			boards.Masks[l*n+i] ^= columns ^ odd ^ x
		}
	}
}
