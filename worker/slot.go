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
	task     wire.Task        // that is in hand
	answers  []puzzle.Answers // one for each run of the chunk
	pressed  puzzle.Run       // scratch of the check
	made     puzzle.Run       // the boards of a generated chunk
	message  []byte
	stop     <-chan struct{}       // closed when nobody wants the answer any more; nil where that cannot be
	trap     func(*puzzle.Chunk)   // called before a chunk is solved; nil but in tests
	spoil    func(*puzzle.Answers) // called before answers are checked, for what a faulty solver says; nil but in tests
}

// encoder returns the slot's encoder for a job.
func (s *slot) encoder(j *job) (*dataset.Encoder, error) {
	if e := s.encoders[j]; e != nil {
		return e, nil
	}
	e, err := dataset.NewEncoder(j.spec, j.solvers)
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
// because a solution was wrong or rows could not be encoded. A board that makes
// the solver panic becomes a reject. It is nil when it was told to stop.
func (s *slot) answer(j *job, task *wire.Task) *wire.Result {
	result := &wire.Result{ID: task.ID, Digest: task.Chunk.Digest()}
	chunk, err := withBoards(j, &task.Chunk, &s.made)
	if err != nil {
		return failed(task.ID, err)
	}
	err = s.solve(j, chunk)
	if p, ok := errors.AsType[*poison](err); ok {
		s.log.Error("solver panicked", "job", j.id, "chunk", task.ID.Chunk, "part", task.ID.Part, "panic", p.detail, "stack", p.trace)
		chunk, err = s.solveRest(j, chunk)
	}
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return failed(task.ID, err)
	}
	if err := s.encode(j, chunk, result); err != nil {
		return failed(task.ID, err)
	}
	return result
}

// solveRest solves what can be solved of a chunk and returns it with the other
// boards as rejects.
func (s *slot) solveRest(j *job, chunk *puzzle.Chunk) (*puzzle.Chunk, error) {
	found, err := culprits(chunk, func(c *puzzle.Chunk) error { return s.solve(j, c) })
	if err != nil {
		return nil, err
	}
	rest := reject(chunk, found)
	err = s.solve(j, rest)
	if p, ok := errors.AsType[*poison](err); ok { // it panics now and then: that is not a sound board either
		return rejectAll(chunk, p.detail), nil
	}
	return rest, err
}

// giveUp makes the result of a task that no worker could process: every board
// becomes a reject with the detail.
func (s *slot) giveUp(j *job, task *wire.Task, detail string) *wire.Result {
	result := &wire.Result{ID: task.ID, Digest: task.Chunk.Digest()}
	chunk, err := withBoards(j, &task.Chunk, &s.made)
	if err == nil {
		err = s.encode(j, rejectAll(chunk, detail), result)
	}
	if err != nil {
		return failed(task.ID, err)
	}
	return result
}

// withBoards returns the chunk itself or, where its boards are generated, one that
// has them in run. To make some boards is to solve others, which a worker must survive
// too, or nobody will ever answer the task.
func withBoards(j *job, chunk *puzzle.Chunk, run *puzzle.Run) (with *puzzle.Chunk, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("generate boards: the worker panicked: %v", v)
		}
	}()
	if chunk.Generated == 0 {
		return chunk, nil
	}
	g, err := j.generator()
	if err != nil {
		return nil, fmt.Errorf("generate boards: %w", err)
	}
	if chunk.First > g.Count()-int64(chunk.Generated) {
		return nil, fmt.Errorf("generate %d boards from %d on: there are %d", chunk.Generated, chunk.First, g.Count())
	}
	g.Fill(run, chunk.First, chunk.Generated)
	return &puzzle.Chunk{First: chunk.First, Spans: chunk.Spans, Runs: []puzzle.Run{*run}}, nil
}

// failed is the result that stops a job.
func failed(id wire.ID, err error) *wire.Result {
	return &wire.Result{ID: id, Failure: err.Error()}
}

// keptAnswers is how many runs' answers keep their memory for the next chunk.
// Each may once have been the longest of its chunk, so this bounds a slot, to
// about 2 MiB for each.
const keptAnswers = 16

var errStopped = errors.New("told to stop")

// solve fills s.answers and checks every one of them against the definition of
// the rule.
func (s *slot) solve(j *job, chunk *puzzle.Chunk) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &poison{fmt.Sprintf("the worker panicked: %v", v), string(debug.Stack())}
		}
	}()
	if s.trap != nil {
		s.trap(chunk)
	}
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
		if !sv.SolveUntil(s.stop, answers, run, j.spec.Target) {
			return errStopped
		}
		if s.spoil != nil {
			s.spoil(answers)
		}
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
