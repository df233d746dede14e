package queue

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// A part is purged from the log of results when it is whole. A log that is full of
// parts which all lack a chunk would never be emptied, and the chunk would not get
// in. So producers keep half of it free for the parts that come first: the oldest
// one of each job. Such a part is always handed over; others wait until there is
// room for all that can come of it and of whatever else is under way.
//
// That is enough as long as the oldest parts of all jobs fit into that half, which
// Examine looks at. For one job it is enough that its part fits into the log.

// MostResult is the most that a result takes in the log.
const MostResult = 1 << 20

// Room is how much of the log of results is taken, or will be.
type Room struct {
	Limit int64 // bytes; not positive where there is none
	taken int64 // by results, and at most by what will come of the tasks
}

// Room looks at the log and at the tasks of which results will come.
func (c *Conn) Room(ctx context.Context) (Room, error) {
	states := map[string]*jetstream.StreamInfo{}
	for _, name := range []string{tasksStream, resultsStream} { // a task becomes a result: so none is missed
		info, err := c.streamInfo(ctx, name)
		if err != nil {
			return Room{}, fmt.Errorf("look at stream %s: %w", name, err)
		}
		states[name] = info
	}
	results := states[resultsStream]
	return Room{
		Limit: results.Config.MaxBytes,
		taken: int64(results.State.Bytes) + int64(states[tasksStream].State.Msgs)*MostResult,
	}, nil
}

// ForPart reports whether the log can hold a part of so many chunks, if it must.
func (r Room) ForPart(chunks int) bool { return r.Limit <= 0 || int64(chunks)*MostResult <= r.Limit }

// ForMore reports whether another chunk may be handed over that is not of its job's
// oldest part. underWay is how many tasks are sent and may not be stored yet.
func (r Room) ForMore(partChunks int, underWay int64) bool {
	free := max(r.Limit/2, int64(partChunks)*MostResult)
	return r.Limit <= 0 || r.taken+(underWay+1)*MostResult <= r.Limit-free
}
