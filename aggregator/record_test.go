package aggregator

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// records returns which jobs the broker knows.
func records(t testing.TB, conn *queue.Conn) map[string]*wire.Job {
	t.Helper()
	all, err := conn.Standings(testContext(t))
	ok(t, err)
	jobs := map[string]*wire.Job{}
	for _, s := range all {
		jobs[s.Job.ID] = s.Job
	}
	return jobs
}

// A broker that has lost everything gets the records of the jobs back that have not
// ended, as they were last, from whoever serves their output next: and no others.
func TestRecordsComeBack(t *testing.T) {
	t.Parallel()
	here, there := t.TempDir(), t.TempDir()
	opts := func(output, identity string) Options {
		return Options{Output: output, Identity: identity, Lease: quick}
	}
	old := broker(t)
	stop := serve(t, old, opts(here, "here"))
	unread, sealed, done, cancelled, failed := newJob(t, "unread", 1, 2, 6), newJob(t, "sealed", 2, 2, 6),
		newJob(t, "done", 3, 2, 2), newJob(t, "cancelled", 4, 2, 6), newJob(t, "failed", 5, 2, 6)
	for _, j := range []*testJob{unread, sealed, done, cancelled, failed} {
		j.create(t, old)
		_, err := old.NextEpoch(testContext(t), j.id, &wire.Origin{Host: "mill", Directory: "/corpora", Paths: []string{j.id}, Window: 3})
		ok(t, err)
		j.send(t, old, 0, 1)
		awaitParts(t, old, j.id, 1)
	}
	sealed.seal(t, old)
	done.seal(t, old)
	done.awaitDone(t, old)
	ok(t, old.PutOrder(testContext(t), "cancelled", wire.Cancel))
	awaitCancelled(t, old, here, "cancelled")
	send(t, old, &wire.Result{ID: failed.results[3].ID, Failure: "a passing trouble"})
	awaitFailed(t, old, "failed", "a passing trouble")
	before := records(t, old)
	stop()

	fresh := broker(t)
	stop = serve(t, fresh, opts(there, "there")) // which knows nothing of them, and is the first to hear of them
	stopHere := serve(t, fresh, opts(here, "here"))
	for _, id := range []string{"unread", "sealed", "failed"} {
		await(t, fresh, id, "parts", func(l *wire.Ledger) bool { return len(l.Parts) == 1 })
	}
	now := records(t, fresh)
	if len(now) != 3 || now["unread"] == nil || now["sealed"] == nil || now["failed"] == nil {
		t.Errorf("jobs that came back: %v", now)
	}
	for id, j := range now {
		was, err := wire.AppendJob(nil, before[id])
		ok(t, err)
		if is, err := wire.AppendJob(nil, j); err != nil || string(is) != string(was) {
			t.Errorf("the record of %s is %+v, it was %+v: %v", id, j, before[id], err)
		}
	}
	// They come to their ends, and are forgotten.
	for _, j := range []*testJob{unread, sealed, failed} {
		j.send(t, fresh, 2, 3, 4, 5)
		j.seal(t, fresh)
		j.awaitDone(t, fresh)
	}
	stopHere()
	stop()
	for _, j := range []*testJob{unread, sealed, failed, done} {
		j.check(t, here)
	}
	if left, err := dataset.Records(here); err != nil || len(left) > 0 {
		t.Errorf("records are left of jobs that have ended: %q, %v", left, err)
	}
}

// A record that the broker has is not replaced, and one that cannot be read is put
// aside.
func TestRecordsDoNotReplace(t *testing.T) {
	t.Parallel()
	conn, output := broker(t), t.TempDir()
	again, unheard := newJob(t, "again", 1, 2, 6), newJob(t, "unheard", 3, 2, 6)
	for _, j := range []*testJob{again, unheard} {
		data, err := wire.AppendJob(nil, &wire.Job{ID: j.id, Spec: j.spec, Epoch: 1})
		ok(t, err)
		ok(t, dataset.KeepRecord(output, j.id, data))
	}
	ok(t, dataset.KeepRecord(output, "noise", []byte("noise")))
	again.create(t, conn)
	for range 2 {
		_, err := conn.NextEpoch(testContext(t), "again", nil)
		ok(t, err)
	}
	stop := serve(t, conn, Options{Output: output, Identity: "here", Lease: quick})
	awaitHolder(t, conn, "unheard", "aggregator")
	stop()
	if now := records(t, conn); len(now) != 2 || now["again"].Epoch != 2 || now["unheard"].Epoch != 1 {
		t.Errorf("jobs: %+v", now)
	}
}
