package queue

import (
	"context"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
)

// BenchmarkWayThrough is the transport alone: a chunk's task and result of 512
// KiB each are stored, taken, followed and purged, with nothing done to them.
func BenchmarkWayThrough(b *testing.B) {
	for _, c := range []struct {
		name   string
		limits Limits
		server ServerOptions
	}{
		{"storage=file", Limits{}, ServerOptions{}},
		{"storage=memory", Limits{Memory: true}, ServerOptions{}},
		{"storage=file,sync=always", Limits{}, ServerOptions{SyncAlways: true}},
		{"storage=file,tcp", Limits{}, ServerOptions{Listen: "127.0.0.1:0"}},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkWayThrough(b, c.limits, c.server) })
	}
}

const (
	benchSize  = 512 << 10
	benchSlots = 2
	benchPart  = 32 // chunks
)

func benchmarkWayThrough(b *testing.B, limits Limits, o ServerOptions) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	options := Options{Server: start(b, o)}
	if o.Listen != "" {
		options = Options{URL: options.Server.URL()}
	}
	c := connect(b, options)
	ok(b, c.Setup(ctx, limits))
	data := make([]byte, benchSize)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	tasks := tasksOf(b, c, Lanes()...)
	p := c.Publisher(Normal, 8<<20)
	b.SetBytes(2 * benchSize)
	b.ResetTimer()
	for range benchSlots {
		go func() {
			for {
				d, err := tasks.Next(ctx)
				if err != nil {
					return
				}
				id := wire.ID{Job: d.ID.Job, Chunk: d.ID.Chunk, Part: d.ID.Chunk / benchPart}
				if c.PublishResult(ctx, id, d.Data) != nil || d.DoubleAck(ctx) != nil {
					return
				}
			}
		}()
	}
	go func() {
		for chunk := range int64(b.N) {
			if p.Publish(ctx, wire.ID{Job: "j", Chunk: chunk}, data) != nil {
				return
			}
		}
	}()
	n := 0
	parts := make(map[int64]int)
	for r, err := range c.Results(ctx, "j") {
		ok(b, err)
		if parts[r.ID.Part]++; parts[r.ID.Part] == benchPart {
			ok(b, c.PurgePart(ctx, "j", r.ID.Part))
		}
		if n++; n == b.N {
			break
		}
	}
	b.StopTimer()
	tasks.Close()
}
