package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/wire"
)

// A chunk that is delivered again may have killed the worker that had it. So a
// child process solves it, with one exchange of messages: the job's record after
// its length, the task; then readySign and the result. If the child dies of it,
// more children find out by halves which boards did that.

// readySign says that a child has understood its task. Before it, whatever kills
// the child is not the boards.
const readySign = 'r'

// Child solves one chunk, for a worker whose Options.Child names the process
// that calls it.
func Child(in io.Reader, out io.Writer) error {
	return serveOne(in, out, &slot{log: slog.New(slog.DiscardHandler)})
}

func serveOne(in io.Reader, out io.Writer, s *slot) error {
	// When memory runs out, the child is to go, not the worker. Where that cannot
	// be said, the worker may go too, which costs no chunk.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	message, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	j, task, err := parseOrder(message)
	if err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	if _, err := out.Write([]byte{readySign}); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	data, err := wire.AppendResult(nil, s.answer(j, task))
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

const lengthSize = 4 // bytes of the length of the job's record

func appendOrder(j *job, task *wire.Task) ([]byte, error) {
	data, err := wire.AppendJob(make([]byte, lengthSize), &wire.Job{ID: j.id, Spec: j.spec})
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(data, uint32(len(data)-lengthSize))
	return wire.AppendTask(data, task)
}

func parseOrder(data []byte) (*job, *wire.Task, error) {
	if len(data) < lengthSize {
		return nil, nil, io.ErrUnexpectedEOF
	}
	n, data := binary.BigEndian.Uint32(data), data[lengthSize:]
	if uint64(len(data)) < uint64(n) {
		return nil, nil, io.ErrUnexpectedEOF
	}
	record, err := wire.ParseJob(data[:n])
	if err != nil {
		return nil, nil, err
	}
	task, err := wire.ParseTask(data[n:])
	if err != nil {
		return nil, nil, err
	}
	return jobOf(record), task, nil
}

// jobOf returns what a worker knows of the job of a record.
func jobOf(record *wire.Job) *job {
	spec := record.Spec
	solvers := solver.NewSet(spec.Rule, solver.Options{SearchLimit: spec.SearchLimit})
	return &job{record.ID, spec, solvers, sync.OnceValues(func() (*generate.Generator, error) {
		return generate.New(spec, solvers)
	})}
}

// isolate answers a task in child processes. An error says nothing about the
// boards: the task is to be tried again.
func (w *worker) isolate(ctx context.Context, j *job, task *wire.Task) (*wire.Result, error) {
	result, err := w.child(ctx, j, task)
	if _, ok := errors.AsType[*poison](err); !ok {
		return result, err
	}
	chunk, err := withBoards(j, &task.Chunk, new(puzzle.Run))
	if err != nil {
		return failed(task.ID, err), nil
	}
	found, err := culprits(chunk, func(c *puzzle.Chunk) error {
		_, err := w.child(ctx, j, &wire.Task{ID: task.ID, Chunk: *c})
		return err
	})
	if err != nil {
		return nil, err
	}
	rest := &wire.Task{ID: task.ID, Chunk: *reject(chunk, found)}
	if result, err = w.child(ctx, j, rest); err != nil {
		return nil, err
	}
	result.Digest = task.Chunk.Digest() // of the records, whatever became of them
	return result, nil
}

// child answers a task in a process of its own. A *poison says that the process
// died of it.
func (w *worker) child(ctx context.Context, j *job, task *wire.Task) (*wire.Result, error) {
	order, err := appendOrder(j, task)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, w.opts.Child[0], w.opts.Child[1:]...)
	cmd.Stdin = bytes.NewReader(order)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is meant for the worker
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, w.death(task.ID, out, err)
	case len(out) == 0:
		return nil, errors.New("solve in a child process: it does not answer")
	}
	return wire.ParseResult(out[1:])
}

// death explains the end of a child without an answer.
func (w *worker) death(id wire.ID, out []byte, err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return fmt.Errorf("start a child process: %w", err)
	}
	how := fmt.Sprintf("exit status %d", exit.ExitCode())
	if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		how = "signal: " + status.Signal().String()
		if s := status.Signal(); s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP {
			return fmt.Errorf("child process stopped: %s", how)
		}
	}
	if len(out) == 0 {
		return fmt.Errorf("solve in a child process: %s: %.200s", how, exit.Stderr)
	}
	w.opts.Metrics.crashes.Inc()
	w.log.Warn("child process died of its boards", "job", id.Job, "chunk", id.Chunk, "part", id.Part, "cause", how, "stderr", string(exit.Stderr))
	return &poison{"the worker crashed: " + how, ""}
}
