package producer

import (
	"context"
	"errors"
	"fmt"

	"github.com/flipmill/flipmill/pkg/protocol"
	"github.com/flipmill/flipmill/pkg/queue"
)

// checkLoss finds out, when nothing comes in, whether what the drive waits for can
// come at all: somebody may have removed it from the broker, or the broker itself.
func (p *producer) checkLoss(ctx context.Context) error {
	if !p.stalled {
		return nil
	}
	p.stalled = false
	if err := withoutStream(p.tasks.Flush(ctx)); err != nil { // what is not stored yet is not lost
		return err
	}
	stored, err := p.conn.Stored(ctx, p.opts.Job)
	if err != nil && !errors.Is(err, queue.ErrNotFound) { // of a stream that is gone, all is
		return err
	}
	s, err := p.conn.Standing(ctx, p.opts.Job) // after what is stored: a chunk is never nowhere
	if err != nil {
		return err
	}
	if err := p.hear(s); err != nil {
		return err
	}
	p.stalled = false // there was nothing to wait for in between
	if chunk, lost := p.window.Lost(stored); lost {
		return fmt.Errorf("%w: chunk %d is neither there nor committed", protocol.ErrLost, chunk)
	}
	return nil
}

// withoutStream tells from other failures that a stream is gone, and all with it.
func withoutStream(err error) error {
	if errors.Is(err, queue.ErrNotFound) {
		return fmt.Errorf("%w: %w", protocol.ErrLost, err)
	}
	return err
}
