package solver

import (
	"fmt"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// FuzzSolve reads a rule, a size and a board from bytes, and compares with the
// textbook elimination.
func FuzzSolve(f *testing.F) {
	f.Add(uint16(0b010_111_010), uint8(5), uint8(5), uint8(0), []byte{0x8f, 0x01, 0x44})
	f.Add(uint16(0b111_111_111), uint8(3), uint8(4), uint8(2), []byte{0xff, 0xff})
	f.Add(uint16(0b010_111_010|1<<9), uint8(2), uint8(18), uint8(1), []byte{0x31, 0x41, 0x59, 0x26})
	f.Add(uint16(1<<10), uint8(5), uint8(7), uint8(2), []byte("fridge"))
	f.Add(uint16(1<<10), uint8(3), uint8(19), uint8(0), []byte("fridge"))
	f.Add(uint16(0b100_000_001|1<<9), uint8(8), uint8(8), uint8(2), []byte{})
	f.Fuzz(func(t *testing.T, pattern uint16, rows, cols, target uint8, cells []byte) {
		rule := fmt.Sprintf("stencil:%03b/%03b/%03b", pattern>>6&7, pattern>>3&7, pattern&7)
		switch {
		case pattern>>10&1 == 1:
			rule = "fridge"
		case pattern&0x1ff == 0:
			rule = "king"
		}
		if pattern>>9&1 == 1 && rule != "fridge" {
			rule += "-torus"
		}
		size := puzzle.Size{Rows: 1 + int(rows)%10, Cols: 1 + int(cols)%20}
		board, text := puzzle.NewRun(size, 1), make([]byte, size.Cells())
		for k := range text {
			if k/8 < len(cells) && cells[k/8]>>(k%8)&1 == 1 {
				board.SetCell(0, k/size.Cols, k%size.Cols)
				text[k] = 1
			}
		}
		to := targets[int(target)%len(targets)]
		a := solve(t, mustSolver(t, rule, size), board, to)
		ref := newReference(rule, size)
		if a.Nullity != len(ref.quiet) {
			t.Fatalf("nullity %d, want %d", a.Nullity, len(ref.quiet))
		}
		if len(ref.quiet) <= maxReferenceNullity {
			expect(t, a, 0, to, ref.solve(text, 0), ref.solve(text, 1))
		}
	})
}
