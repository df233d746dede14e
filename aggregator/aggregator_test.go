package aggregator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/tally"
	"github.com/flipmill/flipmill/pkg/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 2 * time.Minute // how long a test waits for what must happen

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// broker returns a connection to a broker of the test's own.
func broker(t testing.TB) *queue.Conn {
	t.Helper()
	return limitedBroker(t, queue.Limits{})
}

func limitedBroker(t testing.TB, limits queue.Limits) *queue.Conn {
	t.Helper()
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir()})
	ok(t, err)
	t.Cleanup(func() { server.Close() })
	conn, err := queue.Connect(testContext(t), queue.Options{Server: server})
	ok(t, err)
	t.Cleanup(conn.Close)
	ok(t, conn.Setup(testContext(t), limits))
	return conn
}

// serve runs an aggregator until stop is called; like the verb, anew after a loss.
func serve(t testing.TB, conn *queue.Conn, opts Options) (stop func()) {
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() {
		err := Run(ctx, conn, opts)
		for errors.Is(err, queue.ErrNotFound) {
			err = Run(ctx, conn, opts)
		}
		ended <- err
	}()
	stopped := false
	stop = func() {
		t.Helper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// testJob is a job with a small corpus, and what workers make of it.
type testJob struct {
	id      string
	spec    puzzle.Spec
	results []*wire.Result
	totals  wire.Totals
}

// newJob makes a job whose corpus depends on the seed alone. Every third chunk
// has rejects; the last chunk has nothing else.
func newJob(t testing.TB, id string, seed uint64, partChunks, chunks int) *testJob {
	t.Helper()
	rule, err := puzzle.ParseRule("plus")
	ok(t, err)
	j := &testJob{id: id, spec: puzzle.Spec{
		Rule: rule, SearchLimit: 1 << 20, Columns: dataset.Columns(), Cells: dataset.CellsText,
		Compression: dataset.CompressionNone, PartChunks: partChunks, Format: "lines", Symbols: puzzle.Digits(),
	}}
	rng := rand.New(rand.NewPCG(seed, 3))
	encoder, err := dataset.NewEncoder(j.spec, nil)
	ok(t, err)
	var parts []wire.Part
	var digests [][sha256.Size]byte
	for i := range chunks {
		boards, rejects := 20+rng.IntN(20), i%3/2*(1+rng.IntN(5))
		if i > 0 && i == chunks-1 {
			boards, rejects = 0, 7
		}
		r := solved(t, encoder, rng, j.totals.Records, boards, rejects)
		r.ID = wire.ID{Job: id, Chunk: int64(i), Part: int64(i / partChunks), Epoch: 1}
		j.results = append(j.results, r)
		j.totals.Records += r.Records()
		if digests = append(digests, r.Digest); len(digests) == partChunks || i == chunks-1 {
			parts = append(parts, wire.Part{Number: int64(len(parts)), Digest: wire.SumPart(digests)})
			digests = nil
		}
	}
	if chunks == 0 {
		parts = append(parts, wire.Part{Digest: wire.SumPart(nil)})
	}
	j.totals.Chunks, j.totals.Format = int64(chunks), "lines"
	j.totals.Sources = []wire.Source{{Name: "corpus.txt", Bytes: 1000, SHA256: sha256.Sum256([]byte{byte(seed)})}}
	j.totals.CorpusSHA256 = sha256.Sum256([]byte{byte(seed), 1})
	j.totals.PartsSHA256 = wire.SumParts(parts)
	return j
}

// solved makes a result of random boards, each the outcome of its solution's
// presses, and rejects at its end.
func solved(t testing.TB, encoder *dataset.Encoder, rng *rand.Rand, first int64, boards, rejects int) *wire.Result {
	t.Helper()
	rule, err := puzzle.ParseRule("plus")
	ok(t, err)
	chunk := &puzzle.Chunk{First: first, Spans: []puzzle.Span{{Source: "corpus.txt", Records: boards + rejects}}}
	var answers []puzzle.Answers
	if boards > 0 {
		size := puzzle.Size{Rows: 5, Cols: 4}
		a := puzzle.Answers{}
		a.Reset(size, boards)
		clear(a.Solutions.Masks)
		for i := range boards {
			a.Status[i], a.OptimalCount[i] = puzzle.Solved, 1
			for range rng.IntN(5) {
				a.Solutions.SetCell(i, rng.IntN(size.Rows), rng.IntN(size.Cols))
			}
			a.MinMoves[i] = int32(bytes.Count(a.Solutions.AppendText(nil, i), []byte("1")))
		}
		run := puzzle.NewRun(size, boards)
		rule.Press(run, a.Solutions)
		chunk.Runs, answers = []puzzle.Run{run}, []puzzle.Answers{a}
	}
	for k := range rejects {
		chunk.Rejects = append(chunk.Rejects, puzzle.Reject{Index: first + int64(boards+k), Reason: puzzle.RaggedRow, Detail: "a row of 3 cells", Raw: []byte("010")})
	}
	for k := range boards + rejects {
		chunk.Lines = append(chunk.Lines, first+int64(k)+1)
	}
	results, rejected, err := encoder.Encode(chunk, answers)
	ok(t, err)
	var counts tally.Tally
	counts.AddChunk(chunk, answers)
	return &wire.Result{
		First: first, Boards: int64(boards), Rejected: int64(rejects), Digest: chunk.Digest(),
		Results: bytes.Clone(results), Rejects: bytes.Clone(rejected), Tally: counts.Append(nil),
	}
}

// dataset writes the job's dataset without an aggregator and returns its files.
func (j *testJob) dataset(t testing.TB) map[string]string {
	t.Helper()
	dir, err := dataset.Open(t.TempDir(), j.id, j.spec)
	ok(t, err)
	for first := 0; first < len(j.results); first += j.spec.PartChunks {
		part, err := dir.NewPart(first / j.spec.PartChunks)
		ok(t, err)
		for _, r := range j.results[first:min(len(j.results), first+j.spec.PartChunks)] {
			counts, err := tally.Parse(r.Tally)
			ok(t, err)
			ok(t, part.Add(dataset.Chunk{
				First: r.First, Records: int(r.Records()), Digest: r.Digest, Results: r.Results, Rejects: r.Rejects, Tally: counts,
			}))
		}
		_, err = part.Commit()
		ok(t, err)
	}
	source := j.totals.Sources[0]
	_, err = dir.Finish(dataset.Input{
		Records: j.totals.Records, Chunks: j.totals.Chunks, CorpusSHA256: hex.EncodeToString(j.totals.CorpusSHA256[:]),
		Sources: []dataset.Source{{Name: source.Name, Bytes: source.Bytes, SHA256: hex.EncodeToString(source.SHA256[:])}},
	})
	ok(t, err)
	return tree(t, dir.Path())
}

// tree returns the files below a folder and their content.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	ok(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, root)] = string(data)
		return err
	}))
	return files
}

// check compares the job's dataset in a folder with what it must be.
func (j *testJob) check(t testing.TB, output string) {
	t.Helper()
	path := filepath.Join(output, "job="+j.id)
	got, want := tree(t, path), j.dataset(t)
	for name, data := range want {
		if got[name] != data {
			t.Errorf("job %s: %s has %d bytes, want other %d", j.id, name, len(got[name]), len(data))
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("job %s: extra file %s", j.id, name)
	}
	report, err := dataset.Verify(path, nil)
	ok(t, err)
	if !report.OK() || report.Records != j.totals.Records {
		t.Errorf("job %s: verify found %d records, %v", j.id, report.Records, report.Problems)
	}
}

func (j *testJob) create(t testing.TB, conn *queue.Conn) {
	t.Helper()
	_, err := conn.CreateJob(testContext(t), &wire.Job{ID: j.id, Spec: j.spec})
	ok(t, err)
}

// send publishes the results of some chunks, in that order.
func (j *testJob) send(t testing.TB, conn *queue.Conn, chunks ...int) {
	t.Helper()
	for _, chunk := range chunks {
		send(t, conn, j.results[chunk])
	}
}

func send(t testing.TB, conn *queue.Conn, r *wire.Result) {
	t.Helper()
	data, err := wire.AppendResult(nil, r)
	ok(t, err)
	ok(t, conn.PublishResult(testContext(t), r.ID, data))
}

// again returns a chunk's result as another drive of the corpus makes it.
func (j *testJob) again(chunk int, epoch uint32) *wire.Result {
	r := *j.results[chunk]
	r.ID.Epoch = epoch
	return &r
}

func (j *testJob) seal(t testing.TB, conn *queue.Conn) {
	t.Helper()
	ok(t, conn.SealJob(testContext(t), j.id, &j.totals))
}

// await follows a job's ledger until it is as wanted. On the way nothing in it
// may go back.
func await(t testing.TB, conn *queue.Conn, job string, what string, wanted func(*wire.Ledger) bool) *wire.Ledger {
	t.Helper()
	var last wire.Ledger
	for l, err := range conn.WatchLedger(testContext(t), job) {
		if err != nil {
			t.Fatalf("job %s: wait for %s: %v; the ledger says %+v", job, what, err, last)
		}
		if l.Received.Chunks < last.Received.Chunks || l.Committed.Chunks < last.Committed.Chunks ||
			l.Committed.Records < last.Committed.Records || len(l.Parts) < len(last.Parts) || l.Committed.Chunks > l.Received.Chunks {
			t.Errorf("job %s: the ledger went from %+v to %+v", job, last, l)
		}
		if last = *l; wanted(l) {
			return l
		}
		if l.State != wire.Open {
			t.Fatalf("job %s: wait for %s: it is %s: %s", job, what, l.State, l.Reason)
		}
	}
	panic("BUG: a watch ends with an error")
}

func awaitParts(t testing.TB, conn *queue.Conn, job string, parts int) {
	t.Helper()
	await(t, conn, job, fmt.Sprintf("%d parts", parts), func(l *wire.Ledger) bool { return len(l.Parts) == parts })
}

// awaitDone waits for the job's end and checks the ledger.
func (j *testJob) awaitDone(t testing.TB, conn *queue.Conn) {
	t.Helper()
	l := await(t, conn, j.id, "its end", func(l *wire.Ledger) bool { return l.State == wire.Done })
	want := wire.Count{Chunks: j.totals.Chunks, Records: j.totals.Records}
	if l.Received != want || l.Committed != want || wire.SumParts(l.Parts) != j.totals.PartsSHA256 {
		t.Errorf("job %s is done with ledger %+v, want counts %+v", j.id, l, want)
	}
}

// awaitFailed waits until the job is given up for a reason.
func awaitFailed(t testing.TB, conn *queue.Conn, job, reason string) {
	t.Helper()
	l := await(t, conn, job, "failure", func(l *wire.Ledger) bool { return l.State == wire.Failed })
	if !strings.Contains(l.Reason, reason) {
		t.Errorf("job %s failed with %q, want %q", job, l.Reason, reason)
	}
}

// logged returns the ids of the results in the log, oldest first. No aggregator
// may be running, which would purge the mark that is put at the end.
func logged(t testing.TB, conn *queue.Conn) (ids []wire.ID) {
	t.Helper()
	const mark = "end-of-log"
	// Another epoch each time, or the broker would take it for a copy.
	ok(t, conn.PublishResult(testContext(t), wire.ID{Job: mark, Epoch: rand.Uint32()}, nil))
	var end uint64
	for r, err := range conn.Results(testContext(t), mark) {
		ok(t, err)
		end = r.Seq
		break
	}
	ok(t, conn.PurgePart(testContext(t), mark, 0))
	for seq := range end {
		r, err := conn.ReadResult(testContext(t), seq+1)
		if errors.Is(err, queue.ErrNotFound) {
			continue
		}
		ok(t, err)
		ids = append(ids, r.ID)
	}
	return ids
}

// quick is a lease of those who are alone, so that nobody takes anything from
// them: they look after everything often.
const quick = 50 * time.Millisecond

// awaitSwept waits until the aggregator that is running has removed all results.
func awaitSwept(t testing.TB, conn *queue.Conn) {
	t.Helper()
	ctx := testContext(t)
	for left := -1; left != 0; {
		left = 0
		ok(t, conn.SweepResults(ctx, func(string, *queue.Standing) bool {
			left++
			return false
		}))
	}
}

func wantLogged(t testing.TB, conn *queue.Conn, want int) {
	t.Helper()
	if got := logged(t, conn); len(got) != want {
		t.Errorf("%d results in the log, want %d: %v", len(got), want, got)
	}
}
