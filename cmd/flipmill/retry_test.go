//go:build cluster

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

// failAt takes the tasks of a job as a worker does, answers those of some chunks as
// if it could not solve them, and gives the others back.
func (c *cluster) failAt(tasks int, chunks ...int64) {
	c.t.Helper()
	must := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), processPatience)
	defer cancel()
	conn, err := queue.Connect(ctx, queue.Options{URL: c.url})
	must(err)
	defer conn.Close()
	job, err := conn.Job(ctx, "boards")
	must(err)
	encoder, err := dataset.NewEncoder(job.Spec, nil)
	must(err)
	fetch, err := conn.Tasks(ctx, queue.Lanes()...)
	must(err)
	defer fetch.Close()
	var others []*queue.Delivery
	for range tasks {
		d, err := fetch.Next(ctx)
		must(err)
		task := new(wire.Task)
		err = d.Parse(task)
		must(err)
		bad := false
		for _, chunk := range chunks {
			bad = bad || chunk == task.ID.Chunk
		}
		if !bad {
			others = append(others, d)
			continue
		}
		result, err := wire.AppendResult(nil, failure(encoder, task))
		must(err)
		must(conn.PublishResult(ctx, task.ID, result))
		must(d.DoubleAck(ctx))
	}
	for _, d := range others {
		must(d.NakWithDelay(0))
	}
}

// failure rejects every board of a task.
func failure(encoder *dataset.Encoder, task *wire.Task) *wire.Result {
	chunk := &puzzle.Chunk{First: task.Chunk.First, Spans: task.Chunk.Spans, Lines: task.Chunk.Lines, Rejects: task.Chunk.Rejects}
	known := map[int64]bool{}
	for _, r := range chunk.Rejects {
		known[r.Index] = true
	}
	for k := range task.Chunk.Records() {
		if index := chunk.First + int64(k); !known[index] {
			chunk.Rejects = append(chunk.Rejects, puzzle.Reject{Index: index, Reason: puzzle.WorkerFailed, Detail: "it died"})
		}
	}
	slices.SortFunc(chunk.Rejects, func(a, b puzzle.Reject) int { return int(a.Index - b.Index) })
	var counts tally.Tally
	counts.AddChunk(chunk, nil)
	_, rejects, err := encoder.Encode(chunk, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &wire.Result{
		ID: task.ID, First: chunk.First, Rejected: int64(len(chunk.Rejects)), Digest: task.Chunk.Digest(),
		Rejects: rejects, Tally: counts.Append(nil),
	}
}

// TestRetry: what workers failed at is solved again, and only the parts that have
// it are made again. Until the new dataset is complete the old one is there, whole,
// whoever is killed; then the new one is, as if nothing had failed.
func TestRetry(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	c.run("setup")
	aggregator := c.start("aggregator", "-o", "far")
	c.run("submit", append(smallJob, "--window", "6")...)
	c.exits(exitError, "only one that is done can be retried", "retry", "boards")
	c.failAt(12, 5, 8)
	worker := c.start("worker", "--workers", "2")
	v := ask[view.Status](c, exitOK, "wait", "boards")
	rows, err := query(c.dir, "SELECT count(*) FROM 'far/job=boards/rejects/*.parquet' WHERE reason = 'worker_failed'")
	if err != nil || v.Retryable < 100_000 || !strings.HasSuffix(rows, fmt.Sprintf("\n%d\n", v.Retryable)) {
		t.Errorf("after two chunks have failed: %+v, rows %s (%v)", v, rows, err)
	}
	c.exits(exitOK, "rejects that flipmill retry may make results of", "status", "boards")
	worker.kill()

	dir := filepath.Join(c.dir, "far", "job=boards")
	old := hashes(t, dir)
	js := c.jetStream()
	before := stored(t, js, "FLIPMILL_TASKS")
	c.run("retry", "boards", "--progress", "none")
	if got := stored(t, js, "FLIPMILL_TASKS") - before; got != 4 {
		t.Errorf("%d chunks are driven again, want those of 2 parts", got)
	}
	if v = ask[view.Status](c, exitOK, "status", "boards"); v.State != "open" || v.Parts != 4 || *v.Percent > 70 {
		t.Errorf("during the retry: %+v", v)
	}
	c.start("worker", "--workers", "1")
	aggregator.await("part committed", 7) // the first of two
	aggregator.kill()
	wantSame(t, hashes(t, dir), old)
	flipmill(t, c.dir, "verify", "far/job=boards")
	c.start("aggregator", "-o", "far")
	if v = ask[view.Status](c, exitOK, "wait", "boards"); v.State != "done" || v.Retryable != 0 || v.Committed != (view.Count{Chunks: 12, Records: 12*65_536 - 1000}) {
		t.Errorf("after the retry: %+v", v)
	}
	wantSame(t, hashes(t, dir), want)
	flipmill(t, c.dir, "verify", "far/job=boards")
	left, err := filepath.Glob(filepath.Join(c.dir, "far", ".tmp", "boards.*"))
	if err != nil || left != nil {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	c.exits(exitOK, "no rejects for which a retry may help", "retry", "boards")
}

// why says how often each chunk was given to a worker, and what went wrong, also
// when nobody is alive.
func TestDeliveriesAreTold(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	writeSmallBoards(t, filepath.Join(c.dir, "boards.txt"), 4)
	c.run("setup")
	aggregator := c.start("aggregator", "-o", "far")
	c.run("submit", append(smallJob, "--window", "2")...)
	aggregator.kill()
	c.failAt(1) // which is given back without a word
	worker := c.start("worker", "--workers", "1")
	e := c.until("solved", func(e *view.Explanation) bool { return where(e, queue.Solved) == 4 })
	worker.kill()
	again := ask[*view.Explanation](c, exitOK, "why", "boards")
	if !slices.EqualFunc(again.Places, e.Places, func(a, b view.Place) bool { return a.Deliveries == b.Deliveries && a.Error == b.Error }) {
		t.Errorf("without a worker: %+v, with one %+v", again.Places, e.Places)
	}
	twice := 0
	for _, p := range e.Places {
		switch {
		case p.Deliveries == 2 && strings.HasPrefix(p.Error, "delivered again"):
			twice++
		case p.Deliveries != 1 || p.Error != "":
			t.Errorf("got %+v", p)
		}
	}
	if twice != 1 || e.Trouble == nil || e.Trouble.Delivered != 2 {
		t.Errorf("%d chunks were delivered twice, want 1: %+v, %+v", twice, e.Places, e.Trouble)
	}
}

// TestProgressOfJobVerbs: the verbs that drive a job tell programs how far they are, to
// the end of what they wait for.
func TestProgressOfJobVerbs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	writeSmallBoards(t, filepath.Join(c.dir, "boards.txt"), 3)
	c.run("setup")
	c.start("aggregator", "-o", "far")
	told := func(verb string, args ...string) {
		t.Helper()
		p := c.run(verb, append(args, "--progress", "json")...)
		var text strings.Builder
		for line := range strings.Lines(p.log()) {
			if strings.HasPrefix(line, "{") { // the others are its log
				text.WriteString(strings.TrimSuffix(line, "\n") + "\n")
			}
		}
		lines := progressLines(t, []byte(text.String()))
		if len(lines) == 0 {
			t.Fatalf("%s tells nothing:\n%s", verb, p.log())
		}
		const records = 3*65_536 - 1000
		if last := lines[len(lines)-1]; last["progress"] != verb || last["unit"] != "records" || last["done"] != 1.0*records || last["total"] != 1.0*records {
			t.Errorf("%s ends with %v", verb, last)
		}
	}
	told("submit", smallJob...)
	tasks, err := c.jetStream().Stream(t.Context(), "FLIPMILL_TASKS")
	if err != nil {
		t.Fatal(err)
	}
	if err := tasks.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	told("resume", "boards")
	c.failAt(3, 1)
	c.start("worker", "--workers", "1")
	c.run("wait", "boards")
	told("retry", "boards", "--wait")
}
