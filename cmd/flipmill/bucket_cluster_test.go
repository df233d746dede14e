//go:build cluster

package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// copyOf returns the SHA-256 of every object below a key.
func (b *bucket) copyOf(t *testing.T, key string) map[string]string {
	t.Helper()
	folder := t.TempDir()
	check(t, b.getFolder(key+"/", folder))
	return hashes(t, folder)
}

// lead lets the processes of the test find the server.
func (b *bucket) lead(t *testing.T) {
	t.Helper()
	for _, variable := range b.environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
}

// TestRunIntoBucket kills runs that write into a bucket after their second part: the
// next one keeps what is committed, and does not send it again; the last one finds a
// bucket that takes nothing, waits, and goes on when it does. The dataset is that of an
// undisturbed run into a folder.
func TestRunIntoBucket(t *testing.T) {
	dir := t.TempDir()
	writeCorpus(t, filepath.Join(dir, "boards.txt"), 400_000)
	args := []string{"run", "boards.txt", "--size", "5x5", "--part-chunks", "1", "--log-level", "info", "-o"}
	flipmill(t, dir, append(args, "calm")...)
	want := hashes(t, filepath.Join(dir, "calm"))

	b := newBucket(t, "rough")
	b.lead(t)
	var closed atomic.Bool // the bucket takes nothing that is of a dataset
	puts := make(chan string, 1000)
	b.spoils(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/job=") {
			return false
		}
		puts <- r.URL.Path
		if closed.Load() {
			w.WriteHeader(http.StatusInsufficientStorage)
			_, _ = w.Write([]byte("<Error><Code>StorageFull</Code><Message>no room</Message></Error>"))
			return true
		}
		return false
	})
	args = append(args, "s3://rough/out")
	var kept map[string]string
	for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		if exit := interrupt(t, command(t, dir, args...), 2, signal); exit == nil {
			t.Fatalf("round %d: the run was over before it could be interrupted", round)
		}
		for len(puts) > 0 {
			name := strings.TrimPrefix(<-puts, "/rough/out/")
			if _, there := kept[name]; there {
				t.Errorf("round %d: %s was there and is sent again", round, name)
			}
		}
		now := b.copyOf(t, "out")
		wantGrown(t, round, now, kept)
		kept = now
	}
	closed.Store(true)
	last := start(t, nil, dir, "flipmill", args...)
	line := last.await("job waits for its output, nothing is lost", 1)
	if !strings.Contains(line, "StorageFull: no room") || !strings.Contains(line, "s3://rough/out/job=boards/") {
		t.Errorf("it says: %s", line)
	}
	last.await("job waits for its output, nothing is lost", 2)
	closed.Store(false)
	last.await("job goes on", 1)
	last.succeed()
	again := start(t, nil, dir, "flipmill", args...)
	again.await("s3://rough/out/job=boards is complete already", 1)
	again.succeed()
	got := b.copyOf(t, "out")
	delete(got, ".output-id")
	wantSame(t, got, want)
}

// TestAggregatorsOfABucket: two aggregators of one output in a bucket share its jobs. The
// one that holds a job is killed, and the other goes on from what is in the bucket; the
// dataset is that of a run into a folder.
func TestAggregatorsOfABucket(t *testing.T) {
	b := newBucket(t, "far")
	b.lead(t)
	recorded := make(chan struct{})
	var once sync.Once
	b.spoils(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/.jobs/boards") {
			once.Do(func() { close(recorded) })
		}
		return false
	})
	c := newCluster(t, nil)
	want := calm(t, c.dir)
	all := c.aggregators("s3://far/out", "2s", "a", "b")
	submit := c.start("submit", append(smallJob, "--window", "1", "--wait")...)
	first, second := takenUp(all["a"], all["b"])
	worker := c.start("worker", "--workers", "1")
	first.await("part committed", 1)
	worker.kill() // so that the job waits for all that follows
	first.kill()
	second.await("job taken up", 1)
	select {
	case <-recorded:
	case <-time.After(processPatience):
		t.Fatal("the bucket gets no record of the job")
	}
	c.run("setup", "--ack-wait", "1s") // the worker's task comes back soon
	c.start("worker", "--workers", "2")
	submit.succeed()
	got := b.copyOf(t, "out")
	for name := range got {
		if !strings.HasPrefix(name, "job=boards/") && name != ".output-id" {
			t.Errorf("left behind: %s", name)
		}
	}
	wantSame(t, b.copyOf(t, "out/job=boards"), want)
}

// TestRunStopsReading: a run that a signal tells to stop does not wait for a bucket that
// sends nothing.
func TestRunStopsReading(t *testing.T) {
	b := newBucket(t, "bucket")
	if err := b.put("boards.txt", []byte(strings.Repeat("0110\n", 1<<20))); err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"at the beginning", "in the middle"} {
		asked := make(chan struct{}, 10)
		b.spoils(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet {
				return false
			}
			if where == "in the middle" {
				object, err := b.backend.GetObject(b.name, "boards.txt", nil)
				if err != nil {
					t.Error(err)
					return false
				}
				w.Header().Set("Content-Length", fmt.Sprint(object.Size))
				w.Header().Set("ETag", `"`+hex.EncodeToString(object.Hash)+`"`)
				if _, err := io.CopyN(w, object.Contents, 1<<20); err != nil {
					t.Error(err)
				}
				w.(http.Flusher).Flush()
			}
			asked <- struct{}{}
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		})
		run := command(t, t.TempDir(), "run", "s3://bucket/boards.txt", "--size", "2x2", "--stop-timeout", "0")
		run.Env = append(os.Environ(), b.environment()...)
		var out bytes.Buffer
		run.Stderr = &out
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked
		if err := run.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := run.Wait(); run.ProcessState.ExitCode() != 130 || strings.Contains(out.String(), "panic") {
			t.Errorf("%s: %v\n%s", where, err, out.String())
		}
	}
}
