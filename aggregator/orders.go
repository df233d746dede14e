package aggregator

import (
	"context"
	"fmt"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// defaultRefresh is how often the ledger of an open job is written at least: so
// people see how far it is, and that there is an aggregator.
const defaultRefresh = 3 * time.Second

// refresh writes the ledgers of the jobs that are under way.
func (a *aggregator) refresh(ctx context.Context) error {
	for _, j := range a.jobs {
		if j.dropped {
			continue
		}
		if err := a.publish(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// obey carries out an order. To pause is the producer's business: what is
// queued already is collected as ever.
func (a *aggregator) obey(ctx context.Context, o queue.Ordered) error {
	if o.Order != wire.Cancel {
		return nil
	}
	j, err := a.jobOf(ctx, o.Job)
	if err != nil || j == nil || j.dropped {
		return err
	}
	return a.cancel(ctx, j)
}

// cancel ends a job because people wanted it. What workers still send, and what
// a producer still hands over, is purged when it comes.
func (a *aggregator) cancel(ctx context.Context, j *job) error {
	j.drop()
	j.ledger.State, j.ledger.Reason = wire.Cancelled, ""
	a.opts.Metrics.jobs.WithLabelValues("cancelled").Inc()
	if err := j.dir.Cancel(); err != nil {
		// The ledger says it too, and a full disk is no reason to go on.
		a.log.Warn("mark of the cancelled dataset not written", "job", j.id, "error", err)
		j.ledger.Reason = fmt.Sprintf("its dataset is not marked: %v", err)
	}
	a.log.Info("job cancelled", "job", j.id)
	if err := a.publish(ctx, j); err != nil {
		return err
	}
	if err := a.conn.PurgeTasks(ctx, j.id); err != nil {
		return err
	}
	return a.conn.PurgeResults(ctx, j.id)
}
