package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// command returns flipmill as a process of its own, working in dir.
func command(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("flipmill") // testscript.Main put it there
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	return cmd
}

// flipmill runs a command to its end, which must be a good one.
func flipmill(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := command(t, dir, args...).CombinedOutput(); err != nil {
		t.Fatalf("flipmill %v: %v\n%s", args, err, out)
	}
}

// writeCorpus writes random boards of 5×5 with a fault now and then, so many
// that they fill several chunks.
func writeCorpus(t testing.TB, path string, records int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	var b bytes.Buffer
	for k := range records {
		line := fmt.Appendf(nil, "%025b\n", rng.Uint32N(1<<25))
		if k%1000 == 999 {
			line[rng.IntN(25)] = 'x'
		}
		b.Write(line)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// hashes returns the SHA-256 of every file below dir, and fails on temporary
// leftovers.
func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		sum := sha256.Sum256(data)
		name, _ := filepath.Rel(dir, path)
		sums[name] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func wantSame(t *testing.T, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	names := slices.Sorted(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if got[name] != want[name] {
			t.Errorf("%s: sha256 %q, want %q", name, got[name], want[name])
		}
	}
}

// interrupt starts a run, sends the signal as soon as the run has committed a
// number of parts, and returns how the process ended.
func interrupt(t *testing.T, cmd *exec.Cmd, parts int, signal syscall.Signal) *exec.ExitError {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	committed := 0
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "part committed") {
			if committed++; committed == parts {
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	exit, _ := errors.AsType[*exec.ExitError](cmd.Wait())
	return exit
}

// TestRunInterruptedAsItStarts: the signal is the outcome, not what it made fail.
func TestRunInterruptedAsItStarts(t *testing.T) {
	t.Parallel()
	signal := daemon.Signal(syscall.SIGINT)
	stopped, stop := context.WithCancelCause(t.Context())
	stop(signal)
	output := t.TempDir()
	dir, err := dataset.Open(output, "boards", puzzle.Spec{
		Columns: dataset.Columns(), Cells: dataset.CellsText, Compression: "zstd", PartChunks: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeline{output: output, job: "boards", dir: dir, log: slog.New(slog.DiscardHandler)}
	if err := p.run(stopped, t.Context(), io.Discard, "none"); !errors.Is(err, signal) {
		t.Errorf("got %v, want %v", err, signal)
	}
}

// TestRunInterruptedWhileItReads: a pipe that gives nothing cannot hold it up, and
// the reading that is left behind does no harm.
func TestRunInterruptedWhileItReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "boards.txt")
	check(t, syscall.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	check(t, err)
	defer pipe.Close()
	go pipe.WriteString(strings.Repeat("0000\n", 3*65_536)) // ends with the pipe
	cmd := command(t, dir, "run", "boards.txt", "--size", "2x2", "--part-chunks", "1", "--stop-timeout", "100ms", "--log-level", "info", "-o", "out")
	if exit := interrupt(t, cmd, 2, syscall.SIGTERM); exit == nil || exit.ExitCode() != int(exitTerminated) {
		t.Errorf("it ends with %v", exit)
	}
}

// TestUnfinishedJobRefusesAnotherCorpus changes the corpus of an interrupted run.
func TestUnfinishedJobRefusesAnotherCorpus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	corpus := filepath.Join(dir, "boards.txt")
	writeCorpus(t, corpus, 300_000)
	args := []string{"run", "boards.txt", "--size", "5x5", "--part-chunks", "1", "--log-level", "info"}
	interrupt(t, command(t, dir, args...), 2, syscall.SIGKILL)
	data, err := os.ReadFile(corpus)
	if err != nil {
		t.Fatal(err)
	}
	data[0] ^= 1 // another first board
	if err := os.WriteFile(corpus, data, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := command(t, dir, args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "part 0: committed parts were made from another corpus") {
		t.Errorf("got %v\n%s", err, out)
	}
	data[0] ^= 1
	if err := os.WriteFile(corpus, data, 0o644); err != nil {
		t.Fatal(err)
	}
	flipmill(t, dir, args...)
	flipmill(t, dir, "verify", "out/job=boards")
}

// TestTwoRunsOfOneJob lets the second one fail while the first is at work.
func TestTwoRunsOfOneJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCorpus(t, filepath.Join(dir, "boards.txt"), 1000)
	first := command(t, dir, "run", "-", "--format", "lines", "--size", "5x5", "--job", "j", "--log-level", "info")
	stdin, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := first.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("1111111111111111111111111\n0000000000000000000000000\n")); err != nil {
		t.Fatal(err)
	}
	// It reads on for ever; once it says that the job is taken up it holds the lock.
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "job taken up") {
	}
	out, err := command(t, dir, "run", "boards.txt", "--size", "5x5", "--job", "j").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "job j in out is in use by another process") {
		t.Errorf("second run: %v\n%s", err, out)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := first.Wait(); err != nil {
		t.Errorf("first run: %v", err)
	}
}

// TestFailureIsToldOnce: a part that is there with other content, which nobody replaces,
// fails a job. run says so when it ends, and not before as well.
func TestFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := command(t, dir, "run", "-", "--format", "lines", "--size", "2x2", "--job", "j", "--log-level", "info")
	stdin, err := run.StdinPipe()
	check(t, err)
	stderr, err := run.StderrPipe()
	check(t, err)
	check(t, run.Start())
	_, err = stdin.Write([]byte("0000\n"))
	check(t, err)
	told := 0
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "exists with other content") {
			told++
		}
		if !strings.Contains(lines.Text(), "job taken up") {
			continue
		}
		results := filepath.Join(dir, "out", "job=j", "results")
		check(t, os.MkdirAll(results, 0o755))
		check(t, os.WriteFile(filepath.Join(results, "part-00000.parquet"), []byte("another"), 0o644))
		check(t, stdin.Close()) // the chunk, and with it the part, ends here
	}
	if err := run.Wait(); run.ProcessState.ExitCode() != int(exitJobFailed) || told != 1 {
		t.Errorf("it ends with %v and tells the reason %d times", err, told)
	}
}

// linkExamples makes the examples known in a folder.
func linkExamples(t *testing.T, dir string) {
	t.Helper()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
}
