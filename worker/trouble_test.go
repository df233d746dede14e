package worker

import (
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// A task that comes again is written down, with what its worker said of it.
func TestTrouble(t *testing.T) {
	b := newBroker(t, queue.ServerOptions{}, queue.Limits{})
	ctx := testContext(t)
	for _, id := range []string{"silent", "said", "sound"} {
		b.create(id, testSpec(t, "plus", puzzle.Zero))
	}
	b.publish(testTask(1, "silent", 3), testTask(1, "said", 3))
	tasks := b.tasks()
	var held []*queue.Delivery
	for range 2 {
		d, err := tasks.Next(ctx)
		ok(t, err)
		held = append(held, d)
	}
	ok(t, b.conn.PutTrouble(ctx, "said", wire.Trouble{Chunk: 3, Delivered: 1, Message: "no room"}))
	for _, d := range held {
		ok(t, d.NakWithDelay(0))
	}
	b.publish(testTask(1, "sound", 3))
	w := b.work(1)
	for _, id := range []string{"silent", "said", "sound"} {
		b.results(id, 1)
	}
	w.drain()
	ok(t, <-w.ended)
	for id, want := range map[string]string{"silent": "2 delivered again", "said": "2 no room", "sound": ""} {
		troubles, err := b.conn.Troubles(ctx, id)
		ok(t, err)
		trouble := troubles.Of(3)
		got := ""
		if trouble != nil {
			got = string(rune('0'+trouble.Delivered)) + " " + trouble.Message
		}
		if got == "" != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("job %s: got %q, want %q", id, got, want)
		}
	}
}
