package queue

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Finding is the outcome of one look at something.
type Finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"` // what to do; empty where it is OK
}

// Bounds of what counts as well.
const (
	oldestServer   = "2.10" // the first with all that we ask of the JetStream API
	leastPayload   = 1 << 20
	mostSkew       = 2 * time.Second
	leastRemaining = 14 * 24 * time.Hour // of a certificate
)

const (
	adviceSetup = "run flipmill setup with the limits that you want, or doctor with those that you gave it"
	adviceRoles = "give this user the permissions of a role in deployments/nats/roles.conf"
)

// Examine looks at all that flipmill needs of a broker, and changes nothing.
// limits are those that Setup would be given. What is denied is a finding, and
// at the end an error, too; a broker that does not answer is an error at once.
func (c *Conn) Examine(ctx context.Context, limits Limits) ([]Finding, error) {
	e := &examination{conn: c, limits: limits.withDefaults()}
	for _, look := range []func(context.Context) error{
		e.server, e.encryption, e.user, e.payload, e.jetStream, e.streams, e.lanes, e.jobs, e.room,
	} {
		err := look(ctx)
		switch {
		case err == nil:
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			e.bad("jetstream", "not enabled", "add a jetstream block to the server's configuration, as deployments/nats/server.conf has it")
			return e.findings, e.denied
		case ctx.Err() != nil || !isTransient(err):
			return e.findings, err
		default:
			return e.findings, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
	}
	return e.findings, e.denied
}

// examination collects findings.
type examination struct {
	conn     *Conn
	limits   Limits
	account  *jetstream.AccountInfo // nil if it could not be asked for
	operator bool                   // the permissions are enough for setup
	absent   []string               // streams that are not there
	missing  int64                  // bytes that streams will take which are not there yet
	results  int64                  // bytes that the log of results may take; 0 if that could not be asked for
	findings []Finding
	denied   error // the first denial
}

func (e *examination) good(check, found string) {
	e.findings = append(e.findings, Finding{Check: check, OK: true, Found: found})
}

func (e *examination) bad(check, found, advice string) {
	e.findings = append(e.findings, Finding{Check: check, Found: found, Advice: advice})
}

// ask makes a request. If it is denied or what it asks for is not there, that is
// a finding and the answer is false.
func (e *examination) ask(ctx context.Context, check string, request func(context.Context) error) (bool, error) {
	err := e.conn.once(ctx, request)
	switch {
	case errors.Is(err, ErrDenied):
		e.bad(check, err.Error(), adviceRoles)
		if e.denied == nil {
			e.denied = fmt.Errorf("look at %s: %w", check, err)
		}
		return false, nil
	case errors.Is(err, ErrNotFound):
		e.bad(check, "missing", adviceSetup)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", check, err)
	}
	return true, nil
}

func (e *examination) server(context.Context) error {
	nc := e.conn.nc
	version := nc.ConnectedServerVersion()
	found := fmt.Sprintf("%s, nats-server %s at %s", nc.ConnectedServerName(), version, nc.ConnectedUrlRedacted())
	if olderThan(version, oldestServer) {
		e.bad("server", found, fmt.Sprintf("upgrade it to %s or later; flipmill is tested with %s", oldestServer, server.VERSION))
		return nil
	}
	e.good("server", found)
	return nil
}

// olderThan compares major and minor versions. What cannot be read is not old.
func olderThan(version, oldest string) bool {
	var major, minor, oldMajor, oldMinor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	_, errOldest := fmt.Sscanf(oldest, "%d.%d", &oldMajor, &oldMinor)
	return err == nil && errOldest == nil && (major < oldMajor || major == oldMajor && minor < oldMinor)
}

func (e *examination) encryption(context.Context) error {
	const check = "encryption"
	state, err := e.conn.nc.TLSConnectionState()
	if err != nil { // there is none
		leaves, err := leavesHost(e.conn.nc.ConnectedUrlRedacted())
		if err == nil && leaves {
			e.bad(check, "none, to another host", "give the server a certificate, and leave --insecure out; docs/security.md says how")
			return nil
		}
		e.good(check, "none needed on this host")
		return nil
	}
	expires := state.PeerCertificates[0].NotAfter
	found := fmt.Sprintf("%s, the server's certificate is valid until %s", tls.VersionName(state.Version), expires.Format(time.DateOnly))
	if time.Until(expires) < leastRemaining {
		e.bad(check, found, "renew the certificate")
		return nil
	}
	e.good(check, found)
	return nil
}

// user looks at the permissions, and at the clock: the answer has the server's
// time.
func (e *examination) user(ctx context.Context) error {
	var answer struct {
		Server struct{ Time time.Time }
		Data   struct {
			User, Account string
			Permissions   *permissions
		}
	}
	var before, after time.Time
	told, err := e.ask(ctx, "permissions", func(ctx context.Context) error {
		before = time.Now()
		m, err := e.conn.nc.RequestWithContext(ctx, userInfo, nil)
		after = time.Now()
		if err != nil {
			return err
		}
		return json.Unmarshal(m.Data, &answer)
	})
	if err != nil || !told {
		return err
	}
	e.roles(answer.Data.User, answer.Data.Permissions)
	skew := max(before.Sub(answer.Server.Time), answer.Server.Time.Sub(after), 0)
	if skew > mostSkew {
		e.bad("clock", fmt.Sprintf("%s apart from the server's", skew.Round(time.Millisecond)),
			"synchronise the clocks of both hosts; ages in status and why are wrong by that much")
		return nil
	}
	e.good("clock", "as the server's")
	return nil
}

// roles says which roles the permissions are enough for.
func (e *examination) roles(user string, p *permissions) {
	const check = "permissions"
	if user == "" {
		user = "no user"
	}
	e.operator = len(p.lack(Operator)) == 0
	if p == nil {
		e.good(check, user+", may do everything")
		return
	}
	var fit []string
	least := p.lack(Observer)
	for _, r := range Roles() {
		missing := p.lack(r)
		if len(missing) == 0 {
			fit = append(fit, string(r))
		}
		if len(missing) < len(least) {
			least = missing
		}
	}
	if len(fit) == 0 {
		e.bad(check, user+", enough for no role; to be one it lacks: "+strings.Join(least, ", "), adviceRoles)
		return
	}
	e.good(check, user+", enough for: "+strings.Join(fit, ", "))
}

func (e *examination) payload(context.Context) error {
	most := e.conn.nc.MaxPayload()
	found := fmt.Sprintf("messages of up to %s", mib(most))
	if most < leastPayload {
		e.bad("payload", found, "set max_payload of the server to 1MB: a chunk's message may be that large")
		return nil
	}
	e.good("payload", found)
	return nil
}

func (e *examination) jetStream(ctx context.Context) error {
	told, err := e.ask(ctx, "jetstream", func(ctx context.Context) (err error) {
		e.account, err = e.conn.js.AccountInfo(ctx)
		return err
	})
	if err != nil || !told {
		return err
	}
	e.good("jetstream", fmt.Sprintf("enabled, %d streams with %s on disk", e.account.Streams, mib(int64(e.account.Store))))
	return nil
}

func (e *examination) streams(ctx context.Context) error {
	before, wants := len(e.findings), append(e.conn.streamConfigs(e.limits), bucketConfig(e.limits))
	for _, want := range wants {
		var info *jetstream.StreamInfo
		there, err := e.ask(ctx, want.Name, func(ctx context.Context) error {
			s, err := e.conn.js.Stream(ctx, want.Name)
			if err == nil {
				info = s.CachedInfo()
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case !there:
			if e.denied == nil {
				e.absent = append(e.absent, want.Name)
				e.missing += max(want.MaxBytes, 0)
			}
			continue
		}
		if e.account != nil && e.account.Limits.MaxConsumers > 0 {
			want.MaxConsumers = info.Config.MaxConsumers // the account's own limit goes before
		}
		d := streamDrift(info.Config, want)
		found := fmt.Sprintf("%d messages, %s", info.State.Msgs, mib(int64(info.State.Bytes)))
		if info.Config.MaxBytes > 0 {
			found += " of " + mib(info.Config.MaxBytes)
		}
		if want.Name == resultsStream {
			e.results = info.Config.MaxBytes
		}
		e.compare(want.Name, found, d)
		e.copies(want.Name, info.Cluster)
	}
	if len(e.absent) == len(wants) { // which is one thing, and where others see to it none to worry about
		e.findings = e.findings[:before]
		if e.operator {
			e.good("setup", "nothing is set up yet: flipmill setup does it, and so do submit and aggregator, with its defaults")
		} else {
			e.bad("setup", "nothing is set up yet", "run flipmill setup as one who may do that")
		}
	}
	return nil
}

// compare makes a finding of how something is.
func (e *examination) compare(check, found string, d drift) {
	if differences := d.all(); len(differences) > 0 {
		e.bad(check, strings.Join(differences, "; "), adviceSetup)
		return
	}
	e.good(check, found)
}

// copies looks at the servers that keep a copy of a stream.
func (e *examination) copies(check string, cluster *jetstream.ClusterInfo) {
	if cluster == nil {
		return
	}
	if cluster.Leader == "" {
		e.bad(check, "has no leader", "start the servers of the cluster: more than half of them are needed")
	}
	for _, peer := range cluster.Replicas {
		if peer.Offline {
			e.bad(check, "the copy on "+peer.Name+" is away", "start that server")
		}
	}
}

func (e *examination) lanes(ctx context.Context) error {
	if slices.Contains(e.absent, tasksStream) { // and with it its lanes
		return nil
	}
	for _, lane := range Lanes() {
		var info *jetstream.ConsumerInfo
		check := "lane " + string(lane)
		there, err := e.ask(ctx, check, func(ctx context.Context) error {
			consumer, err := e.conn.js.Consumer(ctx, tasksStream, string(lane))
			if err == nil {
				info = consumer.CachedInfo()
			}
			return err
		})
		if err != nil {
			return err
		}
		if there {
			e.compare(check, fmt.Sprintf("%d tasks wait, %d with workers", info.NumPending, info.NumAckPending), laneDrift(info.Config, laneConfig(lane, e.limits)))
		}
	}
	return nil
}

// jobs looks whether the log of results is large enough for the jobs that are open.
func (e *examination) jobs(ctx context.Context) error {
	const check = "open jobs"
	if e.results <= 0 {
		return nil
	}
	var all []*Standing
	told, err := e.ask(ctx, check, func(ctx context.Context) (err error) {
		all, err = e.conn.Standings(ctx)
		return err
	})
	if err != nil || !told {
		return err
	}
	open, parts := 0, int64(0)
	for _, s := range all {
		if !s.Ended() {
			open++
			parts += int64(s.Job.Spec.PartChunks) * MostResult
		}
	}
	found := fmt.Sprintf("%d, of which the oldest parts take %s at most among the results", open, mib(parts))
	if open > 1 && parts > e.results/2 || parts > e.results {
		e.bad(check, found+", where at most half of "+mib(e.results)+" are for them",
			"run flipmill setup with result-bytes of twice that, or keep some of the jobs for later")
		return nil
	}
	e.good(check, found)
	return nil
}

// room looks whether the account has place for the streams that are missing.
func (e *examination) room(context.Context) error {
	if e.account == nil || e.missing == 0 || e.limits.Memory || e.account.Limits.MaxStore < 0 {
		return nil
	}
	left := e.account.Limits.MaxStore - int64(max(e.account.Store, e.account.ReservedStore))
	if left < e.missing {
		e.bad("room", fmt.Sprintf("%s left for this account, the missing streams take %s", mib(left), mib(e.missing)),
			"raise the account's max_file, or run flipmill setup with smaller task-bytes and result-bytes")
		return nil
	}
	e.good("room", mib(left)+" left for this account")
	return nil
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
