package bench

import (
	"context"
	"errors"
	"iter"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// traffic is what the broker carries, and for whom.
type traffic struct {
	name    string
	message int // bytes of a task, and of its result
	part    int // chunks that are carried in one go
	workers int // each with a connection of its own where there is TCP
	limits  queue.Limits
	server  queue.ServerOptions
}

// queueCases have messages as large as those of run and, for what the broker does
// besides copying them, small ones.
func queueCases() (cases []Case) {
	const large, small = 512 << 10, 1 << 10
	files, memory, tcp := queue.Limits{}, queue.Limits{Memory: true}, queue.ServerOptions{Listen: "127.0.0.1:0"}
	for _, t := range []traffic{
		{"memory", large, 32, 2, memory, queue.ServerOptions{}},
		{"file", large, 32, 2, files, queue.ServerOptions{}},
		{"file,sync=always", large, 32, 2, files, queue.ServerOptions{SyncAlways: true}},
		{"file,tcp", large, 32, 2, files, tcp},
		{"file,tcp,1KiB", small, 256, 8, files, tcp},
	} {
		cases = append(cases, Case{
			Subject: Queue, Name: t.name, Unit: "chunk", Baseline: "the same bytes copied four times",
			prepare: func(ctx context.Context, o Options) (*bench, error) { return t.prepare(ctx, o.Dir) },
		})
	}
	return cases
}

func (t traffic) prepare(ctx context.Context, dir string) (b *bench, err error) {
	if t.server.StoreDir, err = os.MkdirTemp(dir, "queue-"); err != nil {
		return nil, err
	}
	t.server.Fresh = true
	w := &way{traffic: t, data: make([]byte, t.message)}
	for i := range w.data {
		w.data[i] = byte(i * i >> 3)
	}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	spare := make([]byte, t.message)
	return &bench{
		bytes: float64(2 * t.message),
		loop:  Loop{Units: t.part, Do: func() error { return w.carry(ctx) }},
		baseline: Loop{Units: t.part, Do: func() error {
			for range 2 * t.part { // into a message and into the store, and out again
				copy(spare, w.data)
				copy(w.data, spare)
			}
			return nil
		}},
		close: w.close,
	}, nil
}

// way is the transport alone: a chunk's task and result are stored, taken,
// followed and purged, with nothing done to them.
type way struct {
	traffic
	broker *queue.Server
	conns  []*queue.Conn // the first one is that of producer and aggregator
	data   []byte
	tasks  *queue.Publisher
	chunk  int64        // the next one
	result func() error // waits for one

	cancel, end func() // stop the workers; stop following the results
	group       *errgroup.Group
}

// open starts the broker and the workers.
func (w *way) open(ctx context.Context) (err error) {
	if w.broker, err = queue.StartServer(w.server); err != nil {
		return err
	}
	conn, err := w.connect(ctx)
	if err != nil {
		return err
	}
	if err := conn.Setup(ctx, w.limits); err != nil {
		return err
	}
	w.tasks = conn.Publisher(queue.Normal, 8<<20)
	ctx, w.cancel = context.WithCancel(ctx)
	w.group, ctx = errgroup.WithContext(ctx)
	next, end := iter.Pull2(conn.Results(ctx, "bench"))
	w.end = end
	w.result = func() error {
		_, err, _ := next()
		if ctx.Err() != nil {
			return context.Cause(ctx) // such as what a worker died of
		}
		return err
	}
	for range w.workers {
		worker := conn
		if w.server.Listen != "" {
			if worker, err = w.connect(ctx); err != nil {
				return err
			}
		}
		w.group.Go(func() error { return w.work(ctx, worker) })
	}
	return nil
}

func (w *way) connect(ctx context.Context) (*queue.Conn, error) {
	o := queue.Options{Server: w.broker}
	if w.server.Listen != "" {
		o = queue.Options{URL: w.broker.URL()}
	}
	conn, err := queue.Connect(ctx, o)
	if err == nil {
		w.conns = append(w.conns, conn)
	}
	return conn, err
}

// close ends what has been started.
func (w *way) close() (err error) {
	if w.group != nil {
		w.cancel()
		if err = w.group.Wait(); errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	if w.end != nil {
		w.end()
	}
	for _, conn := range w.conns {
		conn.Close()
	}
	if w.broker != nil {
		w.broker.Close()
	}
	return err
}

// work sends every task back as its own result.
func (w *way) work(ctx context.Context, conn *queue.Conn) error {
	tasks, err := conn.Tasks(ctx, queue.Lanes()...)
	if err != nil {
		return err
	}
	defer tasks.Close()
	for {
		d, err := tasks.Next(ctx)
		if err != nil {
			return err
		}
		id := wire.ID{Job: d.ID.Job, Chunk: d.ID.Chunk, Part: d.ID.Chunk / int64(w.part)}
		if err := conn.PublishResult(ctx, id, d.Data); err != nil {
			return err
		}
		if err := d.DoubleAck(ctx); err != nil {
			return err
		}
	}
}

// carry sends the chunks of a part on their way and waits until they are through.
func (w *way) carry(ctx context.Context) error {
	part := w.chunk / int64(w.part)
	for range w.part {
		if err := w.tasks.Publish(ctx, wire.ID{Job: "bench", Chunk: w.chunk}, w.data); err != nil {
			return err
		}
		w.chunk++
	}
	for range w.part {
		if err := w.result(); err != nil {
			return err
		}
	}
	if err := w.tasks.Flush(ctx); err != nil {
		return err
	}
	return w.conns[0].PurgePart(ctx, "bench", part)
}
