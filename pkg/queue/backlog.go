package queue

import (
	"context"
	"fmt"
)

// Backlog is what waits at the broker, of all jobs, and for whom.
type Backlog struct {
	Queued int64 // tasks that no worker has had yet
	Taken  int64 // tasks that a worker has, or had and put back
	Idle   int   // workers that wait for a task

	Results int64 // results that no part has yet
	Bytes   int64 // of these
}

// Backlog returns what waits at the broker now.
func (c *Conn) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	for _, lane := range Lanes() {
		err := c.do(ctx, func(ctx context.Context) error {
			consumer, err := c.js.Consumer(ctx, tasksStream, string(lane))
			if err != nil {
				return err
			}
			info := consumer.CachedInfo()
			b.Queued += int64(info.NumPending)
			b.Taken += int64(info.NumAckPending)
			b.Idle = max(b.Idle, info.NumWaiting) // who is idle asks in each lane
			return nil
		})
		if err != nil {
			return Backlog{}, fmt.Errorf("look up lane %s: %w", lane, err)
		}
	}
	info, err := c.streamInfo(ctx, resultsStream)
	if err != nil {
		return Backlog{}, fmt.Errorf("look at stream %s: %w", resultsStream, err)
	}
	b.Results, b.Bytes = int64(info.State.Msgs), int64(info.State.Bytes)
	return b, nil
}
