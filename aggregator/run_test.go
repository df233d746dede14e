package aggregator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// Whatever the order of the results, whenever the job is sealed, however little
// memory there is, and with copies among them: the files are the same, and the
// log is empty at the end.
func TestAnyOrder(t *testing.T) {
	const chunks = 10
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			j := newJob(t, "order", 1, 3, chunks)
			conn, output := broker(t), t.TempDir()
			var received []wire.Count
			opts := Options{Output: output, Received: func(_ string, c wire.Count) { received = append(received, c) }}
			if seed%2 == 1 {
				opts.Memory = 1
			}
			stop := serve(t, conn, opts)
			j.create(t, conn)
			sealAt := rng.IntN(chunks + 1)
			for i, chunk := range rng.Perm(chunks) {
				if i == sealAt {
					j.seal(t, conn)
				}
				if rng.IntN(3) == 0 {
					send(t, conn, j.again(chunk, 2)) // then the other is the copy
				}
				j.send(t, conn, chunk)
			}
			if sealAt == chunks {
				j.seal(t, conn)
			}
			j.awaitDone(t, conn)
			stop()
			j.check(t, output)
			wantLogged(t, conn, 0)
			if !slices.IsSortedFunc(received, func(a, b wire.Count) int { return int(a.Records - b.Records) }) {
				t.Errorf("received went back: %v", received)
			}
			if last := received[len(received)-1]; last != (wire.Count{Chunks: chunks, Records: j.totals.Records}) {
				t.Errorf("%v received at the end", last)
			}
		})
	}
}

// A newer drive's result takes the place of an older one's, an older one's that
// of none.
func TestNewerEpochCounts(t *testing.T) {
	for name, memory := range map[string]int64{"in memory": 0, "from the log": 1} {
		t.Run(name, func(t *testing.T) {
			conn, output := broker(t), t.TempDir()
			before, now := newJob(t, "j", 1, 3, 3), newJob(t, "j", 2, 3, 3)
			now.create(t, conn)
			before.send(t, conn, 0, 1)
			for chunk := range 3 {
				send(t, conn, now.again(chunk, 2))
			}
			now.seal(t, conn)
			stop := serve(t, conn, Options{Output: output, Memory: memory})
			now.awaitDone(t, conn)
			stop()
			now.check(t, output)
			wantLogged(t, conn, 0)
		})
	}
}

// Two corpora never share a dataset, even where their records have the same
// numbers: here part 1 is committed before the second drive comes to it.
func TestMixtureFails(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	before, now := newJob(t, "j", 1, 1, 2), newJob(t, "j", 1, 1, 2)
	now.results[1].Digest[0] ^= 1 // the file has another name, say
	now.totals.PartsSHA256 = wire.SumParts([]wire.Part{
		{Digest: wire.SumPart([][sha256.Size]byte{now.results[0].Digest})},
		{Digest: wire.SumPart([][sha256.Size]byte{now.results[1].Digest})},
	})
	serve(t, conn, Options{Output: output})
	now.create(t, conn)
	before.send(t, conn, 0, 1)
	awaitParts(t, conn, "j", 2)
	send(t, conn, now.again(1, 2))
	now.seal(t, conn)
	awaitFailed(t, conn, "j", "another corpus")
	if _, err := os.Stat(filepath.Join(output, "job=j", "manifest.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the manifest: %v", err)
	}
}

// Results of a committed part are garbage, whoever sends them again.
func TestLateCopiesArePurged(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 2, 4)
	stop := serve(t, conn, Options{Output: output})
	j.create(t, conn)
	j.send(t, conn, 0, 1)
	awaitParts(t, conn, "j", 1)
	send(t, conn, j.again(0, 2))
	send(t, conn, &wire.Result{ID: wire.ID{Job: "nobodys"}, Failure: "of a job that does not exist"})
	j.send(t, conn, 2, 3)
	j.seal(t, conn)
	j.awaitDone(t, conn)
	send(t, conn, j.again(3, 2))
	stop()
	stop = serve(t, conn, Options{Output: output, Lease: quick}) // it finds the last copy, if the other did not
	awaitSwept(t, conn)
	stop()
	j.check(t, output)
}

// An aggregator that stops anywhere is followed by one that finishes the job:
// with the same broker from its log, with an empty one from a new drive.
func TestRestart(t *testing.T) {
	const chunks = 8
	for _, fresh := range []bool{false, true} {
		for _, sent := range []int{1, 6, 7, 8} {
			t.Run(fmt.Sprintf("fresh broker %v, after %d chunks", fresh, sent), func(t *testing.T) {
				conn, output := broker(t), t.TempDir()
				j := newJob(t, "j", 1, 3, chunks)
				order := []int{4, 0, 2, 3, 7, 1, 5, 6} // part 0 is full after 6 of them, part 1 after 7
				stop := serve(t, conn, Options{Output: output})
				j.create(t, conn)
				j.send(t, conn, order[:sent]...)
				awaitParts(t, conn, "j", max(0, min(2, sent-5)))
				stop()
				rest := order[sent:]
				if fresh {
					conn = broker(t)
					j.create(t, conn)
					rest = order
				}
				j.send(t, conn, rest...)
				j.seal(t, conn)
				stop = serve(t, conn, Options{Output: output})
				j.awaitDone(t, conn)
				stop()
				j.check(t, output)
				wantLogged(t, conn, 0)
			})
		}
	}
}

// A finished dataset is found finished, by a broker that knows nothing of it.
func TestFinishedAlready(t *testing.T) {
	output := t.TempDir()
	j := newJob(t, "j", 1, 2, 3)
	for range 2 {
		conn := broker(t)
		stop := serve(t, conn, Options{Output: output})
		j.create(t, conn)
		j.send(t, conn, 0, 1, 2)
		j.seal(t, conn)
		j.awaitDone(t, conn)
		stop()
		j.check(t, output)
	}
}

// A part that can never be written fails its job and leaves nothing half done.
func TestFailedCommit(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 2, 4)
	stop := serve(t, conn, Options{Output: output})
	j.create(t, conn)
	j.send(t, conn, 0, 1)
	awaitParts(t, conn, "j", 1)
	// From here on there is a file where the parts' folder was.
	results := filepath.Join(output, "job=j", "results")
	ok(t, os.Rename(results, results+".away"))
	ok(t, os.WriteFile(results, nil, 0o666))
	j.send(t, conn, 2, 3)
	awaitFailed(t, conn, "j", "commit part 1: publish results/part-00001.parquet: create folder")
	awaitSwept(t, conn)
	stop()
	left, err := os.ReadDir(filepath.Join(output, ".tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

func TestEmptyJob(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 2, 0)
	stop := serve(t, conn, Options{Output: output})
	j.create(t, conn)
	j.seal(t, conn)
	j.awaitDone(t, conn)
	stop()
	j.check(t, output)
}

// Jobs do not disturb each other, and one that fails harms none.
func TestJobsInterleaved(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	a, b, c := newJob(t, "a", 1, 2, 5), newJob(t, "b", 2, 3, 5), newJob(t, "c", 3, 2, 5)
	stop := serve(t, conn, Options{Output: output, Memory: 20_000})
	for _, j := range []*testJob{a, b, c} {
		j.create(t, conn)
	}
	for chunk := range 5 {
		a.send(t, conn, chunk)
		b.send(t, conn, 4-chunk)
		if chunk < 3 {
			c.send(t, conn, chunk)
		}
	}
	send(t, conn, &wire.Result{ID: c.results[3].ID, Failure: "a wrong solution"})
	c.send(t, conn, 4)
	awaitFailed(t, conn, "c", "chunk 3: a wrong solution")
	a.seal(t, conn)
	b.seal(t, conn)
	a.awaitDone(t, conn)
	b.awaitDone(t, conn)
	stop()
	a.check(t, output)
	b.check(t, output)
}

// What cannot be a dataset fails the job, and the ledger says why.
func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		spoil  func(t *testing.T, conn *queue.Conn, output string, j *testJob)
	}{
		"more records than the totals": {"records in", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			j.totals.Records--
			j.send(t, conn, 0, 1, 2)
		}},
		"a chunk beyond the totals": {"beyond the job's 2 chunks", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			j.totals.Chunks = 2
			j.send(t, conn, 0, 2)
		}},
		"a failure": {"chunk 1: message too large", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			send(t, conn, &wire.Result{ID: j.results[1].ID, Failure: "message too large"})
		}},
		"no result": {"read the result of chunk 0", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			ok(t, conn.PublishResult(testContext(t), j.results[0].ID, []byte("noise")))
		}},
		"a result of another part": {"claims part 0", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			j.results[2].ID.Part = 0
			j.send(t, conn, 2)
		}},
		"no Parquet": {"part 0: chunk 0: results", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			j.results[0].Results = []byte("PAR1 it is not PAR1")
			j.send(t, conn, 0, 1)
		}},
		"no tally": {"statistics of chunk 0", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			j.results[0].Tally = []byte("noise")
			j.send(t, conn, 0, 1)
		}},
		"records twice": {"its first record is", func(t *testing.T, conn *queue.Conn, _ string, j *testJob) {
			j.results[1].First--
			j.send(t, conn, 0, 1)
		}},
		"a dataset with other options": {"target is", func(t *testing.T, conn *queue.Conn, output string, j *testJob) {
			other := newJob(t, j.id, 1, 2, 1)
			other.spec.Target = 1
			second := broker(t)
			stop := serve(t, second, Options{Output: output})
			other.create(t, second)
			other.send(t, second, 0)
			other.seal(t, second)
			other.awaitDone(t, second)
			stop()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, output := broker(t), t.TempDir()
			j := newJob(t, "j", 1, 2, 3)
			j.create(t, conn)
			test.spoil(t, conn, output, j)
			if name != "a failure" {
				j.seal(t, conn)
			}
			stop := serve(t, conn, Options{Output: output})
			awaitFailed(t, conn, "j", test.reason)
			stop()

			// The next aggregator leaves it at that, and has no use for its results.
			send(t, conn, j.again(2, 7))
			stop = serve(t, conn, Options{Output: output, Lease: quick})
			awaitSwept(t, conn)
			stop()
			awaitFailed(t, conn, "j", test.reason)
		})
	}
}

// A corpus that was cut back between two drives does not hang the job.
func TestShorterCorpus(t *testing.T) {
	output := t.TempDir()
	long, short := newJob(t, "j", 1, 1, 4), newJob(t, "j", 1, 1, 3)
	conn := broker(t)
	stop := serve(t, conn, Options{Output: output})
	long.create(t, conn)
	long.send(t, conn, 0, 3)
	awaitParts(t, conn, "j", 2)
	stop()
	conn = broker(t)
	stop = serve(t, conn, Options{Output: output})
	short.create(t, conn)
	awaitParts(t, conn, "j", 2)
	short.seal(t, conn)
	awaitFailed(t, conn, "j", "part 3 is committed, beyond the job's 3 chunks")
	stop()
}
