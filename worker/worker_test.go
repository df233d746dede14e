package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role, ok := processes()[os.Args[1]]; ok {
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	goleak.VerifyTestMain(m)
}

const (
	patience = 2 * time.Minute        // how long a test waits for what must happen
	quiet    = 300 * time.Millisecond // how long for what must not
)

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

// messages is a slog handler that hands over what is logged.
type messages struct {
	slog.Handler
	said chan string
}

func (m messages) Enabled(context.Context, slog.Level) bool { return true }

func (m messages) WithAttrs([]slog.Attr) slog.Handler { return m }

func (m messages) Handle(_ context.Context, r slog.Record) error {
	select {
	case m.said <- r.Message:
	default: // nobody listens
	}
	return nil
}

// broker is a broker of the test's own, with what the test does at it.
type broker struct {
	t    testing.TB
	conn *queue.Conn
	url  string      // for other processes, if the server listens
	said chan string // what the connection logs
}

func newBroker(t testing.TB, o queue.ServerOptions, limits queue.Limits) *broker {
	t.Helper()
	o.StoreDir = t.TempDir()
	server, err := queue.StartServer(o)
	ok(t, err)
	t.Cleanup(func() { server.Close() })
	b := &broker{t: t, url: server.URL(), said: make(chan string, 100)}
	b.conn, err = queue.Connect(testContext(t), queue.Options{Server: server, Log: slog.New(messages{slog.DiscardHandler, b.said})})
	ok(t, err)
	t.Cleanup(b.conn.Close)
	ok(t, b.conn.Setup(testContext(t), limits))
	return b
}

func (b *broker) create(id string, spec puzzle.Spec) {
	b.t.Helper()
	_, err := b.conn.CreateJob(testContext(b.t), &wire.Job{ID: id, Spec: spec})
	ok(b.t, err)
}

// publish stores tasks, in order.
func (b *broker) publish(tasks ...*wire.Task) {
	b.t.Helper()
	for _, task := range tasks {
		data, err := wire.AppendTask(nil, task)
		ok(b.t, err)
		b.publishBytes(task.ID, data)
	}
}

func (b *broker) publishBytes(id wire.ID, data []byte) {
	b.t.Helper()
	p := b.conn.Publisher(queue.Normal, 1<<20)
	ok(b.t, p.Publish(testContext(b.t), id, data))
	ok(b.t, p.Flush(testContext(b.t)))
}

// results returns the first n results of a job in the log.
func (b *broker) results(job string, n int) (got []*wire.Result) {
	b.t.Helper()
	for r, err := range b.conn.Results(testContext(b.t), job) {
		ok(b.t, err)
		result, err := r.Parse()
		ok(b.t, err)
		if got = append(got, result); len(got) == n {
			break
		}
	}
	return got
}

// tasks takes tasks as another worker would.
func (b *broker) tasks() *queue.Tasks {
	b.t.Helper()
	tasks, err := b.conn.Tasks(testContext(b.t), queue.Lanes()...)
	ok(b.t, err)
	b.t.Cleanup(tasks.Close)
	return tasks
}

// noTasks checks that no task is left for anybody.
func (b *broker) noTasks() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(testContext(b.t), quiet)
	defer cancel()
	if d, err := b.tasks().Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		b.t.Errorf("got a task %+v, %v", d, err)
	}
}

// await waits until the connection or the worker says something.
func (b *broker) await(message string) {
	b.t.Helper()
	for {
		select {
		case said := <-b.said:
			if said == message {
				return
			}
		case <-testContext(b.t).Done():
			b.t.Fatalf("nobody says %q", message)
		}
	}
}

// running is a worker with its two contexts.
type running struct {
	drain, abort context.CancelFunc
	ended        chan error
}

func (b *broker) work(slots int) *running {
	return b.workWith(Options{Slots: slots})
}

func (b *broker) workWith(opts Options) *running {
	opts.Log = slog.New(messages{slog.DiscardHandler, b.said})
	fetch, drain := context.WithCancel(testContext(b.t))
	work, abort := context.WithCancel(testContext(b.t))
	r := &running{drain: drain, abort: abort, ended: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.ended <- Run(fetch, work, b.conn, opts)
	}()
	b.t.Cleanup(func() {
		drain()
		abort()
		<-ended
	})
	return r
}

func testTask(seed uint64, id string, chunk int64) *wire.Task {
	rng := rand.New(rand.NewPCG(seed, 77))
	return &wire.Task{ID: wire.ID{Job: id, Chunk: chunk, Part: chunk / 4, Epoch: 1}, Chunk: *testChunk(rng, 20*chunk, 20, int(chunk)%3)}
}

// Several slots serve many jobs, each with its own options; every chunk has its
// result and no task is left.
func TestManyJobs(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	rules := []string{"plus", "fridge", "king", "x", "plus-torus"}
	wanted := map[wire.ID]*wire.Result{}
	const jobs, chunks = maxJobs + 2, 2
	for chunk := range int64(chunks) {
		for n := range jobs {
			id := fmt.Sprint("job-", n)
			spec := testSpec(t, rules[n%len(rules)], puzzle.Target(n%3))
			if chunk == 0 {
				b.create(id, spec)
			}
			task := testTask(uint64(n), id, chunk)
			b.publish(task)
			wanted[task.ID] = want(t, spec, task, &task.Chunk)
		}
	}
	w := b.work(3)
	var all []*wire.Result
	for n := range jobs {
		all = append(all, b.results(fmt.Sprint("job-", n), chunks)...)
	}
	for _, got := range all {
		if want, ok := wanted[got.ID]; ok {
			clean(want)
			clean(got)
			compare(t, got, want)
			delete(wanted, got.ID)
		} else {
			t.Errorf("a second result, or one of nothing: %s", got.ID)
		}
	}
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// clean makes empty lists equal: they are not told apart on the wire.
func clean(r *wire.Result) {
	r.Results, r.Rejects, r.Tally = append([]byte{}, r.Results...), append([]byte{}, r.Rejects...), append([]byte{}, r.Tally...)
}

// crowd fills the log of results, so that there is no room for a task's.
func (b *broker) crowd() {
	b.t.Helper()
	ok(b.t, b.conn.PublishResult(testContext(b.t), wire.ID{Job: "crowd"}, make([]byte, crowdBytes)))
}

const crowdBytes = 60 << 10

// crowded is a broker whose log of results is full, with one task whose result
// has to wait for room, in the hands of a worker.
func crowded(t *testing.T) (*broker, *running, *wire.Task) {
	t.Helper()
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{ResultBytes: crowdBytes + 1000, AckWait: time.Hour})
	b.crowd()
	b.create("j", testSpec(t, "plus", puzzle.Zero))
	task := testTask(1, "j", 5)
	b.publish(task)
	w := b.work(1)
	b.await("waiting for the broker") // to take the result
	return b, w, task
}

// A worker that is told to stop finishes what it holds: the result first, then
// the acknowledgement.
func TestDrain(t *testing.T) {
	b, w, task := crowded(t)
	w.drain()
	ctx, cancel := context.WithTimeout(testContext(t), quiet)
	defer cancel()
	select {
	case err := <-w.ended:
		t.Fatalf("Run returned %v with a task in its hands", err)
	case <-ctx.Done():
	}
	ok(t, b.conn.PurgePart(testContext(t), "crowd", 0))
	got, want := b.results("j", 1)[0], want(t, testSpec(t, "plus", puzzle.Zero), task, &task.Chunk)
	clean(got)
	clean(want)
	compare(t, got, want)
	ok(t, <-w.ended)
	b.noTasks()
}

// A worker that is stopped at once gives back the task whose result is not
// stored. If it had acknowledged it, nobody would ever solve the chunk; if it
// just let go of it, only after AckWait, which is an hour here.
func TestAbort(t *testing.T) {
	b, w, task := crowded(t)
	w.drain()
	w.abort()
	ok(t, <-w.ended)
	d, err := b.tasks().Next(testContext(t))
	ok(t, err)
	if d.ID.Chunk != task.ID.Chunk || d.Delivered != 2 {
		t.Errorf("got %+v", d)
	}
	ok(t, d.NakWithDelay(0))

	// Another worker takes over.
	ok(t, b.conn.PurgePart(testContext(t), "crowd", 0))
	w = b.work(1)
	if got := b.results("j", 1)[0]; got.ID != task.ID || got.Failure != "" {
		t.Errorf("got %+v", got)
	}
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// What cannot be read gets a result too: the job cannot become whole without it.
func TestCorruptTask(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	b.create("j", testSpec(t, "plus", puzzle.Zero))
	task := testTask(1, "j", 6)
	data, err := wire.AppendTask(nil, task)
	ok(t, err)
	b.publishBytes(wire.ID{Job: "j", Chunk: 6, Part: 1}, data[:len(data)-1])
	b.publishBytes(wire.ID{Job: "j", Chunk: 7, Part: 1}, data) // of another chunk
	w := b.work(1)
	for i, got := range b.results("j", 2) {
		if want := (wire.ID{Job: "j", Chunk: int64(6 + i), Part: 1}); got.ID != want || got.Failure == "" {
			t.Errorf("got result %+v, want a failure of %+v", got, want)
		}
	}
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// A task that was delivered again and again without an answer ends: its boards
// become rejects, the job's other chunks do not.
func TestGivenUp(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	spec := testSpec(t, "plus", puzzle.Zero)
	b.create("j", spec)
	poison, sound := testTask(1, "j", 1), testTask(2, "j", 2)
	b.publish(poison)
	crashing, err := b.conn.Tasks(testContext(t), queue.Normal)
	ok(t, err)
	for range protocol.MaxDeliveries {
		d, err := crashing.Next(testContext(t))
		ok(t, err)
		ok(t, d.NakWithDelay(0))
	}
	crashing.Close()
	b.publish(sound)
	w := b.work(1)
	for _, got := range b.results("j", 2) {
		wanted := want(t, spec, sound, &sound.Chunk)
		if got.ID == poison.ID {
			wanted = want(t, spec, poison, allRejected(poison.Chunk, fmt.Sprintf("delivered %d times without an answer", protocol.MaxDeliveries)))
		}
		clean(got)
		clean(wanted)
		compare(t, got, wanted)
	}
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// One delivery less, and the chunk is solved like any other.
func TestLastDelivery(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	spec := testSpec(t, "plus", puzzle.Zero)
	b.create("j", spec)
	task := testTask(1, "j", 1)
	b.publish(task)
	tasks, err := b.conn.Tasks(testContext(t), queue.Normal)
	ok(t, err)
	for range protocol.MaxDeliveries - 1 {
		d, err := tasks.Next(testContext(t))
		ok(t, err)
		ok(t, d.NakWithDelay(0))
	}
	tasks.Close()
	b.work(1)
	got, wanted := b.results("j", 1)[0], want(t, spec, task, &task.Chunk)
	clean(got)
	clean(wanted)
	compare(t, got, wanted)
}

// Nobody waits for the result of a job that does not exist.
func TestUnknownJob(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	b.publish(testTask(1, "nobodys", 0))
	w := b.work(1)
	b.await("task of an unknown job dropped")
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// A result that the broker does not take becomes a failure that says why.
func TestTooLarge(t *testing.T) {
	const most = 32 << 10
	b := newBroker(t, queue.ServerOptions{MaxPayload: most}, queue.Limits{})
	spec := testSpec(t, "plus", puzzle.Zero)
	b.create("j", spec)
	size := puzzle.Size{Rows: 5, Cols: 5}
	task := &wire.Task{ID: wire.ID{Job: "j"}, Chunk: puzzle.Chunk{Spans: []puzzle.Span{{Records: 1500}}, Runs: []puzzle.Run{puzzle.NewRun(size, 1500)}}}
	b.publish(task)
	w := b.work(1)
	got := b.results("j", 1)[0]
	if got.ID != task.ID || !strings.Contains(got.Failure, "too large") || !strings.Contains(got.Failure, fmt.Sprint(most-256)) {
		t.Errorf("got %+v", got)
	}
	w.drain()
	ok(t, <-w.ended)
	b.noTasks()
}

// A worker without a broker ends, and says so.
func TestBrokerGone(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	w := b.work(2)
	b.create("j", testSpec(t, "plus", puzzle.Zero))
	b.publish(testTask(1, "j", 0))
	b.await("chunk solved") // and acknowledged
	b.conn.Close()
	if err := <-w.ended; !errors.Is(err, queue.ErrClosed) {
		t.Errorf("got error %v", err)
	}
}

// A broker that was not set up is no broker to work with.
func TestNotSetUp(t *testing.T) {
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir()})
	ok(t, err)
	defer server.Close()
	conn, err := queue.Connect(testContext(t), queue.Options{Server: server})
	ok(t, err)
	defer conn.Close()
	ctx := testContext(t)
	if err := Run(ctx, ctx, conn, Options{Slots: 1}); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("got error %v", err)
	}
}
