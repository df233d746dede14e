package worker

import (
	"errors"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// poison is the error of a chunk that its solver did not survive: at least one
// of its boards is to blame, or the machine.
type poison struct {
	detail string
	trace  string // for the log
}

func (e *poison) Error() string { return e.detail }

// maxTrials bounds the search in a chunk with many poisonous boards: it is
// enough to find 32 among 65,536. When it is used up, sound neighbours of the
// remaining ones are rejected with them.
const maxTrials = 32 * 2 * 16

// search looks for the poisonous boards of a chunk by halves.
type search struct {
	chunk  *puzzle.Chunk
	try    func(*puzzle.Chunk) error // solves a chunk and forgets the answers; a *poison if that fails
	trials int
	found  map[int]string // by the board's number in the chunk: what it does
}

// culprits returns what is wrong with which boards of a chunk. It is empty when
// all can be solved after all.
func culprits(chunk *puzzle.Chunk, try func(*puzzle.Chunk) error) (map[int]string, error) {
	s := &search{chunk: chunk, try: try, found: map[int]string{}}
	err := s.halve(0, chunk.Boards())
	return s.found, err
}

// halve looks at the boards from..to, which are poisonous together.
func (s *search) halve(from, to int) error {
	if to-from == 1 {
		return s.look(from, to)
	}
	middle := (from + to) / 2
	return errors.Join(s.look(from, middle), s.look(middle, to))
}

func (s *search) look(from, to int) error {
	if from == to {
		return nil
	}
	s.trials++
	err := s.try(boards(s.chunk, from, to))
	p, ok := errors.AsType[*poison](err)
	switch {
	case !ok:
		return err
	case to-from == 1 || s.trials >= maxTrials:
		for i := from; i < to; i++ {
			s.found[i] = p.detail
		}
		return nil
	}
	return s.halve(from, to)
}

// boards returns a chunk of the boards from..to of another, and of nothing else.
func boards(c *puzzle.Chunk, from, to int) *puzzle.Chunk {
	some := &puzzle.Chunk{Spans: []puzzle.Span{{Records: to - from}}}
	for _, run := range c.Runs {
		if first, end := max(from, 0), min(to, run.Count); first < end {
			some.Runs = append(some.Runs, selection(run, func(i int) bool { return first <= i && i < end }))
		}
		from, to = from-run.Count, to-run.Count
	}
	return some
}

// selection returns a run of those boards that are wanted.
func selection(run puzzle.Run, wanted func(i int) bool) puzzle.Run {
	kept := puzzle.Run{Size: run.Size}
	for k, mask := range run.Masks {
		if i := k % run.Count; wanted(i) {
			kept.Masks = append(kept.Masks, mask)
		}
	}
	kept.Count = len(kept.Masks) / run.BoardMasks()
	return kept
}

// reject returns the chunk with some boards turned into rejects, each with its
// detail.
func reject(chunk *puzzle.Chunk, details map[int]string) *puzzle.Chunk {
	out := &puzzle.Chunk{First: chunk.First, Spans: chunk.Spans, Lines: chunk.Lines, Labels: chunk.Labels}
	known := chunk.Rejects
	index := chunk.First
	passRejects := func() {
		for len(known) > 0 && known[0].Index == index {
			out.Rejects = append(out.Rejects, known[0])
			known = known[1:]
			index++
		}
	}
	board := 0
	for _, run := range chunk.Runs {
		first := board
		for i := range run.Count {
			passRejects()
			if detail, bad := details[board]; bad {
				text := run.AppendText(nil, i)
				out.Rejects = append(out.Rejects, puzzle.Reject{
					Index: index, Reason: puzzle.WorkerFailed, Detail: detail, Raw: text[:min(len(text), puzzle.MaxRaw)],
				})
			}
			board++
			index++
		}
		kept := selection(run, func(i int) bool { _, bad := details[first+i]; return !bad })
		if kept.Count > 0 {
			out.Runs = append(out.Runs, kept)
		}
	}
	passRejects()
	return out
}

// rejectAll returns the chunk with every board turned into a reject.
func rejectAll(chunk *puzzle.Chunk, detail string) *puzzle.Chunk {
	all := map[int]string{}
	for i := range chunk.Boards() {
		all[i] = detail
	}
	return reject(chunk, all)
}
