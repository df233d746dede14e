package queue

import (
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A copy of a stream that is behind its leader, as the followers of a cluster are
// now and then, says that it does not have what was stored. A result is not taken
// for lost for that, and records are never asked of a copy. Here a subscriber is
// the copy: the stream is told to leave such requests alone.
func TestCopyBehind(t *testing.T) {
	ctx := testContext(t)
	c := setUp(t, Limits{})
	id := wire.ID{Job: "j", Part: 1, Chunk: 2}
	ok(t, c.PublishResult(ctx, id, []byte("result")))
	_, err := c.ReadResult(ctx, 1) // it looks the stream up, and remembers how it is
	ok(t, err)
	config := c.streamConfigs(Limits{}.withDefaults())[1]
	config.AllowDirect = false
	_, err = c.js.UpdateStream(ctx, config)
	ok(t, err)
	asked := 0
	_, err = c.nc.Subscribe(api+"DIRECT.GET."+resultsStream, func(m *nats.Msg) {
		answer := nats.NewMsg(m.Reply)
		if asked++; asked <= 3 || string(m.Data) != `{"seq":1}` {
			answer.Header.Set("Status", "404")
			answer.Header.Set("Description", "Message Not Found")
		} else { // it has caught up
			for name, value := range map[string]string{
				"Nats-Stream": resultsStream, "Nats-Subject": resultSubject(id), "Nats-Sequence": "1", "Nats-Time-Stamp": time.Now().Format(time.RFC3339Nano),
			} {
				answer.Header.Set(name, value)
			}
			answer.Data = []byte("result")
		}
		if err := m.RespondMsg(answer); err != nil {
			t.Error(err)
		}
	})
	ok(t, err)
	r, err := c.ReadResult(ctx, 1)
	ok(t, err)
	if r.ID != id || string(r.Data) != "result" {
		t.Errorf("got %+v", r)
	}
	_, err = c.ReadResult(ctx, 2)
	wantError(t, err, ErrNotFound) // says the leader

	_, err = c.nc.Subscribe(api+"DIRECT.GET."+bucketStream+".>", func(m *nats.Msg) { t.Error("a copy is asked for a record") })
	ok(t, err)
	_, err = c.CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	for _, read := range []func() error{
		func() error { _, err := c.Job(ctx, "j"); return err },
		func() error { _, err := c.Order(ctx, "j"); return err },
		func() error { _, err := c.Standing(ctx, "j"); return err },
	} {
		ok(t, read())
	}
	if _, err := c.Ledger(ctx, "j"); err == nil {
		t.Error("there is a ledger")
	}
}
