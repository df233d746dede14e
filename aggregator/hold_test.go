package aggregator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

// never is a lease that no test lives to see the end of.
const never = time.Hour

// awaitHolder waits until an aggregator of that name holds the job.
func awaitHolder(t testing.TB, conn *queue.Conn, job, name string) {
	t.Helper()
	await(t, conn, job, "holder "+name, func(l *wire.Ledger) bool { return strings.HasPrefix(l.Holder, name+"-") })
}

// Aggregators of one output stand in for each other: what one puts down in order
// another takes up at once, with all jobs. Nothing is lost or made twice.
func TestHandOver(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	jobs := []*testJob{newJob(t, "a", 1, 2, 7), newJob(t, "b", 2, 3, 7), newJob(t, "c", 3, 7, 7)}
	options := func(name string) Options {
		return Options{Output: output, Identity: "here", Name: name, Lease: never, Memory: 10_000}
	}
	for _, j := range jobs {
		j.create(t, conn)
	}
	var stop func()
	for round := range 7 {
		before := stop
		name := fmt.Sprint("number", round)
		stop = serve(t, conn, options(name))
		for _, j := range jobs {
			j.send(t, conn, round)
		}
		if before != nil {
			before()
		}
		for _, j := range jobs {
			awaitHolder(t, conn, j.id, name)
		}
	}
	for _, j := range jobs {
		j.seal(t, conn)
		j.awaitDone(t, conn)
		j.check(t, output)
	}
	stop()
	stop = serve(t, conn, Options{Output: output, Identity: "here", Lease: quick})
	awaitSwept(t, conn) // who was stopped between two steps may have left something
	stop()
}

// A job belongs to the output whose aggregator took it first. Those of another
// leave it and its results alone, however long it is nobody's.
func TestOtherOutput(t *testing.T) {
	conn := broker(t)
	here, there := t.TempDir(), t.TempDir()
	j, other := newJob(t, "j", 1, 2, 4), newJob(t, "other", 2, 2, 4)
	stop := serve(t, conn, Options{Output: here, Identity: "here", Lease: quick})
	j.create(t, conn)
	j.send(t, conn, 0, 1, 2)
	awaitParts(t, conn, "j", 1)
	stop()
	turns := make(chan struct{})
	ctx := testContext(t)
	stop = serve(t, conn, Options{Output: there, Identity: "there", Lease: quick, Turned: func() {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
		}
	}})
	go func() {
		for range turns {
		}
	}()
	other.create(t, conn)
	other.send(t, conn, 0, 1, 2, 3)
	other.seal(t, conn)
	other.awaitDone(t, conn)
	send(t, conn, other.again(3, 2)) // once this is swept, anything else would have been
	for swept := false; !swept; {
		swept = true
		ok(t, conn.SweepResults(ctx, func(id string, _ *queue.Standing) bool {
			swept = swept && id != "other"
			return false
		}))
	}
	stop()
	close(turns)
	other.check(t, there)
	// Those of part 0 may be there still, if their aggregator was stopped too soon.
	if got, want := logged(t, conn), (wire.ID{Job: "j", Chunk: 2, Part: 1}); len(got) == 0 || got[len(got)-1] != want {
		t.Errorf("in the log: %v, want %v at the end", got, want)
	}
	stop = serve(t, conn, Options{Output: here, Identity: "here", Lease: quick})
	j.send(t, conn, 3)
	j.seal(t, conn)
	j.awaitDone(t, conn)
	awaitSwept(t, conn)
	stop()
	j.check(t, here)
}

// A holder that stands still for longer than a lease, and then goes on as if
// nothing had happened, harms nothing, wherever that was: it finds that the job
// is another's.
func TestHolderWakesUp(t *testing.T) {
	for _, words := range []string{"job taken up", "part committed", "dataset complete"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			conn, url := openBroker(t)
			j, output := newJob(t, "j", 1, 2, 6), t.TempDir()
			j.create(t, conn)
			j.send(t, conn, 0, 1, 2, 3, 4, 5)
			j.seal(t, conn)
			child := dyingAggregator(t, url, output, words, syscall.SIGSTOP)
			said, err := child.StdoutPipe()
			ok(t, err)
			ok(t, child.Start())
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
				t.Fatalf("it does not stop: %v, %v", status, err)
			}
			stop := serve(t, conn, Options{Output: output, Name: "next", Lease: quick})
			awaitHolder(t, conn, "j", "next")
			j.awaitDone(t, conn)
			stop()
			before := tree(t, filepath.Join(output, "job=j"))
			ok(t, child.Process.Signal(syscall.SIGCONT))
			lines := bufio.NewScanner(said)
			for lines.Scan() && lines.Text() != "another aggregator has taken the job" {
				if strings.Contains(lines.Text(), "fail") || strings.Contains(lines.Text(), "done") {
					t.Errorf("it says %q", lines.Text())
				}
			}
			ok(t, lines.Err())
			ok(t, child.Process.Kill())
			_ = child.Wait() // of the signal
			j.check(t, output)
			if after := tree(t, filepath.Join(output, "job=j")); len(after) != len(before) {
				t.Errorf("%d files are %d now", len(before), len(after))
			}
			l, err := conn.Ledger(testContext(t), "j")
			if ok(t, err); l.State != wire.Done || !strings.HasPrefix(l.Holder, "next-") {
				t.Errorf("the ledger says %+v", l)
			}
			wantLogged(t, conn, 0)
		})
	}
}

// Leases that are shorter than any work takes: all of them believe that they hold
// the job, one after the other and sometimes at once. Still the job comes to its
// end, since patience grows, and each row is there once.
func TestLeasesTooShort(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	jobs := []*testJob{newJob(t, "a", 1, 2, 20), newJob(t, "b", 2, 3, 20)}
	var stops []func()
	for i := range 3 {
		stops = append(stops, serve(t, conn, Options{Output: output, Name: fmt.Sprint(i), Lease: time.Microsecond, Memory: int64(i) * 10_000}))
	}
	for _, j := range jobs {
		j.create(t, conn)
	}
	for chunk := range 20 {
		for _, j := range jobs {
			j.send(t, conn, 19-chunk)
		}
	}
	for _, j := range jobs {
		j.seal(t, conn)
		j.awaitDone(t, conn)
	}
	for _, stop := range stops {
		stop()
	}
	for _, j := range jobs {
		j.check(t, output)
	}
}

// stuck holds the loop up in the middle of a part.
type stuck struct {
	slog.Handler
	ctx context.Context
}

func (stuck) Enabled(context.Context, slog.Level) bool { return true }

func (s stuck) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "part committed" {
		<-s.ctx.Done()
	}
	return nil
}

// A holder that is busy stays the holder: its ledger is written all the same.
func TestBusyHolder(t *testing.T) {
	conn := broker(t)
	j := newJob(t, "j", 1, 1, 2)
	ctx, goOn := context.WithCancel(testContext(t))
	output := t.TempDir()
	stop := serve(t, conn, Options{Output: output, Lease: quick, Log: slog.New(stuck{slog.DiscardHandler, ctx})})
	j.create(t, conn)
	j.send(t, conn, 0)
	written := 0
	for l, err := range conn.WatchLedger(testContext(t), "j") {
		ok(t, err)
		if len(l.Parts) > 0 || l.Holder == "" {
			t.Fatalf("the loop is not held up: %+v", l)
		}
		if written++; written == 20 {
			break
		}
	}
	goOn()
	j.send(t, conn, 1)
	j.seal(t, conn)
	j.awaitDone(t, conn)
	stop()
	j.check(t, output)
}

// When a job may be taken: by those with little to do first, from a silent
// holder after the lease, and later each time that he was not dead after all.
func TestDue(t *testing.T) {
	at := time.Now()
	const lease = 10 * time.Second
	for _, test := range []struct {
		name   string
		holder string
		held   int // jobs that we hold
		losses int
		want   time.Duration
	}{
		{"free", "", 0, 0, 0},
		{"free, two held", "", 2, 0, 2 * stepAside},
		{"free, many held", "", 1000, 0, maxStepAside},
		{"ours", "me", 5, 3, 0},
		{"another's", "him", 0, 0, lease},
		{"another's, lost once", "him", 0, 1, 2 * lease},
		{"another's, lost for ever", "him", 0, 1_000_000, maxPatience},
	} {
		a := &aggregator{opts: Options{Lease: lease}, holder: "me", jobs: map[string]*job{}, losses: map[string]int{"j": test.losses}}
		for i := range test.held {
			a.jobs[fmt.Sprint(i)] = &job{}
		}
		o := &other{since: at, standing: &queue.Standing{Ledger: &wire.Ledger{Holder: test.holder}}}
		if got := a.due("j", o).Sub(at); got != test.want {
			t.Errorf("%s: due after %s, want %s", test.name, got, test.want)
		}
	}
}

// What has become somebody else's is not purged, and its ledger is not touched,
// whatever arrives; when that one lets go of it, it is taken up again.
func TestTakenAway(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 2, 4)
	stop := serve(t, conn, Options{Output: output, Lease: never})
	j.create(t, conn)
	j.send(t, conn, 0, 1)
	awaitParts(t, conn, "j", 1)
	write := func(holder string) {
		t.Helper()
		for {
			s, err := conn.Standing(testContext(t), "j")
			ok(t, err)
			s.Ledger.Holder = holder
			_, err = conn.PutLedger(testContext(t), "j", s.Ledger, s.Revision)
			if errors.Is(err, queue.ErrConflict) {
				continue
			}
			ok(t, err)
			return
		}
	}
	write("thief")
	j.send(t, conn, 2, 3)
	j.seal(t, conn)
	// Somebody else's job is done after all that has been heard of.
	next := newJob(t, "next", 2, 1, 1)
	next.create(t, conn)
	next.send(t, conn, 0)
	next.seal(t, conn)
	next.awaitDone(t, conn)
	l, err := conn.Ledger(testContext(t), "j")
	if ok(t, err); l.Holder != "thief" || len(l.Parts) != 1 {
		t.Errorf("the ledger says %+v", l)
	}
	write("")
	j.awaitDone(t, conn)
	stop()
	j.check(t, output)
}

// A ledger of before there were outputs and holders belongs to whoever comes
// first.
func TestOlderLedger(t *testing.T) {
	conn, output := broker(t), t.TempDir()
	j := newJob(t, "j", 1, 2, 2)
	j.create(t, conn)
	_, err := conn.PutLedger(testContext(t), "j", &wire.Ledger{State: wire.Open}, 0)
	ok(t, err)
	j.send(t, conn, 0, 1)
	j.seal(t, conn)
	stop := serve(t, conn, Options{Output: output, Identity: "here", Lease: never})
	j.awaitDone(t, conn)
	stop()
	j.check(t, output)
	l, err := conn.Ledger(testContext(t), "j")
	if ok(t, err); l.Output != "here" {
		t.Errorf("the ledger says %+v", l)
	}
}
