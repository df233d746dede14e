package producer

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 2 * time.Minute        // how long a test waits for what must happen
	quiet    = 100 * time.Millisecond // how long for what must not
)

// chunkRecords is the number of 1x1 boards that fill a chunk of testCorpus.
const chunkRecords = 65534

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
func broker(t testing.TB, limits queue.Limits) *queue.Conn {
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

// testCorpus is the text of random 1x1 boards, the least text that makes a chunk.
func testCorpus(seed uint64, boards int) []byte {
	rng := rand.New(rand.NewPCG(seed, 5))
	text := make([]byte, 0, 2*boards)
	for range boards {
		text = append(text, '0'+byte(rng.IntN(2)), '\n')
	}
	return text
}

func open(t testing.TB, text []byte) *corpus.Corpus {
	t.Helper()
	c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 1, Cols: 1}}, bytes.NewReader(text))
	ok(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// job is one drive of a corpus as a job "j", with the test as its aggregator.
type job struct {
	t      testing.TB
	ctx    context.Context // of Run
	cancel context.CancelFunc
	conn   *queue.Conn
	tasks  *queue.Tasks
	ended  chan error   // what Run returned
	limit  atomic.Int64 // records that the window allows; as set by ledger
	taken  int64        // tasks, which the ledger then says are received
}

// drive starts Run. No record may be handed over beyond the limit.
func drive(t testing.TB, conn *queue.Conn, c *corpus.Corpus, spec puzzle.Spec) *job {
	t.Helper()
	return driveWithin(t, conn, c, spec, 0)
}

// driveWithin is drive where the ledger lets some chunks come from the start.
func driveWithin(t testing.TB, conn *queue.Conn, c *corpus.Corpus, spec puzzle.Spec, chunks int64) *job {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	tasks, err := conn.Tasks(ctx, queue.Lanes()...)
	ok(t, err)
	j := &job{t: t, ctx: ctx, cancel: cancel, conn: conn, tasks: tasks, ended: make(chan error, 1)}
	j.limit.Store(chunks * chunkRecords)
	published := func(records int64) {
		if records > j.limit.Load() {
			t.Errorf("%d records handed over, the window allows %d", records, j.limit.Load())
		}
	}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		j.ended <- Run(ctx, conn, c, Options{Job: "j", Spec: spec, Window: 1, Published: published})
	}()
	t.Cleanup(func() {
		cancel()
		<-returned
		tasks.Close()
	})
	return j
}

// ledger says which parts are committed, and how many chunks may come then.
func (j *job) ledger(chunks int64, parts ...wire.Part) {
	j.t.Helper()
	j.limit.Store(chunks * chunkRecords)
	j.write(&wire.Ledger{State: wire.Open, Parts: parts, Received: wire.Count{Chunks: j.taken, Records: j.taken * chunkRecords}})
}

func (j *job) write(l *wire.Ledger) {
	j.t.Helper()
	writeLedger(j.t, j.ctx, j.conn, "j", l)
}

// writeLedger writes a job's ledger, as the one aggregator that there is.
func writeLedger(t testing.TB, ctx context.Context, conn *queue.Conn, id string, l *wire.Ledger) {
	t.Helper()
	var revision uint64
	s, err := conn.Standing(ctx, id)
	if err == nil {
		revision = s.Revision
	} else if !errors.Is(err, queue.ErrNotFound) {
		t.Fatal(err)
	}
	_, err = conn.PutLedger(ctx, id, l, revision)
	ok(t, err)
}

// take returns the next n tasks, by their number: they may be stored in another
// order.
func (j *job) take(n int) []*wire.Task {
	j.t.Helper()
	var got []*wire.Task
	for range n {
		d, err := j.tasks.Next(j.ctx)
		ok(j.t, err)
		task := new(wire.Task)
		err = d.Parse(task)
		ok(j.t, err)
		ok(j.t, d.DoubleAck(j.ctx))
		got = append(got, task)
	}
	j.taken += int64(n)
	slices.SortFunc(got, func(a, b *wire.Task) int { return int(a.ID.Chunk - b.ID.Chunk) })
	return got
}

// nothing checks that no task comes.
func (j *job) nothing() {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.ctx, quiet)
	defer cancel()
	if d, err := j.tasks.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		j.t.Fatalf("got a task %+v, %v", d, err)
	}
}

// end waits for Run to return.
func (j *job) end() error {
	j.t.Helper()
	select {
	case err := <-j.ended:
		return err
	case <-j.ctx.Done():
		j.t.Fatal("Run does not return")
		return nil
	}
}

func (j *job) totals() *wire.Totals {
	j.t.Helper()
	record, err := j.conn.Job(testContext(j.t), "j")
	ok(j.t, err)
	return record.Totals
}

// part is a committed part with the content of some tasks.
func part(number int64, tasks ...*wire.Task) wire.Part {
	var digests [][sha256.Size]byte
	for _, task := range tasks {
		digests = append(digests, task.Chunk.Digest())
	}
	return wire.Part{Number: number, Digest: wire.SumPart(digests)}
}

// A corpus of 5 chunks in parts of 2, with a window of 1 part: what is published
// follows the ledger, and the tasks together are the corpus.
func TestWindow(t *testing.T) {
	const boards = 4*chunkRecords + 10
	text := testCorpus(1, boards)
	j := drive(t, broker(t, queue.Limits{}), open(t, text), testSpec(t))
	j.nothing() // before there is a ledger, nobody knows what is committed

	j.ledger(2)
	tasks := j.take(2)
	j.nothing()
	j.ledger(2, wire.Part{Number: 1}) // of no help: part 0 is still open
	j.nothing()
	j.ledger(4, part(0, tasks...))
	tasks = append(tasks, j.take(2)...)
	j.nothing()
	if j.totals() != nil {
		t.Error("sealed before the end of the corpus")
	}
	j.ledger(5, part(0, tasks[:2]...), part(1, tasks[2:]...))
	tasks = append(tasks, j.take(1)...)
	ok(t, j.end())
	j.nothing()

	next := int64(0)
	for i, task := range tasks {
		want := wire.ID{Job: "j", Chunk: int64(i), Part: int64(i) / 2, Epoch: 1}
		if task.ID != want || task.Chunk.First != next {
			t.Errorf("got task %+v from record %d, want %+v from %d", task.ID, task.Chunk.First, want, next)
		}
		for k := range task.Chunk.Boards() {
			if got, want := task.Chunk.Runs[0].Cell(k, 0, 0), text[2*next] == '1'; got != want {
				t.Fatalf("record %d is %v, want %v", next, got, want)
			}
			next++
		}
	}
	if next != boards {
		t.Errorf("%d boards in tasks, want %d", next, boards)
	}
}

// The totals are those of the corpus, computed from the files and the tasks.
func TestTotals(t *testing.T) {
	ctx := testContext(t)
	conn := broker(t, queue.Limits{})
	a, b := filepath.Join(t.TempDir(), "a.txt"), filepath.Join(t.TempDir(), "b.txt.gz")
	plain := []byte("101\n0x0\n111\n")
	ok(t, os.WriteFile(a, plain, 0o666))
	packed := compress(t, []byte("010\n000\n"))
	ok(t, os.WriteFile(b, packed, 0o666))
	c, err := corpus.Open(t.Context(), []string{a, b}, corpus.Options{Size: puzzle.Size{Rows: 1, Cols: 3}}, nil)
	ok(t, err)
	j := drive(t, conn, c, testSpec(t))
	j.ledger(1)
	tasks := j.take(1)
	ok(t, j.end())

	sumA, sumB := sha256.Sum256(plain), sha256.Sum256(packed)
	mark := part(0, tasks...).Digest
	want := &wire.Totals{
		Records: 5, Chunks: 1, Format: corpus.Lines,
		Sources: []wire.Source{
			{Name: a, Bytes: int64(len(plain)), SHA256: sumA},
			{Name: b, Bytes: int64(len(packed)), SHA256: sumB},
		},
		CorpusSHA256: sha256.Sum256(fmt.Appendf(nil, "%x  %s\n%x  %s\n", sumA, a, sumB, b)),
		PartsSHA256:  sha256.Sum256(mark[:]),
	}
	if got := j.totals(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	chunk := tasks[0].Chunk
	if want := []puzzle.Span{{Source: a, Records: 3}, {Source: b, Records: 2}}; !slices.Equal(chunk.Spans, want) {
		t.Errorf("spans %v, want %v", chunk.Spans, want)
	}
	if r := chunk.Rejects; len(r) != 1 || r[0].Index != 1 || r[0].Reason != puzzle.UnknownSymbol || string(r[0].Raw) != "0x0" {
		t.Errorf("rejects %+v", r)
	}

	// The same again is harmless; anything else under the same id is not.
	again, err := corpus.Open(t.Context(), []string{a, b}, corpus.Options{Size: puzzle.Size{Rows: 1, Cols: 3}}, nil)
	ok(t, err)
	second := drive(t, conn, again, testSpec(t))
	second.limit.Store(chunkRecords)
	if got := second.take(1)[0]; got.ID.Epoch != 2 || got.Chunk.Digest() != chunk.Digest() {
		t.Errorf("the second drive sent %+v", got.ID)
	}
	ok(t, second.end())
	spec := testSpec(t)
	spec.Target = puzzle.One
	if err := Run(ctx, conn, open(t, nil), Options{Job: "j", Spec: spec, Window: 1}); !errors.Is(err, queue.ErrConflict) {
		t.Errorf("another spec under the same id: %v", err)
	}
}

func compress(t testing.TB, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(text)
	ok(t, errors.Join(err, w.Close()))
	return packed.Bytes()
}

// Committed parts are compared with the corpus, not published; the totals are
// the same however many there were.
func TestResume(t *testing.T) {
	text := testCorpus(1, 4*chunkRecords+10)
	all := split(testSpec(t), readAll(t, open(t, text)))
	if len(all) != 5 {
		t.Fatalf("the corpus has %d chunks, want 5", len(all))
	}
	var tasks []*wire.Task
	for _, c := range all {
		tasks = append(tasks, &wire.Task{Chunk: *c})
	}
	parts := []wire.Part{part(0, tasks[:2]...), part(1, tasks[2:4]...), part(2, tasks[4])}
	var totals []string
	for _, test := range []struct {
		committed []wire.Part
		sent      []int64 // chunks
	}{
		{parts, nil},
		{parts[:2], []int64{4}},
		{parts[1:], []int64{0, 1}},
		{[]wire.Part{parts[0], parts[2]}, []int64{2, 3}},
	} {
		j := drive(t, broker(t, queue.Limits{}), open(t, text), testSpec(t))
		j.limit.Store(5 * chunkRecords)
		j.write(&wire.Ledger{State: wire.Open, Parts: test.committed})
		for i, task := range j.take(len(test.sent)) {
			if task.ID.Chunk != test.sent[i] || task.Chunk.Digest() != all[test.sent[i]].Digest() {
				t.Errorf("chunk %d was sent, want %v", task.ID.Chunk, test.sent)
			}
		}
		if test.sent != nil && test.sent[0] < 4 {
			j.write(&wire.Ledger{State: wire.Open, Parts: parts, Received: wire.Count{Chunks: j.taken, Records: j.taken * chunkRecords}})
		}
		ok(t, j.end())
		j.nothing()
		totals = append(totals, fmt.Sprint(j.totals()))
	}
	if slices.Sort(totals); totals[0] != totals[len(totals)-1] {
		t.Errorf("totals differ: %v", totals)
	}
}

func readAll(t testing.TB, c *corpus.Corpus) (all []corpus.Record) {
	t.Helper()
	for {
		var rec corpus.Record
		if err := c.Next(&rec); err != nil {
			return all
		}
		all = append(all, rec)
	}
}

// A corpus that has changed since parts were committed ends the drive, which
// names the part, and nothing is sealed.
func TestOtherCorpus(t *testing.T) {
	text := testCorpus(1, 2*chunkRecords)
	chunks := split(testSpec(t), readAll(t, open(t, text)))
	committed := part(0, &wire.Task{Chunk: *chunks[0]}, &wire.Task{Chunk: *chunks[1]})
	changed := bytes.Clone(text)
	changed[len(changed)-2] ^= 1
	for name, other := range map[string][]byte{
		"one cell differs":  changed,
		"a record is gone":  text[2:],
		"a chunk is gone":   text[:2*chunkRecords],
		"all is one larger": append(bytes.Clone(text), "1\n"...),
	} {
		t.Run(name, func(t *testing.T) {
			j := drive(t, broker(t, queue.Limits{}), open(t, other), testSpec(t))
			j.ledger(5, committed)
			err := j.end()
			if name == "all is one larger" {
				ok(t, err) // part 0 is the same, the rest is new
				return
			}
			if !errors.Is(err, protocol.ErrOtherCorpus) || !strings.Contains(err.Error(), "part 0") {
				t.Errorf("got error %v", err)
			}
			if j.totals() != nil {
				t.Error("the job is sealed")
			}
		})
	}
}

// A job that the aggregator has given up is not driven any further.
func TestFailedJob(t *testing.T) {
	for name, before := range map[string]int{"at once": 0, "while waiting for the window": 2} {
		t.Run(name, func(t *testing.T) {
			j := drive(t, broker(t, queue.Limits{}), open(t, testCorpus(1, 3*chunkRecords)), testSpec(t))
			if before > 0 {
				j.ledger(2)
				j.take(before)
			}
			j.write(&wire.Ledger{State: wire.Failed, Reason: "the disk is full", Epoch: 1})
			if err := j.end(); !errors.Is(err, ErrJobFailed) || !strings.Contains(err.Error(), "the disk is full") {
				t.Errorf("got error %v", err)
			}
			if j.totals() != nil {
				t.Error("the job is sealed")
			}
		})
	}
}

func TestEmptyCorpus(t *testing.T) {
	j := drive(t, broker(t, queue.Limits{}), open(t, []byte("\n\n")), testSpec(t))
	j.ledger(0)
	ok(t, j.end())
	j.nothing()
	got, mark := j.totals(), wire.SumPart(nil)
	if got == nil || got.Records != 0 || got.Chunks != 0 || len(got.Sources) != 1 || got.PartsSHA256 != sha256.Sum256(mark[:]) {
		t.Errorf("got totals %+v", got)
	}
}

// A corpus that cannot be read to its end is not a job's end.
func TestBrokenCorpus(t *testing.T) {
	packed := compress(t, testCorpus(1, 3*chunkRecords))
	j := drive(t, broker(t, queue.Limits{}), open(t, packed[:len(packed)*9/10]), testSpec(t))
	j.ledger(2) // the first two chunks may be sent or not; the third is never whole
	if err := j.end(); err == nil || !strings.Contains(err.Error(), "read -") {
		t.Errorf("got error %v", err)
	}
	if j.totals() != nil {
		t.Error("the job is sealed")
	}
}

// A stream without room is waited for; what does not fit stays with us.
func TestFullQueue(t *testing.T) {
	spec := testSpec(t)
	spec.PartChunks = 100
	const chunks = 12 // of 0.13 MB
	text := testCorpus(1, chunks*chunkRecords)
	j := drive(t, broker(t, queue.Limits{TaskBytes: 1 << 20}), open(t, text), spec)
	j.ledger(chunks)
	for i, task := range j.take(chunks) {
		if task.ID.Chunk != int64(i) {
			t.Errorf("got chunk %d, want %d", task.ID.Chunk, i)
		}
	}
	ok(t, j.end())
}

// Run returns at once when its context ends, whatever it waits for.
func TestCancel(t *testing.T) {
	roomy := testSpec(t)
	roomy.PartChunks = 100
	for name, test := range map[string]struct {
		spec   puzzle.Spec
		limits queue.Limits
		wait   func(j *job)
	}{
		"for a ledger":     {testSpec(t), queue.Limits{}, func(j *job) { j.nothing() }},
		"for the window":   {testSpec(t), queue.Limits{}, func(j *job) { j.ledger(2); j.take(2); j.nothing() }},
		"for a full queue": {roomy, queue.Limits{TaskBytes: 256 << 10}, func(j *job) { j.ledger(5); j.take(1) }}, // room for one
	} {
		t.Run(name, func(t *testing.T) {
			j := drive(t, broker(t, test.limits), open(t, testCorpus(1, 5*chunkRecords)), test.spec)
			test.wait(j)
			j.cancel()
			if err := <-j.ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v", err)
			}
		})
	}
}
