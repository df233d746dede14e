//go:build cluster

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestLostStore kills the NATS server in the middle of a job and removes its
// store. The services stay, and submit, too, which begins again by itself; what was
// committed before stays as it is. One that has ended meanwhile finds it all done.
func TestLostStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	aggregator := c.start("aggregator", "-o", "far")
	c.start("worker", "--workers", "2")
	submit := c.start("submit", append(smallJob, "--wait", "--window", "1")...)
	aggregator.await("part committed", 2)
	c.broker.kill()
	if err := os.RemoveAll(filepath.Join(c.dir, "nats-data")); err != nil {
		t.Fatal(err)
	}
	c.startBroker()
	submit.await("the NATS server has lost its store", 1)
	submit.succeed()
	c.run("submit", append(smallJob, "--wait")...)
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestPurgedStreams removes the tasks and the results of a job, as an operator
// may, while its submit has ended. The same submit finishes the job.
func TestPurgedStreams(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	aggregator := c.start("aggregator", "-o", "far", "--memory", "1MiB")
	c.run("setup", "--ack-wait", "1s")
	c.run("submit", append(smallJob, "--window", "6")...) // all of it, and nobody solves
	first := c.start("worker", "--workers", "1")
	aggregator.await("part committed", 1)
	first.kill()
	js := c.jetStream()
	for _, name := range []string{"FLIPMILL_TASKS", "FLIPMILL_RESULTS"} {
		stream, err := js.Stream(t.Context(), name)
		if err == nil {
			err = stream.Purge(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c.start("worker", "--workers", "2")
	c.run("submit", append(smallJob, "--wait")...)
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestRemovedStream deletes the tasks of a job while its submit waits for them, and
// then their stream. The submit notices by itself.
func TestRemovedStream(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	c.run("setup")
	js := c.jetStream()
	c.start("aggregator", "-o", "far")
	submit := c.start("submit", append(smallJob, "--window", "1", "--wait")...)
	const tasks = "FLIPMILL_TASKS"
	ctx, cancel := context.WithTimeout(t.Context(), processPatience)
	defer cancel()
	for losses, remove := range []func(jetstream.Stream) error{
		func(s jetstream.Stream) error { return s.Purge(ctx) },
		func(jetstream.Stream) error { return js.DeleteStream(ctx, tasks) },
	} {
		s, err := js.Stream(ctx, tasks)
		for err == nil && s.CachedInfo().State.Msgs < 2 { // all that the window allows
			s, err = js.Stream(ctx, tasks)
		}
		if err == nil {
			err = remove(s)
		}
		if err != nil {
			t.Fatal(err)
		}
		submit.await("what is missing is handed over again", losses+1)
	}
	c.start("worker", "--workers", "1")
	if code := submit.exit(); code != 0 {
		t.Errorf("submit ended with %d", code)
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestRollingRestart stops every service with SIGTERM in the middle of a job, one
// after the other, again and again, each after another chunk or part has come
// through: however slow the machine, the job comes to its end. Each puts down what
// it holds and ends well; the broker's ack-wait and the aggregators' lease are so
// long that a task which is not given back, or not finished, or a job that is not
// handed over, would hold the job up beyond the patience of the test.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	progress := make(chan struct{}, 1<<16)
	c := newCluster(t, func(line string) { tellProgress(line, progress) })
	want := calm(t, c.dir)
	c.run("setup", "--ack-wait", "1h")
	commands := [][]string{
		{"worker", "--workers", "1"}, {"aggregator", "-o", "far", "--lease", "1h"},
		{"worker", "--workers", "2"}, {"aggregator", "-o", "far", "--lease", "1h"},
	}
	services := make([]*process, len(commands))
	for i, args := range commands {
		services[i] = c.start(args[0], args[1:]...)
	}
	submit := c.start("submit", append(smallJob, "--wait")...)
	for restarts, running := 0, true; running || restarts < len(services); restarts++ {
		select {
		case <-progress:
		case <-submit.done:
			running = false
		case <-time.After(processPatience):
			t.Fatalf("nothing comes forward after %d restarts:\n%s", restarts, submit.log())
		}
		i := restarts % len(services)
		services[i].await(" started", 1)
		services[i].signal(syscall.SIGTERM)
		services[i].succeed()
		services[i] = c.start(commands[i][0], commands[i][1:]...)
	}
	submit.succeed()
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestInterruptedSubmit stops a submit by signal and kills the next: the third
// finishes the job.
func TestInterruptedSubmit(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	aggregator := c.start("aggregator", "-o", "far")
	c.start("worker", "--workers", "1")
	for i, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		submit := c.start("submit", append(smallJob, "--window", "1", "--wait")...)
		aggregator.await("part committed", i+1)
		submit.signal(signal)
		if code := submit.exit(); signal == syscall.SIGTERM && code != int(exitTerminated) {
			t.Errorf("after SIGTERM submit ends with %d:\n%s", code, submit.log())
		}
	}
	c.run("submit", append(smallJob, "--wait")...)
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestTwoSubmits drives one job twice at the same time: each chunk counts once,
// and both come to the same end.
func TestTwoSubmits(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	c.start("aggregator", "-o", "far")
	c.start("worker", "--workers", "2")
	a := c.start("submit", append(smallJob, "--wait")...)
	b := c.start("submit", append(smallJob, "--wait", "--window", "1")...)
	a.succeed()
	b.succeed()
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestWhoIsMissing: submit says when there is no aggregator, at first and later,
// and goes on when there is one.
func TestWhoIsMissing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	submit := c.start("submit", append(smallJob, "--wait", "--window", "1")...)
	submit.await("job boards waits for its aggregator", 1)
	aggregator := c.start("aggregator", "-o", "far")
	c.start("worker")
	aggregator.await("part committed", 1)
	aggregator.kill()
	submit.await("job boards waits for its aggregator", 2)
	c.start("aggregator", "-o", "far", "--lease", "2s")
	submit.succeed()
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// TestBrokerSaysNo: nobody there, and somebody who does not know us.
func TestBrokerSaysNo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeSmallBoards(t, filepath.Join(dir, "boards.txt"), 1)
	broker := start(t, nil, dir, "nats-server", "-a", "127.0.0.1", "-p", "-1", "--auth", "secret")
	port := listening.FindStringSubmatch(broker.await("Listening for client connections", 1))[1]
	for url, want := range map[string]string{
		"nats://127.0.0.1:1":       "broker unreachable",
		"nats://127.0.0.1:" + port: "permission denied by the broker",
	} {
		for _, verb := range [][]string{{"setup"}, {"worker"}, {"aggregator"}, append([]string{"submit"}, smallJob...)} {
			p := start(t, nil, dir, "flipmill", append(verb, "--nats-url", url)...)
			if code := p.exit(); code != int(exitBroker) || !strings.Contains(p.log(), want) || !strings.Contains(p.log(), url) {
				t.Errorf("%v ends with %d, want %d and %q:\n%s", verb, code, exitBroker, want, p.log())
			}
		}
	}
}

// jetStream is what an operator can do at the broker.
func (c *cluster) jetStream() jetstream.JetStream {
	c.t.Helper()
	nc, err := nats.Connect(c.url)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	return js
}

// stored returns how many messages a stream has ever stored.
func stored(t *testing.T, js jetstream.JetStream, name string) uint64 {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// remove removes the message of one subject.
func remove(t *testing.T, js jetstream.JetStream, name, subject string) {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	if err == nil {
		err = stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSameBytesWhateverTheWorkers runs one job with different numbers of workers
// and windows: the datasets are the same, byte for byte.
func TestSameBytesWhateverTheWorkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCorpus(t, filepath.Join(dir, "boards.txt"), 300_000)
	args := []string{"run", "boards.txt", "--size", "5x5", "--target", "either", "--part-chunks", "2"}
	flipmill(t, dir, append(args, "-o", "one", "--workers", "1")...)
	flipmill(t, dir, append(args, "-o", "four", "--workers", "4", "--window", "1")...)
	flipmill(t, dir, append(args, "-o", "nine", "--workers", "9", "--window", "8")...)
	want := hashes(t, filepath.Join(dir, "one"))
	if len(want) < 8 { // results and rejects of several parts, statistics, manifest, _SUCCESS
		t.Fatalf("only %d files: %v", len(want), want)
	}
	wantSame(t, hashes(t, filepath.Join(dir, "four")), want)
	wantSame(t, hashes(t, filepath.Join(dir, "nine")), want)
	flipmill(t, dir, "verify", "four/job=boards")
}

// wantGrown wants the files that an interrupted run has left, and more.
func wantGrown(t *testing.T, round int, now, kept map[string]string) {
	t.Helper()
	for name, sum := range kept {
		if now[name] != sum {
			t.Errorf("round %d: %s was committed before and is %q now", round, name, now[name])
		}
	}
	if len(now) <= len(kept) {
		t.Errorf("round %d: no progress: %d files, then %d", round, len(kept), len(now))
	}
}

// TestInterruptedRunIsFinishedByTheSameCommand kills runs after their n-th part:
// the next one keeps what is committed, and the dataset is that of an
// undisturbed run.
func TestInterruptedRunIsFinishedByTheSameCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCorpus(t, filepath.Join(dir, "boards.txt"), 400_000)
	args := []string{"run", "boards.txt", "--size", "5x5", "--part-chunks", "1", "--log-level", "info"}
	flipmill(t, dir, append(args, "-o", "calm")...)
	want := hashes(t, filepath.Join(dir, "calm"))

	args = append(args, "-o", "rough")
	var kept map[string]string // parts that an interrupted run has left
	for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		exit := interrupt(t, command(t, dir, args...), 2, signal)
		switch {
		case exit == nil:
			t.Fatalf("round %d: the run was over before it could be interrupted", round)
		case signal == syscall.SIGKILL && exit.ExitCode() != -1,
			signal != syscall.SIGKILL && exit.ExitCode() != 128+int(signal):
			t.Errorf("round %d: after %v the exit code is %d", round, signal, exit.ExitCode())
		}
		now := hashes(t, filepath.Join(dir, "rough", "job=boards"))
		wantGrown(t, round, now, kept)
		kept = now
		if _, ok := now["manifest.json"]; ok {
			t.Errorf("round %d: an unfinished dataset has a manifest", round)
		}
	}
	flipmill(t, dir, args...)
	wantSame(t, hashes(t, filepath.Join(dir, "rough")), want)
}

// TestProcesses runs one job over a NATS server with two workers and an
// aggregator: the dataset is that of flipmill run.
func TestProcesses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	aggregator := c.start("aggregator", "-o", "far")
	workers := []*process{c.start("worker", "--workers", "1"), c.start("worker", "--workers", "2")}
	submit := c.run("submit", append(smallJob, "--wait", "--json")...)
	var outcome submitted
	if err := json.Unmarshal([]byte(submit.out.String()), &outcome); err != nil {
		t.Fatal(err)
	}
	if records := int64(12*65_536 - 1000); outcome != (submitted{"boards", "done", records, 12, records}) {
		t.Errorf("submit says %+v", outcome)
	}
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
	flipmill(t, c.dir, "verify", "far/job=boards")

	// A finished job that is submitted again is compared, and nothing changes.
	c.run("submit", append(smallJob, "--wait")...)
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)

	for _, p := range append(workers, aggregator) {
		p.signal(syscall.SIGTERM)
		p.succeed() // a service that was told to stop ends well
	}
}
