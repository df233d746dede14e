package corpus_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// layout writes boards in a format: the counterpart of the readers, and
// independent of them.
type layout struct {
	format string
	bars   bool   // lines: a bar behind every row
	gap    string // between cells
}

func (l layout) append(dst []byte, board puzzle.Run) []byte {
	if l.format == corpus.Grid {
		dst = fmt.Appendf(dst, "%d %d\n", board.Rows, board.Cols)
	}
	for row := range board.Rows {
		for col := range board.Cols {
			if col > 0 {
				dst = append(dst, l.gap...)
			}
			if board.Cell(0, row, col) {
				dst = append(dst, '1')
			} else {
				dst = append(dst, '0')
			}
		}
		switch {
		case l.format != corpus.Lines:
			dst = append(dst, '\n')
		case l.bars:
			dst = append(dst, '/')
		}
	}
	if l.format != corpus.Grid {
		dst = append(dst, '\n')
	}
	return dst
}

func randomBoard(rng *rand.Rand, size puzzle.Size) puzzle.Run {
	board := puzzle.NewRun(size, 1)
	for i := range board.Masks {
		board.Masks[i] = uint16(rng.Uint32()) & (1<<size.Width() - 1)
	}
	return board
}
