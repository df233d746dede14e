//go:build cluster

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

// ask runs a verb that ends with a code, and reads its JSON.
func ask[T any](c *cluster, want code, verb string, args ...string) (answer T) {
	c.t.Helper()
	p := c.start(verb, append(args, "--json")...)
	if got := p.exit(); got != int(want) {
		c.t.Fatalf("%s ends with %d, want %d:\n%s%s", p.name, got, want, &p.out, p.log())
	}
	if err := json.Unmarshal([]byte(p.out.String()), &answer); err != nil {
		c.t.Fatalf("%s says %q: %v", p.name, &p.out, err)
	}
	return answer
}

// exits runs a verb that must end with a code and say something.
func (c *cluster) exits(want code, text, verb string, args ...string) {
	c.t.Helper()
	p := c.start(verb, args...)
	if got := p.exit(); got != int(want) || !strings.Contains(p.out.String()+p.log(), text) {
		c.t.Errorf("%s ends with %d, want %d and %q:\n%s%s", p.name, got, want, text, &p.out, p.log())
	}
}

// until asks why a job waits until the answer is as wanted. The job need not be
// there yet.
func (c *cluster) until(what string, wanted func(*view.Explanation) bool) *view.Explanation {
	c.t.Helper()
	for late := time.Now().Add(processPatience); ; {
		e := &view.Explanation{}
		p := c.start("why", "boards", "--json")
		switch code := p.exit(); code {
		case int(exitOK):
			if err := json.Unmarshal([]byte(p.out.String()), e); err != nil {
				c.t.Fatalf("%s says %q: %v", p.name, &p.out, err)
			}
			if wanted(e) {
				return e
			}
		case int(exitNotFound):
		default:
			c.t.Fatalf("%s ends with %d:\n%s", p.name, code, p.log())
		}
		if time.Now().After(late) {
			c.t.Fatalf("never %s: %+v with %+v", what, e.Status, e.Places)
		}
	}
}

func where(e *view.Explanation, where string) (n int) {
	for _, p := range e.Places {
		if p.Where == where {
			n++
		}
	}
	return n
}

// TestJobVerbs follows one job through its life, with the roles coming one after
// the other, and asks all the time.
func TestJobVerbs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	for _, verb := range []string{"status", "watch", "wait", "why", "pause", "cancel", "retry"} {
		c.exits(exitNotFound, "read job boards: not found; flipmill list shows", verb, "boards")
	}
	if all := ask[[]view.Status](c, exitOK, "list"); len(all) != 0 {
		t.Errorf("jobs of a server without streams: %+v", all)
	}
	c.run("setup")
	for _, verb := range []string{"status", "pause", "resume", "cancel"} {
		c.exits(exitNotFound, "not found", verb, "boards")
	}
	c.exits(exitUsage, "job id", "status", "Boards")
	if all := ask[[]view.Status](c, exitOK, "list"); len(all) != 0 {
		t.Errorf("jobs of an empty server: %+v", all)
	}

	submit := c.start("submit", append(smallJob, "--wait")...)
	submit.await("aggregator", 1) // is what it waits for
	v := ask[view.Status](c, exitOK, "status", "boards")
	if v.State != "open" || v.Heard != nil || v.Percent != nil || v.Records != nil || v.Drives != 1 {
		t.Errorf("before there is an aggregator: %+v", v)
	}
	c.exits(exitOK, "no aggregator has taken the job up", "status", "boards")
	c.exits(exitError, "job boards is on this server with other options: target is zero, not one; name another --job",
		"submit", append(slices.Clone(smallJob), "--target", "one")...)

	aggregator := c.start("aggregator", "-o", "far")
	e := c.until("queued", func(e *view.Explanation) bool { return where(e, queue.Queued) == 4 }) // a window of 2 parts
	if s := e.Slowest; s == nil || s.Where != queue.Queued || s.Lane != "normal" || len(e.Places) != 4 {
		t.Errorf("without workers it waits for %+v of %+v", s, e.Places)
	}
	c.exits(exitTimeout, "is open after 5s", "wait", "boards", "--timeout", "5s")
	c.exits(exitTimeout, "has said nothing of job boards after 1ns", "wait", "boards", "--timeout", "1ns")

	// Pause: what is queued is finished, nothing more is handed over.
	v = ask[view.Status](c, exitOK, "pause", "boards")
	if v.State != "paused" {
		t.Errorf("after pause: %+v", v)
	}
	c.start("worker", "--workers", "2")
	c.until("finished what was queued", func(e *view.Explanation) bool { return e.Parts == 2 })
	aggregator.await("part committed", 2)
	e = c.until("rested", func(e *view.Explanation) bool { return e.Committed.Chunks == 4 })
	if e.State != "paused" || len(e.Places) != 0 || e.Received != e.Committed {
		t.Errorf("a paused job: %+v with %+v", e.Status, e.Places)
	}

	watch := c.start("watch", "boards", "--json")
	ask[view.Status](c, exitOK, "resume", "boards")
	done := ask[view.Status](c, exitOK, "wait", "boards", "--timeout", "2m")
	records := int64(12*65_536 - 1000)
	if done.State != "done" || *done.Percent != 100 || *done.Records != records || done.Committed != (view.Count{Chunks: 12, Records: records}) || done.Received != done.Committed || done.Silent != nil {
		t.Errorf("at the end: %+v", done)
	}
	submit.succeed()
	watch.succeed()
	checkWatched(t, watch.out.String(), 3)

	// All say the same.
	status, all := ask[view.Status](c, exitOK, "status", "boards"), ask[[]view.Status](c, exitOK, "list")
	text := func(v view.Status) string { data, _ := json.Marshal(v); return string(data) }
	if len(all) != 1 || text(all[0]) != text(done) || text(status) != text(done) || text(ask[*view.Explanation](c, exitOK, "why", "boards").Status) != text(done) {
		t.Errorf("status %s, list %+v, wait %s", text(status), all, text(done))
	}
	for _, verb := range []string{"pause", "resume", "cancel"} {
		c.exits(exitError, "has ended", verb, "boards")
	}
	c.exits(exitOK, "100.0%", "watch", "boards")
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
}

// checkWatched checks that progress never falls, and is complete only at the end,
// in so many lines at least.
func checkWatched(t *testing.T, out string, least int) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last view.Status
	for i, line := range lines {
		var v view.Status
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if v.Received.Records < last.Received.Records || v.Committed.Records < last.Committed.Records || v.Committed.Records > v.Received.Records ||
			last.Percent != nil && *v.Percent < *last.Percent || v.Percent != nil && (*v.Percent == 100) != (i == len(lines)-1) {
			t.Errorf("from %+v to %+v", last, v)
		}
		last = v
	}
	if last.State != "done" || len(lines) < least {
		t.Errorf("watch ends with %+v after %d lines", last, len(lines))
	}
}

// TestCancelledJob: whoever works for it ends, its messages are gone, and what
// is left of its dataset does not look like a whole one.
func TestCancelledJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	writeSmallBoards(t, filepath.Join(c.dir, "boards.txt"), 12)
	submit := c.start("submit", append(smallJob, "--wait", "--window", "2")...)
	c.start("aggregator", "-o", "far").await("job taken up", 1)
	c.until("two parts handed over", func(e *view.Explanation) bool { return where(e, queue.Queued) == 4 })
	c.run("pause", "boards") // no more than these: however slow we are, the job does not end
	worker := c.start("worker", "--workers", "1")
	c.until("under way", func(e *view.Explanation) bool { return e.Parts > 0 })
	worker.kill()
	wait, watch := c.start("wait", "boards"), c.start("watch", "boards")
	ask[view.Status](c, exitOK, "cancel", "boards")
	for _, p := range []*process{submit, wait, watch} {
		if code := p.exit(); code != int(exitJobFailed) {
			t.Errorf("%s ends with %d:\n%s", p.name, code, p.log())
		}
	}
	if v := ask[view.Status](c, exitOK, "status", "boards"); v.State != "cancelled" {
		t.Errorf("after cancel: %+v", v)
	}
	c.start("worker") // what there is of the job, it drops
	dir := filepath.Join(c.dir, "far", "job=boards")
	files := hashes(t, dir)
	for name, wanted := range map[string]bool{"_CANCELLED": true, "_SUCCESS": false, "manifest.json": false, "results/part-00000.parquet": true} {
		if _, there := files[name]; there != wanted {
			t.Errorf("%s is there: %v", name, there)
		}
	}
	if out, err := command(t, c.dir, "verify", dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "manifest.json") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	c.exits(exitJobFailed, "it was cancelled, which is final: give the corpus another --job", "submit", smallJob...)
	for _, verb := range []string{"resume", "retry"} {
		c.exits(exitError, "it is cancelled", verb, "boards")
	}

	// The next job is as any other.
	c.run("submit", append(smallJob, "--wait", "--job", "second", "--lane", "high")...)
	flipmill(t, c.dir, "verify", "far/job=second")
	late, err := wire.AppendOrder(nil, wire.Cancel) // as it stays where a job ends while it is being cancelled
	if err == nil {
		err = putRecord(t, c, "second.control", late)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.exits(exitError, "it is cancelled", "retry", "second")
	if _, err := os.Stat(filepath.Join(dir, "_SUCCESS")); !os.IsNotExist(err) {
		t.Errorf("a cancelled job is finished: %v", err)
	}
}

// putRecord writes a record past all who look after it.
func putRecord(t *testing.T, c *cluster, key string, data []byte) error {
	kv, err := c.jetStream().KeyValue(t.Context(), "FLIPMILL_JOBS")
	if err == nil {
		_, err = kv.Put(t.Context(), key, data)
	}
	return err
}

// TestCompletionOfJobs presses Tab in a bash that has read what flipmill completion
// prints, beside a server with a job.
func TestCompletionOfJobs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	calm(t, c.dir)
	c.start("aggregator", "-o", "far")
	c.run("submit", append(smallJob, "--window", "6")...)
	for verb, want := range map[string]string{"status": "boards\n", "cancel": "boards\n", "list": "\n", "why --nats-url nats://127.0.0.1:1": "\n"} {
		words := strings.Fields("flipmill " + verb)
		tab := exec.CommandContext(t.Context(), "bash", "-c", `set -e
_get_comp_words_by_ref() { # the package bash-completion has it
  cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
}
compopt() { :; } # works under a prompt only
source <(flipmill completion bash)
COMP_WORDS=("$@" "") COMP_CWORD=$# COMP_LINE="$* " COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
__start_flipmill
printf '%s\n' "${COMPREPLY[@]%% *}"`, "bash")
		tab.Args = append(tab.Args, words...)
		tab.Env = append(tab.Environ(), "FLIPMILL_NATS_URL="+c.url)
		out, err := tab.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: offered %q, want %q (%v)", verb, out, want, err)
		}
	}
	out, err := command(t, c.dir, "__complete", "status", "--nats-url", c.url, "").Output()
	if want := "boards\topen, 0.0%\n:4\n"; err != nil || string(out) != want {
		t.Errorf("offered %q, want %q (%v)", out, want, err)
	}
}

// TestGeneratedJob drives a generated job over a server: its tasks are a few bytes,
// resume makes a lost one again from the job's record alone, and the dataset is
// that of run.
func TestGeneratedJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	flags := []string{"--generate", "random,count=600000,seed=1", "--size", "5x5", "--part-chunks", "8", "--job", "made"}
	flipmill(t, c.dir, append([]string{"run", "-o", "calm"}, flags...)...)
	c.start("aggregator", "-o", "far")
	c.run("submit", flags...)
	js := c.jetStream()
	stream, err := js.Stream(t.Context(), "FLIPMILL_TASKS")
	if err != nil {
		t.Fatal(err)
	}
	state := stream.CachedInfo().State
	if state.Msgs != 15 || state.Bytes > 15*300 { // 40,960 boards each
		t.Errorf("%d tasks of %d bytes", state.Msgs, state.Bytes)
	}
	remove(t, js, "FLIPMILL_TASKS", "flipmill.task.normal.made.4")
	c.run("resume", "made")
	if got := stored(t, js, "FLIPMILL_TASKS") - state.LastSeq; got != 1 {
		t.Errorf("resume hands over %d chunks, want 1", got)
	}
	c.start("worker")
	c.run("wait", "made")
	wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=made")), hashes(t, filepath.Join(c.dir, "calm", "job=made")))
}
