package worker

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// processes is what the test binary can be besides the tests: the processes
// that a poisonous board kills. A worker ends when its stdin is closed.
func processes() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"child": func([]string) error {
			return serveOne(os.Stdin, os.Stdout, &slot{log: slog.New(slog.DiscardHandler), trap: trap})
		},
		"worker": func(args []string) error {
			ctx, stop := context.WithTimeout(context.Background(), patience)
			defer stop()
			fetch, drain := context.WithCancel(ctx)
			defer drain()
			conn, err := queue.Connect(ctx, queue.Options{URL: args[0]})
			if err != nil {
				return err
			}
			defer conn.Close()
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				drain()
			}()
			return Run(fetch, ctx, conn, Options{Slots: 1, Child: childCommand(), trap: trap})
		},
	}
}

func childCommand() []string { return []string{os.Args[0], "child"} }

// The poisons: what a board of trapSize with that number in its first line does.
const (
	killed    = iota + 1 // as by the kernel when memory runs out
	exits                // without a word
	fatal                // a panic that nobody can recover
	panics               // one that the slot recovers
	terminate            // nothing of its own: somebody stops the process
)

var details = [...]string{
	killed: "the worker crashed: signal: killed",
	exits:  "the worker crashed: exit status 3",
	fatal:  "the worker crashed: exit status 2",
	panics: "the worker panicked: poison",

	terminate: "", // no row says so
}

func trapSize() puzzle.Size { return puzzle.Size{Rows: 3, Cols: 4} }

// trap is what boards with four ones in the first line are poisonous to; the
// second line says how.
func trap(c *puzzle.Chunk) {
	for _, run := range c.Runs {
		for i := range run.Count {
			if run.Size != trapSize() || run.Masks[i] != 0b1111 {
				continue
			}
			switch run.Masks[run.Count+i] {
			case killed:
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			case exits:
				os.Exit(3)
			case fatal:
				go panic("poison")
				select {}
			case panics:
				panic("poison")
			case terminate:
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
				select {}
			}
		}
	}
}

// poisoned returns a task with the poisons at random places among sound boards,
// and the chunk of its rows, in which they are rejects.
func poisoned(chunk int64, poisons ...uint16) (task *wire.Task, rows *puzzle.Chunk) {
	rng := rand.New(rand.NewPCG(uint64(chunk), 5))
	var runs []puzzle.Run
	for _, size := range []puzzle.Size{trapSize(), {Rows: 2, Cols: 2}, trapSize()} {
		run := puzzle.NewRun(size, 10)
		for l := range run.Masks {
			run.Masks[l] = uint16(rng.Uint32()) & (1<<run.Width() - 1) &^ 1
		}
		runs = append(runs, run)
	}
	places := rng.Perm(20) // in the runs of trapSize
	for k, poison := range poisons {
		run, i := runs[2*(places[k]/10)], places[k]%10
		run.Masks[i], run.Masks[run.Count+i] = 0b1111, poison
	}
	first := 100 * chunk
	old := puzzle.Reject{Index: first + 7, Reason: puzzle.RaggedRow, Detail: "old", Raw: []byte("01 1")}
	spans := []puzzle.Span{{Source: "a.txt", Records: 12}, {Source: "b.txt", Records: 19}}
	task = &wire.Task{ID: wire.ID{Job: "j", Chunk: chunk, Part: chunk / 4, Epoch: 1}, Chunk: puzzle.Chunk{
		First: first, Spans: spans, Runs: runs, Rejects: []puzzle.Reject{old},
	}}
	rows = &puzzle.Chunk{First: first, Spans: spans}
	index := first
	for _, run := range runs {
		for i := range run.Count {
			if index == old.Index {
				rows.Rejects = append(rows.Rejects, old)
				index++
			}
			text := run.AppendText(nil, i)
			if board, _ := puzzle.ParseText(run.Size, string(text)); run.Size == trapSize() && board.Masks[0] == 0b1111 {
				rows.Rejects = append(rows.Rejects, puzzle.Reject{Index: index, Reason: puzzle.WorkerFailed, Detail: details[board.Masks[1]], Raw: text})
			} else {
				rows.Runs = append(rows.Runs, board)
			}
			index++
		}
	}
	return task, rows
}

// A panic costs its board, and neither the worker nor the boards around it.
func TestPanics(t *testing.T) {
	s := &slot{log: slog.New(slog.DiscardHandler), trap: trap}
	j := newJob("j", testSpec(t, "plus", puzzle.Zero))
	for _, poisons := range [][]uint16{nil, {panics}, {panics, panics, panics}} {
		task, rows := poisoned(3, poisons...)
		compare(t, s.answer(j, task), want(t, j.spec, task, rows))
	}
}

// process is the test binary as a worker.
func (b *broker) process() (cmd *exec.Cmd, stop io.Closer) {
	b.t.Helper()
	cmd = exec.CommandContext(testContext(b.t), os.Args[0], "worker", b.url)
	stop, err := cmd.StdinPipe()
	ok(b.t, err)
	ok(b.t, cmd.Start())
	return cmd, stop
}

// again returns a broker whose one task has been in the hands of a worker that
// did not answer.
func again(t *testing.T, task *wire.Task) *broker {
	t.Helper()
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	b.create("j", testSpec(t, "plus", puzzle.Zero))
	b.publish(task)
	tasks := b.tasks()
	d, err := tasks.Next(testContext(t))
	ok(t, err)
	ok(t, d.NakWithDelay(0))
	tasks.Close()
	return b
}

// A crash is not the fault of the boards: what a child makes of sound ones is
// what any worker would.
func TestUnlucky(t *testing.T) {
	task := testTask(7, "j", 2)
	b := again(t, task)
	w := b.workWith(Options{Slots: 1, Child: childCommand()})
	got, wanted := b.results("j", 1)[0], want(t, testSpec(t, "plus", puzzle.Zero), task, &task.Chunk)
	clean(got)
	clean(wanted)
	compare(t, got, wanted)
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// A child that cannot do its work, or is stopped, says nothing about the boards:
// the task goes back.
func TestChildInnocent(t *testing.T) {
	for name, child := range map[string][]string{
		"missing":   {"/nonexistent/flipmill"},
		"unwilling": {"false"},
		"silent":    {"true"},
		"stopped":   childCommand(),
	} {
		t.Run(name, func(t *testing.T) {
			task, _ := poisoned(0, terminate)
			b := again(t, task)
			w := b.workWith(Options{Slots: 1, Child: child})
			b.await("chunk put back")
			w.drain()
			w.abort()
			ok(t, <-w.ended)
		})
	}
}
