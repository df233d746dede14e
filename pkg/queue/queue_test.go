package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t testing.TB, o ServerOptions) *Server {
	t.Helper()
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s, err := StartServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connect(t testing.TB, o Options) *Conn {
	t.Helper()
	c, err := Connect(testContext(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// setUp returns a connection to a fresh broker with everything created.
func setUp(t testing.TB, l Limits) *Conn {
	t.Helper()
	c := connect(t, Options{Server: start(t, ServerOptions{}), Timeout: patience})
	if err := c.Setup(testContext(t), l); err != nil {
		t.Fatal(err)
	}
	return c
}

func tasksOf(t testing.TB, c *Conn, lanes ...Lane) *Tasks {
	t.Helper()
	tasks, err := c.Tasks(testContext(t), lanes...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tasks.Close)
	return tasks
}

func next(t testing.TB, tasks *Tasks) *Delivery {
	t.Helper()
	d, err := tasks.Next(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// forget removes all that the broker has of a job, as an operator can with NATS's
// own command.
func forget(t testing.TB, c *Conn, id string) {
	t.Helper()
	ctx := testContext(t)
	kv, err := c.jobs(ctx)
	ok(t, err)
	for _, key := range standingKeys(id) {
		ok(t, kv.Purge(ctx, key))
	}
	ok(t, c.PurgeTasks(ctx, id))
	ok(t, c.PurgeResults(ctx, id))
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// publish stores tasks of job j, one per chunk, with the chunk's number as data.
func publish(t testing.TB, c *Conn, lane Lane, chunks ...int64) {
	t.Helper()
	p := c.Publisher(lane, 1<<20)
	for _, chunk := range chunks {
		ok(t, p.Publish(testContext(t), wire.ID{Job: "j", Chunk: chunk}, fmt.Append(nil, chunk)))
	}
	ok(t, p.Flush(testContext(t)))
}

// pending returns how many tasks of a lane are handed out and how many are not.
func pending(t testing.TB, c *Conn, lane Lane) (out, in int) {
	t.Helper()
	consumer, err := c.js.Consumer(testContext(t), tasksStream, string(lane))
	ok(t, err)
	info := consumer.CachedInfo()
	return info.NumAckPending, int(info.NumPending)
}

func stored(t testing.TB, c *Conn, stream string) int {
	t.Helper()
	s, err := c.js.Stream(testContext(t), stream)
	ok(t, err)
	return int(s.CachedInfo().State.Msgs)
}

// One chunk's way through the queue.
func TestWayThrough(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	sent := &wire.Task{ID: wire.ID{Job: "j", Chunk: 7, Part: 3, Epoch: 1}, Chunk: puzzle.Chunk{
		First: 70, Spans: []puzzle.Span{{Source: "f", Records: 1}}, Rejects: []puzzle.Reject{{Index: 70, Reason: puzzle.BadSize}},
	}}
	data, err := wire.AppendTask(nil, sent)
	ok(t, err)
	p := c.Publisher(Normal, 1<<20)
	ok(t, p.Publish(ctx, sent.ID, data))
	ok(t, p.Flush(ctx))

	d := next(t, tasksOf(t, c, Lanes()...))
	task := new(wire.Task)
	ok(t, d.Parse(task))
	if task.ID != sent.ID || task.Chunk.Digest() != sent.Chunk.Digest() || d.Delivered != 1 || d.Lane != Normal {
		t.Errorf("got task %+v in delivery %+v", task, d)
	}
	data, err = wire.AppendResult(nil, &wire.Result{ID: task.ID, Failure: "just so"})
	ok(t, err)
	ok(t, c.PublishResult(ctx, task.ID, data))
	ok(t, d.DoubleAck(ctx))
	if n := stored(t, c, tasksStream); n != 0 {
		t.Errorf("%d tasks left", n)
	}

	for r, err := range c.Results(ctx, "j") {
		ok(t, err)
		result, err := r.Parse()
		ok(t, err)
		if result.ID != sent.ID || result.Failure != "just so" {
			t.Errorf("got result %+v", result)
		}
		again, err := c.ReadResult(ctx, r.Seq)
		ok(t, err)
		if again.ID != r.ID || string(again.Data) != string(r.Data) {
			t.Error("reading the result again gives another")
		}
		break
	}
	ok(t, c.PurgePart(ctx, "j", 3))
	if n := stored(t, c, resultsStream); n != 0 {
		t.Errorf("%d results left", n)
	}
}

// A payload under another's subject is not accepted.
func TestPayloadMustBelongToSubject(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	other := wire.ID{Job: "j", Chunk: 8, Part: 1}
	data, err := wire.AppendTask(nil, &wire.Task{ID: other, Chunk: puzzle.Chunk{
		Spans: []puzzle.Span{{Records: 1}}, Rejects: []puzzle.Reject{{Reason: puzzle.BadSize}},
	}})
	ok(t, err)
	p := c.Publisher(Normal, 1<<20)
	ok(t, p.Publish(ctx, wire.ID{Job: "j", Chunk: 7}, data))
	ok(t, p.Flush(ctx))
	if err := next(t, tasksOf(t, c, Normal)).Parse(new(wire.Task)); err == nil {
		t.Error("a task is accepted under another's subject")
	}
	data, err = wire.AppendResult(nil, &wire.Result{ID: other, Failure: "x"})
	ok(t, err)
	ok(t, c.PublishResult(ctx, wire.ID{Job: "j", Chunk: 8, Part: 2}, data))
	for r, err := range c.Results(ctx, "j") {
		ok(t, err)
		if _, err := r.Parse(); err == nil {
			t.Error("a result is accepted under another's subject")
		}
		break
	}
}

// Whatever strangers publish on our subjects is put aside.
func TestForeignSubjects(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	for _, subject := range []string{
		"flipmill.task.normal.J.1", "flipmill.task.normal.j.-1", "flipmill.task.normal.j.01", "flipmill.task.normal.j.x",
		"flipmill.result.0.j.1.1", "flipmill.result.1.j.1.0", "flipmill.result.x.j.1.1", "flipmill.result.1.j.1.x", "flipmill.result.1.j.x.1",
	} {
		_, err := c.js.Publish(ctx, subject, []byte("x"))
		ok(t, err)
	}
	publish(t, c, Normal, 5)
	if d := next(t, tasksOf(t, c, Normal)); d.ID.Chunk != 5 {
		t.Errorf("got %+v", d.ID)
	} else {
		ok(t, d.DoubleAck(ctx))
	}
	if n := stored(t, c, tasksStream); n != 0 {
		t.Errorf("%d foreign tasks stay", n)
	}
	id := wire.ID{Job: "j", Part: 1, Chunk: 1}
	ok(t, c.PublishResult(ctx, id, []byte("x")))
	for r, err := range c.Results(ctx, "j") {
		ok(t, err)
		if r.ID != id {
			t.Errorf("got result %+v", r.ID)
		}
		break
	}
	_, err := c.ReadResult(ctx, 1)
	wantError(t, err, ErrNotFound)
}

func TestSetupAgain(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{TaskBytes: 1 << 20})
	publish(t, c, Low, 1)
	ok(t, c.Setup(ctx, Limits{TaskBytes: 1 << 21, AckWait: time.Minute}))
	s, err := c.js.Stream(ctx, tasksStream)
	ok(t, err)
	if config := s.CachedInfo().Config; config.MaxBytes != 1<<21 || s.CachedInfo().State.Msgs != 1 {
		t.Errorf("stream is now %+v", s.CachedInfo())
	}
	if err := c.Setup(ctx, Limits{ResultBytes: 1 << 60}); err == nil {
		t.Error("limits beyond the disk are accepted")
	}
}

func TestWithoutSetup(t *testing.T) {
	ctx := testContext(t)
	c := connect(t, Options{Server: start(t, ServerOptions{})})
	wantError(t, c.PublishResult(ctx, wire.ID{Job: "j"}, nil), ErrNotFound)
	_, err := c.Tasks(ctx, Normal)
	wantError(t, err, ErrNotFound)
	_, err = c.Job(ctx, "j")
	wantError(t, err, ErrNotFound)
	for _, err := range c.Results(ctx, "j") {
		wantError(t, err, ErrNotFound)
	}
	for _, err := range c.WatchStandings(ctx) {
		wantError(t, err, ErrNotFound)
	}
}

func TestServerOptions(t *testing.T) {
	dir := t.TempDir()
	s := start(t, ServerOptions{StoreDir: dir})
	if s.ns.Addr() != nil {
		t.Errorf("an in-process broker listens on %s", s.ns.Addr())
	}
	if _, err := StartServer(ServerOptions{StoreDir: dir}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("a second broker on one store: %v", err)
	}
	s.Close()
	start(t, ServerOptions{StoreDir: dir}).Close()
	for _, o := range []ServerOptions{{}, {StoreDir: dir, Listen: "nowhere"}, {StoreDir: dir, Listen: "127.0.0.1:x"}, {StoreDir: "/dev/null/x"}} {
		if s, err := StartServer(o); err == nil {
			s.Close()
			t.Errorf("a broker starts with %+v", o)
		}
	}
	c := connect(t, Options{Server: start(t, ServerOptions{MaxPayload: 4096})})
	if c.MaxData() != 4096-headerBudget {
		t.Errorf("payloads of %d bytes", c.MaxData())
	}
}

// The ports that freeAddress gives. They begin anywhere, since another run of the tests
// may be under way, and go up, since tests run side by side.
var (
	firstPort  = 9_000 + rand.Int32N(900)
	portsGiven atomic.Int32
)

// freeAddress returns an address on this host at which a server can come back. Its port
// is below those that connections and other servers are given meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		address := fmt.Sprint("127.0.0.1:", firstPort+portsGiven.Add(1))
		if l, err := net.Listen("tcp", address); err == nil {
			ok(t, l.Close())
			return address
		}
	}
}

func TestUnreachable(t *testing.T) {
	const url = "nats://127.0.0.1:1"
	_, err := Connect(testContext(t), Options{URL: url})
	wantError(t, err, ErrUnreachable)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = Connect(ctx, Options{URL: url})
	wantError(t, err, context.Canceled)
}

func TestClosed(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	tasks := tasksOf(t, c, Normal)
	select {
	case <-c.Closed():
		t.Error("closed before Close")
	default:
	}
	c.Close()
	<-c.Closed()
	wantError(t, c.PublishResult(ctx, wire.ID{Job: "j"}, nil), ErrClosed)
	_, err := c.Job(ctx, "j")
	wantError(t, err, ErrClosed)
	_, err = tasks.Next(ctx)
	wantError(t, err, ErrClosed)
}

// A connection that ends under a reader ends the reading.
func TestClosedWhileReading(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := start(t, ServerOptions{})
	admin := connect(t, Options{Server: s})
	ok(t, admin.Setup(ctx, Limits{}))
	c := connect(t, Options{Server: s})
	tasks := tasksOf(t, c, Normal)
	var running sync.WaitGroup
	errs := make(chan error, 3)
	running.Go(func() {
		_, err := tasks.Next(ctx)
		errs <- err
	})
	began := make(chan struct{})
	running.Go(func() {
		for _, err := range c.Results(ctx, "j") {
			if err != nil {
				errs <- err
				return
			}
			began <- struct{}{}
		}
	})
	ok(t, admin.PublishResult(ctx, wire.ID{Job: "j"}, nil))
	<-began
	running.Go(func() {
		for _, err := range c.WatchLedger(ctx, "j") {
			if err != nil {
				errs <- err
				return
			}
			began <- struct{}{}
		}
	})
	ok(t, writeLedger(ctx, admin, "j", &wire.Ledger{State: wire.Open}))
	<-began
	c.Close()
	for range 3 {
		wantError(t, <-errs, ErrClosed)
	}
	running.Wait()
}

// A denied publish is reported as such, at once, not as a timeout.
func TestDenied(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	options, err := natsServerOptions(ServerOptions{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
	ok(t, err)
	options.Users = []*server.User{
		{Username: "admin", Password: "a"},
		{Username: "reader", Password: "r", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"flipmill.>", "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.API.STREAM.PURGE.>"}},
		}},
	}
	s, err := startServer(options, false)
	ok(t, err)
	t.Cleanup(s.Close)
	_, err = Connect(ctx, Options{URL: s.URL()})
	wantError(t, err, ErrDenied)
	admin := connect(t, Options{URL: s.URL(), Credentials: identity(t, "admin:a")})
	ok(t, admin.Setup(ctx, Limits{}))
	c := connect(t, Options{URL: s.URL(), Credentials: identity(t, "reader:r"), Timeout: time.Hour})
	wantError(t, c.PublishResult(ctx, wire.ID{Job: "j"}, nil), ErrDenied)
	wantError(t, c.PurgePart(ctx, "j", 0), ErrDenied)
	_, err = tasksOf(t, c, Normal).Next(ctx)
	wantError(t, err, ErrDenied)
}

// logs is a slog handler that hands over messages.
type logs struct {
	slog.Handler
	messages chan string
}

func newLogs() (*slog.Logger, <-chan string) {
	messages := make(chan string, 100)
	return slog.New(logs{slog.DiscardHandler, messages}), messages
}

func (l logs) Enabled(context.Context, slog.Level) bool { return true }

func (l logs) Handle(_ context.Context, r slog.Record) error {
	select {
	case l.messages <- r.Message:
	default:
	}
	return nil
}
