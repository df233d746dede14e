package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func parseCases() (cases []Case) {
	const boards = 1 << 16
	small, large := puzzle.Size{Rows: 5, Cols: 5}, puzzle.Size{Rows: 15, Cols: 15}
	for _, c := range []struct {
		format string
		size   puzzle.Size
	}{{corpus.Lines, small}, {corpus.Lines, large}, {corpus.Blocks, small}, {corpus.CSV, small}} {
		prepare := func(context.Context, Options) (*bench, error) {
			spec, err := specOf("plus", c.size)
			if err != nil {
				return nil, err
			}
			run, err := makeBoards(spec, puzzle.GenerateRandom, boards)
			if err != nil {
				return nil, err
			}
			text := textOf(c.format, run)
			sum := sha256.New()
			return &bench{
				bytes:    float64(len(text)) / boards,
				loop:     Loop{Units: boards, Do: func() error { return parse(text, c.format, c.size, boards) }},
				baseline: Loop{Units: boards, Do: func() error { _, err := sum.Write(text); return err }},
			}, nil
		}
		cases = append(cases, Case{
			Subject: Parse, Name: fmt.Sprintf("%s/%s", c.format, c.size), Unit: "board",
			Baseline: "SHA-256 of the same bytes, which parsing includes", prepare: prepare,
		})
	}
	return cases
}

// textOf returns boards as a format has them.
func textOf(format string, boards puzzle.Run) (text []byte) {
	var cells []byte
	if format == corpus.CSV {
		text = append(text, "id,board\n"...)
	}
	for i := range boards.Count {
		cells = boards.AppendText(cells[:0], i)
		switch format {
		case corpus.Blocks: // a row a line, then a blank line
			for row := range boards.Rows {
				text = append(append(text, cells[row*boards.Cols:][:boards.Cols]...), '\n')
			}
		case corpus.CSV:
			text = append(fmt.Appendf(text, "%d,", i), cells...)
		default:
			text = append(text, cells...)
		}
		text = append(text, '\n')
	}
	return text
}

// parse reads a corpus in which so many boards are to be found.
func parse(text []byte, format string, size puzzle.Size, want int) error {
	c, err := corpus.Open(context.Background(), []string{corpus.Stdin}, corpus.Options{Format: format, Size: size}, bytes.NewReader(text))
	if err != nil {
		return err
	}
	var masks []uint16
	for got := 0; ; {
		masks, err = readSome(c, masks[:0], want)
		got += len(masks) / size.BoardMasks()
		switch {
		case err == io.EOF && got == want:
			return nil
		case err == io.EOF:
			return fmt.Errorf("read %d boards, want %d", got, want)
		case err != nil:
			return err
		}
	}
}

// readSome reads on in a corpus of boards of one size the way that the producer
// does, and appends the masks, one board after the other, of at most so many boards.
func readSome(c *corpus.Corpus, masks []uint16, most int) ([]uint16, error) {
	var rec corpus.Record
	for most > 0 {
		if err := c.Next(&rec); err != nil {
			return masks, err
		}
		if rec.Rejected() {
			return masks, fmt.Errorf("line %d is rejected: %s", rec.Line, rec.Reject.Reason)
		}
		masks = append(masks, rec.Board.Masks...)
		var more int
		masks, more = c.NextLike(&rec, masks, most-1)
		most -= 1 + more
	}
	return masks, nil
}
