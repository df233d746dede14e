package queue

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

var update = flag.Bool("update", false, "write deployments/nats/roles.conf")

const deployments = "../../deployments/nats"

// TestRolesFile: what operators include is what the package says.
func TestRolesFile(t *testing.T) {
	file := filepath.Join(deployments, "roles.conf")
	if *update {
		ok(t, os.WriteFile(file, rolesConfig(), 0o644))
	}
	got, err := os.ReadFile(file)
	ok(t, err)
	if !bytes.Equal(got, rolesConfig()) {
		t.Errorf("%s is out of date: run make generate", file)
	}
}

// rolesConfig returns a part of a configuration of nats-server: variables for an
// account of each role, which may do its work in the account that has the streams.
func rolesConfig() []byte {
	var b bytes.Buffer
	b.WriteString("# What each role of flipmill may do on the broker: the least that its verbs need.\n" +
		"# Made by \"make generate\" from pkg/queue/roles.go; docs/security.md explains it.\n")
	exports := map[string]bool{}
	for _, r := range Roles() {
		name := strings.ToUpper(string(r))
		fmt.Fprintf(&b, "\n%s_PERMISSIONS = {\n  publish = [\n", name)
		for _, g := range r.grants() {
			if g.why != "" {
				fmt.Fprintf(&b, "    # %s\n", g.why)
			}
			fmt.Fprintf(&b, "    %q\n", g.subject)
		}
		fmt.Fprintf(&b, "  ]\n  subscribe = [\"%s\"]\n}\n%s_IMPORTS = [\n", strings.Join(r.inboxes(), `", "`), name)
		for _, g := range r.grants() {
			if g.subject != userInfo { // which every account has by itself
				fmt.Fprintf(&b, "  {service: {account: FLIPMILL, subject: %q}}\n", g.subject)
				exports[g.subject] = true
			}
		}
		b.WriteString("]\n")
	}
	b.WriteString("\n# What the account with the streams offers to those of the roles.\nFLIPMILL_EXPORTS = [\n")
	for _, subject := range slices.Sorted(maps.Keys(exports)) {
		if strings.Contains(subject, "MSG.NEXT") {
			fmt.Fprintf(&b, "  {service: %q, response_type: stream}\n", subject)
		} else {
			fmt.Fprintf(&b, "  {service: %q}\n", subject)
		}
	}
	b.WriteString("]\n")
	return b.Bytes()
}

// secured is a broker with the configuration that operators are given.
type secured struct {
	url   string
	tls   *authority
	seeds map[Role]string // files
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{tls: newAuthority(t), seeds: map[Role]string{}}
	for _, r := range Roles() {
		key, err := nkeys.CreateUser()
		ok(t, err)
		seed, err := key.Seed()
		ok(t, err)
		s.seeds[r] = identity(t, string(seed))
		public, err := key.PublicKey()
		ok(t, err)
		t.Setenv(strings.ToUpper(string(r))+"_NKEY", public)
	}
	t.Setenv("NATS_LISTEN", "127.0.0.1:-1") // any free port
	t.Setenv("NATS_STORE", t.TempDir())
	t.Setenv("NATS_CERT", s.tls.file("server.crt"))
	t.Setenv("NATS_KEY", s.tls.file("server.key"))
	t.Setenv("NATS_CA", s.tls.file("ca.crt"))
	options, err := server.ProcessConfigFile(filepath.Join(deployments, "secure.conf"))
	ok(t, err)
	options.NoSigs, options.NoLog = true, true
	options.TLSTimeout = patience.Seconds() // a busy machine is no attacker
	broker, err := startServer(options, false)
	ok(t, err)
	t.Cleanup(func() { broker.Close() })
	s.url = broker.URL()
	return s
}

// options returns those of a client with the credentials of one role, which may
// be playing another.
func (s *secured) options(identity, role Role) Options {
	return Options{
		URL: s.url, Role: role, Timeout: patience, Credentials: s.seeds[identity],
		CA: s.tls.file("ca.crt"), Cert: s.tls.file("client.crt"), Key: s.tls.file("client.key"),
	}
}

// deed is something to do on a broker, and who may.
type deed struct {
	name string
	may  []Role
	do   func(ctx context.Context, c *Conn) error
}

// Each role does its work with its permissions, and nothing else; a denial is
// reported as one, at once.
func TestRoles(t *testing.T) {
	s := startSecured(t)
	conns := map[Role]*Conn{}
	for _, r := range Roles() {
		conns[r] = connect(t, s.options(r, r))
	}
	ctx := testContext(t)
	ok(t, conns[Operator].Setup(ctx, Limits{}))
	for _, d := range slices.Concat(lookingDeeds(), workingDeeds(t), forbiddenDeeds()) {
		for _, r := range Roles() {
			prepareJob(t, conns)
			ctx := testContext(t)
			err := d.do(ctx, conns[r])
			switch {
			case slices.Contains(d.may, r):
				if err != nil {
					t.Errorf("%s: %s: %v", r, d.name, err)
				}
			case !errors.Is(err, ErrDenied):
				t.Errorf("%s: %s: got error %v, want a denial", r, d.name, err)
			}
		}
	}
}

// prepareJob makes sure that there is a job with a ledger, a task and a result.
func prepareJob(t *testing.T, conns map[Role]*Conn) {
	t.Helper()
	ctx := testContext(t)
	_, err := conns[Producer].CreateJob(ctx, newJob(t, "j"))
	ok(t, err)
	epoch, err := conns[Producer].NextEpoch(ctx, "j", nil)
	ok(t, err)
	ok(t, writeLedger(ctx, conns[Aggregator], "j", &wire.Ledger{State: wire.Open}))
	ok(t, conns[Aggregator].PurgeTasks(ctx, "j"))
	p := conns[Producer].Publisher(Normal, 1<<20)
	ok(t, p.Publish(ctx, wire.ID{Job: "j", Epoch: epoch}, []byte("task")))
	ok(t, p.Flush(ctx))
	ok(t, conns[Worker].PublishResult(ctx, wire.ID{Job: "j", Epoch: epoch}, []byte("result")))
}

// first returns what the first element of a sequence says.
func first[T any](seq func(yield func(T, error) bool)) (err error) {
	for _, err := range seq {
		return err
	}
	return errors.New("nothing came")
}

func lookingDeeds() []deed {
	return []deed{
		{"make sure that all is set up", Roles(), func(ctx context.Context, c *Conn) error { return c.Ensure(ctx, Limits{}) }},
		{"read a job", Roles(), func(ctx context.Context, c *Conn) error { _, err := c.Job(ctx, "j"); return err }},
		{"read a ledger", Roles(), func(ctx context.Context, c *Conn) error { _, err := c.Ledger(ctx, "j"); return err }},
		{"read an order", Roles(), func(ctx context.Context, c *Conn) error { _, err := c.Order(ctx, "j"); return err }},
		{"read a trouble", Roles(), func(ctx context.Context, c *Conn) error { _, err := c.Troubles(ctx, "j"); return err }},
		{"read all of a job", Roles(), func(ctx context.Context, c *Conn) error { _, err := c.Standing(ctx, "j"); return err }},
		{"list the jobs", Roles(), func(ctx context.Context, c *Conn) error { _, err := c.Standings(ctx); return err }},
		{"watch all jobs", Roles(), func(ctx context.Context, c *Conn) error { return first(c.WatchStandings(ctx)) }},
		{"watch a ledger", Roles(), func(ctx context.Context, c *Conn) error { return first(c.WatchLedger(ctx, "j")) }},
		{"watch a job", Roles(), func(ctx context.Context, c *Conn) error { return first(c.WatchStanding(ctx, "j")) }},
		{"list the chunks of a job", Roles(), func(ctx context.Context, c *Conn) error {
			chunks, err := c.Stored(ctx, "j")
			if err == nil && len(chunks) == 0 {
				return errors.New("nothing is found")
			}
			return err
		}},
		{"see what waits", Roles(), func(ctx context.Context, c *Conn) error { _, err := c.Backlog(ctx); return err }},
		{"find the chunks of a job", []Role{Observer, Operator, Aggregator}, func(ctx context.Context, c *Conn) error {
			places, err := c.Locate(ctx, "j")
			if err == nil && len(places) == 0 {
				return errors.New("nothing is found")
			}
			return err
		}},
	}
}

func workingDeeds(t *testing.T) []deed {
	one := wire.ID{Job: "j", Chunk: 1, Epoch: 1}
	lost := 0
	return []deed{
		{"set up", []Role{Operator}, func(ctx context.Context, c *Conn) error { return c.Setup(ctx, Limits{}) }},
		{"create a job", []Role{Producer, Aggregator, Operator}, func(ctx context.Context, c *Conn) error {
			_, err := c.CreateJob(ctx, newJob(t, "k"))
			return err
		}},
		{"begin a drive", []Role{Producer, Aggregator, Operator}, func(ctx context.Context, c *Conn) error { _, err := c.NextEpoch(ctx, "j", nil); return err }},
		{"retry a job", []Role{Producer, Aggregator, Operator}, func(ctx context.Context, c *Conn) error { _, err := c.RetryJob(ctx, "j"); return err }},
		{"bring back a job", []Role{Aggregator}, func(ctx context.Context, c *Conn) error {
			lost++
			return c.BringBackJob(ctx, newJob(t, fmt.Sprint("lost-", lost)), &wire.Ledger{State: wire.Open})
		}},
		{"publish a task", []Role{Producer, Operator}, func(ctx context.Context, c *Conn) error {
			p := c.Publisher(Normal, 1<<20)
			return errors.Join(p.Publish(ctx, one, []byte("task")), p.Flush(ctx))
		}},
		{"do a task", []Role{Worker}, func(ctx context.Context, c *Conn) error {
			tasks, err := c.Tasks(ctx, Lanes()...)
			if err != nil {
				return err
			}
			defer tasks.Close()
			d, err := tasks.Next(ctx)
			if err != nil {
				return err
			}
			return d.DoubleAck(ctx)
		}},
		{"publish a result", []Role{Worker}, func(ctx context.Context, c *Conn) error { return c.PublishResult(ctx, one, []byte("result")) }},
		{"write down a trouble", []Role{Worker}, func(ctx context.Context, c *Conn) error {
			return c.PutTrouble(ctx, "j", wire.Trouble{Delivered: 1, Message: "no answer"})
		}},
		{"follow the results", []Role{Aggregator, Observer, Operator}, func(ctx context.Context, c *Conn) error { return first(c.Results(ctx, "j")) }},
		{"look for a result that is gone", []Role{Aggregator}, func(ctx context.Context, c *Conn) error {
			if _, err := c.ReadResult(ctx, 1<<40); !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		}},
		{"read a result", []Role{Aggregator}, func(ctx context.Context, c *Conn) error {
			s, err := c.stream(ctx, resultsStream)
			if err != nil {
				return err
			}
			info, err := s.Info(ctx)
			if err != nil {
				return err
			}
			_, err = c.ReadResult(ctx, info.State.LastSeq)
			return err
		}},
		{"write a ledger", []Role{Aggregator}, func(ctx context.Context, c *Conn) error {
			return writeLedger(ctx, c, "j", &wire.Ledger{State: wire.Open})
		}},
		{"sweep the results", []Role{Aggregator}, func(ctx context.Context, c *Conn) error {
			return c.SweepResults(ctx, func(string, *Standing) bool { return true })
		}},
		{"purge a part", []Role{Aggregator}, func(ctx context.Context, c *Conn) error { return c.PurgePart(ctx, "j", 0) }},
		{"purge all results of a job", []Role{Aggregator}, func(ctx context.Context, c *Conn) error { return c.PurgeResults(ctx, "j") }},
		{"purge all tasks of a job", []Role{Aggregator, Operator}, func(ctx context.Context, c *Conn) error { return c.PurgeTasks(ctx, "j") }},
		{"pause a job", []Role{Operator}, func(ctx context.Context, c *Conn) error { return c.PutOrder(ctx, "j", wire.Pause) }},
		{"go on with a job", []Role{Operator}, func(ctx context.Context, c *Conn) error { return c.PutOrder(ctx, "j", wire.Proceed) }},
		{"seal a job", []Role{Producer, Aggregator, Operator}, func(ctx context.Context, c *Conn) error { return c.SealJob(ctx, "j", &wire.Totals{Format: "lines"}) }},
	}
}

// forbiddenDeeds are what none of our verbs does.
func forbiddenDeeds() []deed {
	raw := func(name string, do func(ctx context.Context, c *Conn) error) deed {
		return deed{name, nil, func(ctx context.Context, c *Conn) error {
			return c.once(ctx, func(ctx context.Context) error { return do(ctx, c) })
		}}
	}
	ask := func(subject, body string) deed {
		return raw("ask "+subject, func(ctx context.Context, c *Conn) error {
			_, err := c.nc.RequestWithContext(ctx, subject, []byte(body))
			return err
		})
	}
	listen := func(subject string) deed {
		return raw("listen to "+subject, func(ctx context.Context, c *Conn) error {
			s, err := c.nc.SubscribeSync(subject)
			if err != nil {
				return err
			}
			defer func() { _ = s.Unsubscribe() }() // it has ended by itself if it was denied
			<-ctx.Done()                           // until the denial comes
			return ctx.Err()
		})
	}
	return []deed{
		ask("$JS.API.STREAM.DELETE."+tasksStream, ""),
		ask("$JS.API.STREAM.DELETE."+bucketStream, ""),
		ask("$JS.API.STREAM.PURGE."+bucketStream, ""),
		ask("$JS.API.STREAM.CREATE.OTHER", "{}"),
		ask("$JS.API.STREAM.MSG.DELETE."+resultsStream, `{"seq":1}`),
		ask("$JS.API.STREAM.SNAPSHOT."+tasksStream, "{}"),
		ask("$JS.API.CONSUMER.DELETE."+tasksStream+"."+string(Normal), ""),
		ask("$JS.API.CONSUMER.PAUSE."+tasksStream+"."+string(Normal), "{}"),
		ask("$SYS.REQ.SERVER.PING", ""),
		ask("flipmill.other", ""),
		raw("write a record of another kind", func(ctx context.Context, c *Conn) error {
			_, err := c.js.Publish(ctx, keyPrefix+"j.x.y", nil)
			return err
		}),
		raw("create a bucket", func(ctx context.Context, c *Conn) error {
			_, err := c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "other"})
			return err
		}),
		listen(taskPrefix + ".>"),
		listen("_INBOX.>"),
		listen("$JS.ACK.>"),
		listen(">"),
	}
}

// Whoever asks may name any subject for the answer. It must not be a way to have
// messages stored that the asker may not send.
func TestAnswersStayWithTheAsker(t *testing.T) {
	s := startSecured(t)
	conns := map[Role]*Conn{}
	for _, r := range Roles() {
		conns[r] = connect(t, s.options(r, r))
	}
	ctx := testContext(t)
	ok(t, conns[Operator].Setup(ctx, Limits{}))
	prepareJob(t, conns)
	tasks := stored(t, conns[Operator], tasksStream)
	results := stored(t, conns[Operator], resultsStream)
	records := stored(t, conns[Operator], bucketStream)

	c := conns[Observer]
	create := func(name, deliver string) {
		_, err := c.nc.RequestWithContext(ctx, api+"CONSUMER.CREATE."+bucketStream+"."+name, fmt.Appendf(nil,
			`{"stream_name": %q, "config": {"name": %q, "ack_policy": "none", "deliver_policy": "all", "mem_storage": true %s}}`, bucketStream, name, deliver))
		ok(t, err)
	}
	create("pulled", "")
	create("pushed", `, "deliver_subject": "flipmill.task.normal.k.1"`)
	pull := api + "CONSUMER.MSG.NEXT." + bucketStream + ".pulled"
	get := api + "STREAM.MSG.GET." + bucketStream
	for _, victim := range []string{"flipmill.task.normal.k.0", "flipmill.result.0.k.0.0", keyPrefix + "k", keyPrefix + "k" + ledgerSuffix} {
		ok(t, c.nc.PublishRequest(get, victim, fmt.Appendf(nil, `{"last_by_subj": %q}`, keyPrefix+"j")))
		ok(t, c.nc.PublishRequest(pull, victim, nil))
	}
	for range 200 { // what was asked before has been answered by then
		_, err := c.Ledger(ctx, "j")
		ok(t, err)
	}
	for stream, before := range map[string]int{tasksStream: tasks, resultsStream: results, bucketStream: records} {
		if now := stored(t, conns[Operator], stream); now != before {
			t.Errorf("%s has %d messages, it had %d", stream, now, before)
		}
	}
}

// A verb that is run with the credentials of another role is told so. Those that only
// look may have an operator's.
func TestWrongRole(t *testing.T) {
	s := startSecured(t)
	conns := map[Role]*Conn{}
	for _, r := range Roles() {
		conns[r] = connect(t, s.options(r, r))
	}
	ctx := testContext(t)
	ok(t, conns[Operator].Setup(ctx, Limits{}))
	c := connect(t, s.options(Observer, Worker))
	_, err := c.Tasks(ctx, Lanes()...)
	wantError(t, err, ErrDenied)
	prepareJob(t, conns)
	c = connect(t, s.options(Operator, Observer))
	for _, d := range lookingDeeds() {
		if err := d.do(testContext(t), c); err != nil {
			t.Errorf("an operator: %s: %v", d.name, err)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		pattern, other string
		want           bool
	}{
		{"a.b", "a.b", true}, {"a.b", "a.c", false}, {"a.b", "a.b.c", false}, {"a.b.c", "a.b", false},
		{"a.*", "a.b", true}, {"a.*", "a.*", true}, {"a.b", "a.*", false}, {"a.*", "a.>", false}, {"a.*", "a.b.c", false},
		{"a.>", "a.b", true}, {"a.>", "a.b.*", true}, {"a.>", "a.>", true}, {"a.>", "a", false}, {">", "a.*.>", true},
	} {
		if got := covers(tt.pattern, tt.other); got != tt.want {
			t.Errorf("%s covers %s: %v", tt.pattern, tt.other, got)
		}
	}
}
