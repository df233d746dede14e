package worker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
)

// generatedTask returns a spec that generates all boards of trapSize, the task of
// some of them, and the chunk that has their boards. It counts by itself.
func generatedTask(t *testing.T, first int64, count int) (puzzle.Spec, *wire.Task, *puzzle.Chunk) {
	t.Helper()
	spec := testSpec(t, "plus", puzzle.Zero)
	spec.Generate, spec.Size = puzzle.Generate{Kind: puzzle.GenerateAll}, trapSize()
	spans := []puzzle.Span{{Records: count}}
	task := &wire.Task{ID: wire.ID{Job: "j", Chunk: 2, Part: 1, Epoch: 1}, Chunk: puzzle.Chunk{First: first, Generated: count, Spans: spans}}
	chunk := &puzzle.Chunk{First: first, Spans: spans}
	for i := range count {
		board, err := puzzle.ParseText(spec.Size, fmt.Sprintf("%012b", first+int64(i)))
		ok(t, err)
		chunk.Runs = append(chunk.Runs, board)
	}
	return spec, task, chunk
}

// The rows of generated boards are those of the same boards in a task.
func TestGenerated(t *testing.T) {
	spec, task, chunk := generatedTask(t, 4000, 96)
	s, j := quietSlot(), newJob("j", spec)
	got := s.answer(j, task)
	compare(t, got, want(t, spec, task, chunk))
	if got.Digest == chunk.Digest() {
		t.Error("the digest depends on boards that the producer does not make")
	}
	given := s.giveUp(j, task, "why")
	if given.Boards != 0 || given.Rejected != 96 || given.Digest != got.Digest {
		t.Errorf("given up: %d boards and %d rejects of another digest", given.Boards, given.Rejected)
	}
	task.Chunk.First++ // one too many
	if got := s.answer(j, task); !strings.Contains(got.Failure, "there are 4096") {
		t.Errorf("boards that do not exist: failure %q", got.Failure)
	}
}

// A worker survives a generator that panics: the answer fails the job.
func TestGeneratorPanics(t *testing.T) {
	_, task, _ := generatedTask(t, 0, 1)
	j := &job{id: "j", generator: func() (*generate.Generator, error) { panic("a bug") }}
	s := quietSlot()
	for _, got := range []*wire.Result{s.answer(j, task), s.giveUp(j, task, "why")} {
		if !strings.Contains(got.Failure, "generate boards: the worker panicked: a bug") {
			t.Errorf("failure %q", got.Failure)
		}
	}
}
