package producer

import (
	"io"
	"iter"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Chunks yields the chunks of a corpus in order, as a job with this spec hands them
// over. A chunk is valid until the next: its memory is used again. An error is the last
// that it yields.
func Chunks(spec puzzle.Spec, c *corpus.Corpus) iter.Seq2[*puzzle.Chunk, error] {
	if spec.Generate.Kind != "" {
		return ranges(spec, c)
	}
	return func(yield func(*puzzle.Chunk, error) bool) {
		s := newSplitter(spec)
		var rec corpus.Record
		for {
			switch err := c.Next(&rec); {
			case err == io.EOF:
				if s.records > 0 {
					yield(s.take(), nil)
				}
				return
			case err != nil:
				yield(nil, err)
				return
			}
			if !s.add(&rec) {
				if !yield(s.take(), nil) {
					return
				}
				s.add(&rec)
			}
			s.more(c, &rec)
		}
	}
}

// ranges yields the chunks of a generated corpus: which boards, not the boards.
func ranges(spec puzzle.Spec, c *corpus.Corpus) iter.Seq2[*puzzle.Chunk, error] {
	most := RangeRecords(spec)
	return func(yield func(*puzzle.Chunk, error) bool) {
		for first := int64(0); ; {
			n := c.Take(most)
			if n == 0 || !yield(Range(first, n), nil) {
				return
			}
			first += int64(n)
		}
	}
}

// Range returns the chunk of n boards of a generated corpus from number first on.
func Range(first int64, n int) *puzzle.Chunk {
	return &puzzle.Chunk{First: first, Generated: n, Spans: []puzzle.Span{{Records: n}}}
}
