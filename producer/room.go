package producer

import (
	"context"
	"fmt"
	"time"
)

// roomPause is how often a producer looks whether there is room among the results.
const roomPause = 250 * time.Millisecond

// checkRoom refuses a job of which one part may not fit among the results: it might
// never be whole.
func (p *producer) checkRoom(ctx context.Context) error {
	room, err := p.conn.Room(ctx)
	if err != nil {
		return withoutStream(err)
	}
	if chunks := p.opts.Spec.PartChunks; !room.ForPart(chunks) {
		return fmt.Errorf("%w: %d chunks may take as many MiB, it holds %d MiB; raise result-bytes with flipmill setup, or lower part-chunks",
			ErrNoRoom, chunks, room.Limit>>20)
	}
	return nil
}

// hasRoom reports whether the results of another chunk fit, besides all that must.
func (p *producer) hasRoom(ctx context.Context) (bool, error) {
	room, err := p.conn.Room(ctx)
	if err != nil {
		return false, withoutStream(err)
	}
	fits := room.ForMore(p.opts.Spec.PartChunks, p.tasks.UnderWay())
	if !fits && !p.crowded {
		p.crowded = true // it is told once: it comes and goes
		p.opts.Log.Info("job waits for room among the results", "job", p.opts.Job, "result_bytes", room.Limit)
	}
	return fits, nil
}

// awaitRoom waits until it is time to look for room again, or there is news.
func (p *producer) awaitRoom(ctx context.Context) error {
	defer p.opts.Metrics.waiting()()
	again := time.NewTimer(roomPause)
	defer again.Stop()
	select {
	case s := <-p.news:
		return p.hear(s)
	case <-again.C:
	case <-ctx.Done():
		return fmt.Errorf("wait for room among the results: %w", ctx.Err())
	}
	return nil
}
