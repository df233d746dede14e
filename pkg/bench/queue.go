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

const (
	messageBytes = 512 << 10 // of a task, and of its result
	wayChunks    = 32        // that are carried in one go: a part
	waySlots     = 2
)

func queueCases() (cases []Case) {
	for _, c := range []struct {
		name   string
		limits queue.Limits
		server queue.ServerOptions
	}{
		{"memory", queue.Limits{Memory: true}, queue.ServerOptions{}},
		{"file", queue.Limits{}, queue.ServerOptions{}},
		{"file,sync=always", queue.Limits{}, queue.ServerOptions{SyncAlways: true}},
		{"file,tcp", queue.Limits{}, queue.ServerOptions{Listen: "127.0.0.1:0"}},
	} {
		cases = append(cases, Case{
			Subject: Queue, Name: c.name, Unit: "chunk", Baseline: "the same bytes copied four times",
			prepare: func(ctx context.Context, o Options) (*bench, error) {
				return prepareQueue(ctx, o.Dir, c.limits, c.server)
			},
		})
	}
	return cases
}

// way is the transport alone: a chunk's task and result are stored, taken,
// followed and purged, with nothing done to them.
type way struct {
	server  *queue.Server
	conn    *queue.Conn
	data    []byte
	tasks   *queue.Publisher
	chunk   int64 // the next one
	results func() (*queue.Result, error, bool)
	stop    func() error
}

func prepareQueue(ctx context.Context, dir string, limits queue.Limits, o queue.ServerOptions) (b *bench, err error) {
	if o.StoreDir, err = os.MkdirTemp(dir, "queue-"); err != nil {
		return nil, err
	}
	o.Fresh = true
	w := &way{data: make([]byte, messageBytes)}
	for i := range w.data {
		w.data[i] = byte(i * i >> 3)
	}
	if w.server, err = queue.StartServer(o); err != nil {
		return nil, err
	}
	options := queue.Options{Server: w.server}
	if o.Listen != "" {
		options = queue.Options{URL: w.server.URL()}
	}
	if err := w.open(ctx, options, limits); err != nil {
		w.server.Close()
		return nil, err
	}
	spare := make([]byte, messageBytes)
	return &bench{
		bytes: 2 * messageBytes,
		loop:  Loop{Units: wayChunks, Do: func() error { return w.carry(ctx) }},
		baseline: Loop{Units: wayChunks, Do: func() error {
			for range wayChunks * 2 { // into a message and into the store, and out again
				copy(spare, w.data)
				copy(w.data, spare)
			}
			return nil
		}},
		close: func() error {
			err := w.stop()
			w.conn.Close()
			w.server.Close()
			return err
		},
	}, nil
}

// open connects and starts the workers.
func (w *way) open(ctx context.Context, options queue.Options, limits queue.Limits) (err error) {
	if w.conn, err = queue.Connect(ctx, options); err != nil {
		return err
	}
	if err := w.conn.Setup(ctx, limits); err != nil {
		w.conn.Close()
		return err
	}
	tasks, err := w.conn.Tasks(ctx, queue.Lanes()...)
	if err != nil {
		w.conn.Close()
		return err
	}
	w.tasks = w.conn.Publisher(queue.Normal, 8<<20)
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	for range waySlots {
		group.Go(func() error { return w.work(ctx, tasks) })
	}
	next, end := iter.Pull2(w.conn.Results(ctx, "bench"))
	w.results = next
	w.stop = func() error {
		cancel()
		end()
		err := group.Wait()
		tasks.Close()
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	return nil
}

// work sends every task back as its own result.
func (w *way) work(ctx context.Context, tasks *queue.Tasks) error {
	for {
		d, err := tasks.Next(ctx)
		if err != nil {
			return err
		}
		id := wire.ID{Job: d.ID.Job, Chunk: d.ID.Chunk, Part: d.ID.Chunk / wayChunks}
		if err := w.conn.PublishResult(ctx, id, d.Data); err != nil {
			return err
		}
		if err := d.DoubleAck(ctx); err != nil {
			return err
		}
	}
}

// carry sends the chunks of a part on their way and waits until they are through.
func (w *way) carry(ctx context.Context) error {
	part := w.chunk / wayChunks
	for range wayChunks {
		if err := w.tasks.Publish(ctx, wire.ID{Job: "bench", Chunk: w.chunk}, w.data); err != nil {
			return err
		}
		w.chunk++
	}
	for range wayChunks {
		if _, err, ok := w.results(); err != nil || !ok {
			return err
		}
	}
	if err := w.tasks.Flush(ctx); err != nil {
		return err
	}
	return w.conn.PurgePart(ctx, "bench", part)
}
