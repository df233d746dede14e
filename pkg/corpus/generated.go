package corpus

import (
	"encoding/hex"
	"io"
	"sync/atomic"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// formatGenerated is what Corpus.Format says of boards that are not read.
const formatGenerated = "generated"

// made is where the boards of a generated corpus come from.
type made struct {
	generator *generate.Generator
	taken     atomic.Int64 // boards

	batch puzzle.Run // boards that are given out by next
	given int        // of the batch
}

// madeAtOnce is how many boards are made for next at a time.
const madeAtOnce = 1024

// Generated returns the corpus of the boards that g makes. It has no sources, and
// its records have neither source nor line.
func Generated(g *generate.Generator) *Corpus { return &Corpus{made: &made{generator: g}} }

// next gives out the next board.
func (m *made) next(rec *Record) error {
	if m.given == m.batch.Count {
		n := m.take(madeAtOnce)
		if n == 0 {
			return io.EOF
		}
		m.generator.Fill(&m.batch, m.taken.Load()-int64(n), n)
		m.given = 0
	}
	rec.begin(0)
	rec.Source = ""
	rec.Board.Reset(m.batch.Size, 1)
	for l := range rec.Board.Masks {
		rec.Board.Masks[l] = m.batch.Masks[l*m.batch.Count+m.given]
	}
	m.given++
	return nil
}

// Take passes over the next boards of a generated corpus without making them, for
// a caller who only has to know which they are. It returns how many there are, at
// most so many; 0 is the end.
func (c *Corpus) Take(most int) int { return c.made.take(most) }

func (m *made) take(most int) int {
	n := min(int64(most), m.generator.Count()-m.taken.Load())
	m.taken.Add(n)
	return int(n)
}

// Sum returns the SHA-256 of the corpus, after io.EOF, in hexadecimal: of files,
// Sum of their Sources; of generated boards, that of their generator's name.
func (c *Corpus) Sum() string {
	if c.made != nil {
		sum := c.made.generator.Sum()
		return hex.EncodeToString(sum[:])
	}
	return Sum(c.Sources())
}
