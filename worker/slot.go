package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/wire"
)

// slot solves one chunk at a time and keeps its buffers between chunks. It is
// owned by one goroutine.
type slot struct {
	log      *slog.Logger
	encoders map[*job]*dataset.Encoder
	answers  []puzzle.Answers // one for each run of the chunk
	pressed  puzzle.Run       // scratch of the check
	message  []byte
}

// encoder returns the slot's encoder for a job.
func (s *slot) encoder(j *job) (*dataset.Encoder, error) {
	if e := s.encoders[j]; e != nil {
		return e, nil
	}
	e, err := dataset.NewEncoder(j.spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.id, err)
	}
	if s.encoders == nil || len(s.encoders) >= maxJobs {
		s.encoders = map[*job]*dataset.Encoder{}
	}
	s.encoders[j] = e
	return e, nil
}

// answer makes the result of a task: its rows, or a failure that ends the job
// because a solution was wrong or rows could not be encoded. A panic while
// solving concerns the chunk alone: its boards become rejects.
func (s *slot) answer(j *job, task *wire.Task) *wire.Result {
	result := &wire.Result{ID: task.ID, Digest: task.Chunk.Digest()}
	chunk := &task.Chunk
	err := s.solve(j, chunk)
	if p, ok := errors.AsType[*panicError](err); ok {
		s.log.Error("solver panicked", "job", j.id, "chunk", task.ID.Chunk, "panic", p.value, "stack", string(p.stack))
		chunk = rejectBoards(chunk, p.Error())
	} else if err != nil {
		return failed(task.ID, err)
	}
	if err := s.encode(j, chunk, result); err != nil {
		return failed(task.ID, err)
	}
	return result
}

// giveUp makes the result of a task that no worker could process: every board
// becomes a reject with the detail.
func (s *slot) giveUp(j *job, task *wire.Task, detail string) *wire.Result {
	result := &wire.Result{ID: task.ID, Digest: task.Chunk.Digest()}
	if err := s.encode(j, rejectBoards(&task.Chunk, detail), result); err != nil {
		return failed(task.ID, err)
	}
	return result
}

// failed is the result that stops a job.
func failed(id wire.ID, err error) *wire.Result {
	return &wire.Result{ID: id, Failure: err.Error()}
}

// panicError is a panic while solving.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("the worker panicked: %v", e.value) }

// keptAnswers is how many runs' answers keep their memory for the next chunk.
// Each may once have been the longest of its chunk, so this bounds a slot, to
// about 2 MiB for each.
const keptAnswers = 16

// solve fills s.answers and checks every one of them against the definition of
// the rule.
func (s *slot) solve(j *job, chunk *puzzle.Chunk) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	s.answers = slices.Delete(s.answers, min(keptAnswers, len(s.answers)), len(s.answers))
	for len(s.answers) < len(chunk.Runs) {
		s.answers = append(s.answers, puzzle.Answers{})
	}
	for i, run := range chunk.Runs {
		sv, err := j.solvers.For(run.Size)
		if err != nil {
			return fmt.Errorf("solve boards of %s: %w", run.Size, err)
		}
		answers := &s.answers[i]
		sv.Solve(answers, run, j.spec.Target)
		if err := sv.Check(&s.pressed, run, answers); err != nil {
			return fmt.Errorf("check the solutions: %w", err)
		}
	}
	return nil
}

// encode writes the chunk's rows and statistics into the result.
func (s *slot) encode(j *job, chunk *puzzle.Chunk, result *wire.Result) error {
	answers := s.answers[:len(chunk.Runs)]
	encoder, err := s.encoder(j)
	if err != nil {
		return err
	}
	if result.Results, result.Rejects, err = encoder.Encode(chunk, answers); err != nil {
		return fmt.Errorf("encode the rows: %w", err)
	}
	var counts tally.Tally
	counts.AddChunk(chunk, answers)
	result.First = chunk.First
	result.Boards = int64(chunk.Boards())
	result.Rejected = int64(len(chunk.Rejects))
	result.Tally = counts.Append(nil)
	return nil
}

// rejectBoards returns the chunk with every board turned into a reject.
func rejectBoards(chunk *puzzle.Chunk, detail string) *puzzle.Chunk {
	all := &puzzle.Chunk{First: chunk.First, Spans: chunk.Spans, Lines: chunk.Lines}
	known := chunk.Rejects
	index := chunk.First
	passRejects := func() {
		for len(known) > 0 && known[0].Index == index {
			all.Rejects = append(all.Rejects, known[0])
			known = known[1:]
			index++
		}
	}
	for _, run := range chunk.Runs {
		for i := range run.Count {
			passRejects()
			text := run.AppendText(nil, i)
			all.Rejects = append(all.Rejects, puzzle.Reject{
				Index: index, Reason: puzzle.WorkerFailed, Detail: detail, Raw: text[:min(len(text), puzzle.MaxRaw)],
			})
			index++
		}
	}
	passRejects()
	return all
}
