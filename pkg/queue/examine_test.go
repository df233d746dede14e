package queue

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// findings examines a broker and returns what is wrong, by check, and how many
// looks were fine.
func findings(t *testing.T, c *Conn, l Limits, want error) (wrong map[string]Finding, fine int) {
	t.Helper()
	all, err := c.Examine(testContext(t), l)
	wantError(t, err, want)
	wrong = map[string]Finding{}
	for _, f := range all {
		t.Logf("%+v", f)
		if f.OK != (f.Advice == "") || f.Found == "" {
			t.Errorf("finding %+v", f)
		}
		if f.OK {
			fine++
		} else {
			wrong[f.Check] = f
		}
	}
	return wrong, fine
}

// wantWrong expects exactly these checks to fail, each with a text.
func wantWrong(t *testing.T, wrong map[string]Finding, want map[string]string) {
	t.Helper()
	for check, text := range want {
		if f, found := wrong[check]; !found || !strings.Contains(f.Found+f.Advice, text) {
			t.Errorf("%s: got %+v, want %q in it", check, f, text)
		}
	}
	if len(wrong) != len(want) {
		t.Errorf("%d findings, want %d", len(wrong), len(want))
	}
}

func TestExamineHealthy(t *testing.T) {
	wrong, fine := findings(t, setUp(t, Limits{}), Limits{}, nil)
	wantWrong(t, wrong, nil)
	if fine < 12 {
		t.Errorf("only %d looks", fine)
	}
	wrong, _ = findings(t, setUp(t, Limits{Memory: true, TaskBytes: 1 << 20}), Limits{Memory: true, TaskBytes: 1 << 20}, nil)
	wantWrong(t, wrong, nil)
}

// Over TLS, with the permissions of each role.
func TestExamineSecured(t *testing.T) {
	s := startSecured(t)
	ok(t, connect(t, s.options(Operator, Operator)).Setup(testContext(t), Limits{}))
	for _, r := range Roles() {
		c := connect(t, s.options(r, Doctor))
		all, err := c.Examine(testContext(t), Limits{})
		ok(t, err)
		fit := string(r)
		if r == Operator {
			fit = "observer, operator"
		}
		for _, f := range all {
			if f.Check == "permissions" && !strings.HasSuffix(f.Found, "enough for: "+fit) || f.Check == "encryption" && !strings.HasPrefix(f.Found, "TLS 1.3") || !f.OK {
				t.Errorf("%s: %+v", r, f)
			}
		}
	}
}

// A server that is new is one thing to say, and nothing to worry about for those who set
// it up.
func TestExamineWithoutSetup(t *testing.T) {
	c := connect(t, Options{Server: start(t, ServerOptions{})})
	wrong, _ := findings(t, c, Limits{}, nil)
	wantWrong(t, wrong, nil)
	ok(t, c.Setup(testContext(t), Limits{}))
	ok(t, c.js.DeleteStream(testContext(t), tasksStream)) // which is a loss
	wrong, _ = findings(t, c, Limits{}, nil)
	wantWrong(t, wrong, map[string]string{tasksStream: "missing"})

	secured := startSecured(t)
	wrong, _ = findings(t, connect(t, secured.options(Worker, Doctor)), Limits{}, nil)
	wantWrong(t, wrong, map[string]string{"setup": "as one who may"})
	wrong, _ = findings(t, connect(t, secured.options(Operator, Doctor)), Limits{}, nil)
	wantWrong(t, wrong, nil)
}

func TestExamineBroken(t *testing.T) {
	ctx := testContext(t)
	s := startWith(t, func(o *server.Options) { o.MaxPayload = 64 << 10 })
	c := connect(t, Options{URL: s.URL()})
	ok(t, c.Setup(ctx, Limits{}))
	tasks := c.streamConfigs(Limits{}.withDefaults())[0]
	tasks.MaxAge, tasks.Discard, tasks.MaxBytes = time.Hour, jetstream.DiscardOld, 1<<20
	_, err := c.js.UpdateStream(ctx, tasks)
	ok(t, err)
	lane := laneConfig(Low, Limits{}.withDefaults())
	lane.MaxDeliver = 5
	_, err = c.js.UpdateConsumer(ctx, tasksStream, lane)
	ok(t, err)
	ok(t, c.js.DeleteStream(ctx, resultsStream))
	wrong, _ := findings(t, c, Limits{Replicas: 3}, nil)
	wantWrong(t, wrong, map[string]string{
		"payload":     "max_payload",
		tasksStream:   "discard is DiscardOld, not DiscardNew; max-age is 1h0m0s, not 0s; replicas is 1, not 3; max-bytes is 1048576, not 268435456",
		resultsStream: "missing",
		bucketStream:  "replicas is 1, not 3",
		"lane low":    "max-deliver is 5, not -1",
	})
	ok(t, c.Setup(ctx, Limits{})) // setup is what changes them back
	wrong, _ = findings(t, c, Limits{}, nil)
	wantWrong(t, wrong, map[string]string{"payload": "max_payload"})
}

func TestExamineNoJetStream(t *testing.T) {
	s := startWith(t, func(o *server.Options) { o.JetStream = false })
	wrong, _ := findings(t, connect(t, Options{URL: s.URL()}), Limits{}, nil)
	wantWrong(t, wrong, map[string]string{"jetstream": "jetstream block"})
}

func TestExamineNoRoom(t *testing.T) {
	s := startWith(t, func(*server.Options) {})
	ok(t, s.ns.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{
		"": {MaxMemory: -1, MaxStore: 1 << 20, MaxStreams: -1, MaxConsumers: -1},
	}))
	wrong, _ := findings(t, connect(t, Options{URL: s.URL()}), Limits{}, nil)
	if f := wrong["room"]; !strings.Contains(f.Found, "1.0 MiB left") {
		t.Errorf("got %+v", f)
	}
}

// The log of results holds a part of one job, but not in its half one of each.
func TestExamineManyJobs(t *testing.T) {
	limits := Limits{ResultBytes: 3 * 8 * MostResult}
	c := setUp(t, limits)
	for _, job := range []string{"a", "b"} {
		wrong, _ := findings(t, c, limits, nil)
		wantWrong(t, wrong, nil)
		_, err := c.CreateJob(testContext(t), newJob(t, job)) // its parts have 8 chunks
		ok(t, err)
	}
	wrong, _ := findings(t, c, limits, nil)
	wantWrong(t, wrong, map[string]string{"open jobs": "2, of which the oldest parts take 16.0 MiB at most among the results, where at most half of 24.0 MiB"})
	ok(t, writeLedger(testContext(t), c, "a", &wire.Ledger{State: wire.Done}))
	wrong, _ = findings(t, c, limits, nil)
	wantWrong(t, wrong, nil)
}

// An account that allows fewer consumers than we would is fine, if it must be.
func TestExamineFewConsumers(t *testing.T) {
	s := startWith(t, func(*server.Options) {})
	ok(t, s.ns.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{
		"": {MaxMemory: -1, MaxStore: -1, MaxStreams: -1, MaxConsumers: 50},
	}))
	c := connect(t, Options{URL: s.URL()})
	ok(t, c.Setup(testContext(t), Limits{}))
	wrong, _ := findings(t, c, Limits{}, nil)
	wantWrong(t, wrong, nil)
}

// What is denied is a finding with advice, and an error.
func TestExamineDenied(t *testing.T) {
	s := startWith(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "some", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{userInfo, "flipmill.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
	})
	c := connect(t, Options{URL: s.URL(), Role: Doctor, Credentials: identity(t, "some:p")})
	wrong, _ := findings(t, c, Limits{}, ErrDenied)
	wantWrong(t, wrong, map[string]string{
		"permissions": "some, enough for no role", "jetstream": "permission denied",
		tasksStream: "permission denied", resultsStream: "permission denied", bucketStream: "permission denied",
		"lane high": "permission denied", "lane normal": "permission denied", "lane low": "permission denied",
	})
}

func TestExamineUnreachable(t *testing.T) {
	t.Parallel()
	s := startWith(t, func(*server.Options) {})
	c := connect(t, Options{URL: s.URL(), Timeout: 3 * time.Second})
	s.Close()
	_, err := c.Examine(testContext(t), Limits{})
	wantError(t, err, ErrUnreachable)
}

// Who binds to what is not as setup makes it says so, and leaves it.
func TestDriftIsWarnedOf(t *testing.T) {
	ctx := testContext(t)
	s := start(t, ServerOptions{})
	admin := connect(t, Options{Server: s})
	ok(t, admin.Setup(ctx, Limits{TaskBytes: 1 << 20}))
	bind := func() (warnings int) {
		log, messages := newLogs()
		c := connect(t, Options{Server: s, Log: log})
		tasksOf(t, c, Lanes()...).Close()
		short, cancel := context.WithCancel(ctx)
		cancel()
		for range c.Results(short, "j") {
		}
		c.Close()
		for len(messages) > 0 {
			if <-messages == "the broker is not as setup makes it" {
				warnings++
			}
		}
		return warnings
	}
	if n := bind(); n != 0 { // limits are for an operator to choose
		t.Errorf("%d warnings of what setup made", n)
	}
	results := admin.streamConfigs(Limits{}.withDefaults())[1]
	results.MaxAge = time.Hour
	_, err := admin.js.UpdateStream(ctx, results)
	ok(t, err)
	lane := laneConfig(High, Limits{}.withDefaults())
	lane.MaxDeliver = 3
	_, err = admin.js.UpdateConsumer(ctx, tasksStream, lane)
	ok(t, err)
	if n := bind(); n != 3 {
		t.Errorf("%d warnings, want one of the lane and, of both ends, one of the results", n)
	}
	stream, err := admin.js.Stream(ctx, resultsStream)
	ok(t, err)
	if stream.CachedInfo().Config.MaxAge != time.Hour {
		t.Error("binding changed the stream")
	}
}

func TestOlderThan(t *testing.T) {
	for version, want := range map[string]bool{"2.9.25": true, "2.10.0": false, "2.15.3": false, "3.0.0-dev": false, "1.4.1": true, "?": false} {
		if olderThan(version, "2.10") != want {
			t.Errorf("%s: want %v", version, want)
		}
	}
}
