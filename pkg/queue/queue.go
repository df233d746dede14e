// Package queue carries flipmill's messages over NATS JetStream. It is the only
// package that knows NATS.
//
// Terms. FLIPMILL_TASKS is a work queue: a task stays until a worker has settled
// it. A lane is one of its three priorities, each with one consumer that all
// workers share. FLIPMILL_RESULTS is a log: a result stays until its part is
// purged. FLIPMILL_JOBS is a bucket with the records of each job: the job itself,
// its ledger, its control, each with one writer, and the latest trouble. The
// aggregator that the ledger names holds the job. Setup creates all of it.
//
// A producer creates a job and publishes tasks. A worker takes them with
// Tasks.Next, publishes results and settles the deliveries. An aggregator takes
// jobs, follows their Results, re-reads what it needs, and purges parts.
//
// What we rely on, and what keeps a job whole:
//   - A message may be delivered more than once, in any order, by any consumer,
//     and an acknowledged one may be lost. Whoever receives one must make a copy
//     harmless; whoever needs a missing one must be able to send it again.
//   - A worker settles a task only after its result is stored: PublishResult
//     first, then DoubleAck. The other way round a crash between the two loses
//     the chunk.
//   - An aggregator purges a part only after the file that holds its rows is
//     durable and it has written the ledger since. Until then the log is what a
//     restart begins with, and so is the next one that takes the job.
//   - A delivery is kept alive from arrival until it is settled, so the broker
//     hands it to someone else only if this process dies or is cut off.
//   - Publishing waits where a stream is full or the broker is away; it never
//     drops. Only the context, or an error that waiting cannot heal, ends it.
//
// Stored messages are untrusted: subjects that are not ours are put aside, and
// the Parse methods check that a payload belongs to its subject.
//
// A Conn and what is made from it are safe for concurrent use. Every goroutine
// that the package starts ends with the Close of the value that started it.
package queue

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors that callers tell apart.
var (
	ErrClosed      = errors.New("connection to the broker is closed")
	ErrConflict    = errors.New("the record differs")
	ErrDenied      = errors.New("permission denied by the broker")
	ErrNotFound    = errors.New("not found")
	ErrOptions     = errors.New("cannot connect that way")
	ErrTooLarge    = errors.New("message too large for the broker")
	ErrUnreachable = errors.New("broker unreachable")
)

// headerBudget is kept free in a message for its headers, which count towards
// the broker's maximum payload: the message id (a job id, two numbers, and what
// makes it unique) takes at most 130 bytes.
const headerBudget = 256

// reconnectWait is the pause between two attempts to reach the broker again.
const reconnectWait = 250 * time.Millisecond

// A server that is gone without a word, such as with its machine or its cable, is given
// up after it has left so many pings without an answer, so long after each other: within
// 15 s. The client's own times come to 6 minutes.
const (
	pingInterval = 5 * time.Second
	pingsOut     = 2
)

// Options says how to connect. One of Server and URL is set; what concerns
// security is for a URL.
type Options struct {
	Server  *Server       // a broker in this process
	URL     string        // a broker elsewhere, or several separated by commas; no secrets in it
	Name    string        // what the broker's own tools show for this connection
	Role    Role          // whose permissions it needs; empty where the broker does not tell roles apart
	Timeout time.Duration // how long one request may take, and the last of several attempts at it; 0 means 10 s
	Log     *slog.Logger  // nil means no logs

	Credentials string // file that says who we are: .creds, nkey seed, or user:password
	CA          string // PEM file of the authorities that vouch for the broker, instead of the system's
	Cert, Key   string // PEM files of the client's certificate, where the broker wants one
	Insecure    bool   // also speak unencrypted with other hosts
}

// Conn is a connection to a broker. It reconnects on its own, without end.
type Conn struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	log     *slog.Logger
	timeout time.Duration
	life    context.Context // ends when nc is closed, for good

	mu      sync.Mutex
	link    context.Context // ends, and is replaced, when requests under way have become pointless
	cut     context.CancelFunc
	denied  error // latest permission error of the broker
	denials int   // how many there were
	streams map[string]jetstream.Stream
	bucket  jetstream.KeyValue
}

// Connect connects to a broker. It does not wait for one that is not there.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	c := &Conn{
		log:     o.Log,
		timeout: o.Timeout,
		streams: make(map[string]jetstream.Stream),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.timeout == 0 {
		c.timeout = 10 * time.Second
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	options, err := c.natsOptions(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("connect to the broker: %w: %w", ErrOptions, err)
	}
	life, end := context.WithCancel(context.Background())
	c.life = life
	c.link, c.cut = context.WithCancel(life)
	options = append(options, nats.ClosedHandler(func(*nats.Conn) { end() }))
	nc, err := nats.Connect(o.URL, options...)
	if err != nil {
		end()
		return nil, fmt.Errorf("connect to the broker: %w", explainConnect(err))
	}
	c.nc = nc
	if c.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(c.timeout)); err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	return c, nil
}

// explainConnect puts the reason why there is no connection into our terms.
func explainConnect(err error) error {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("%w: %w", ErrDenied, err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: %w: %w", ErrUnreachable, errNoTLS, err)
	case errors.Is(err, nats.ErrTLS) && !untrusted:
		// A broker that misses or mistrusts our certificate may just hang up.
		return fmt.Errorf("%w: %w (does it want a client certificate, or another one?)", ErrUnreachable, err)
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}

func (c *Conn) natsOptions(ctx context.Context, o Options) ([]nats.Option, error) {
	o.Timeout = c.timeout // of dialling, too
	if deadline, ok := ctx.Deadline(); ok {
		o.Timeout = min(o.Timeout, time.Until(deadline))
	}
	security, err := securityOptions(o)
	if err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name(o.Name),
		nats.Timeout(o.Timeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		// Nothing is buffered while the broker is away: who publishes waits for
		// the acknowledgement, and sends again.
		nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.interrupt()
			if err != nil {
				c.log.Warn("broker connection lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.log.Info("broker connection restored") }),
		nats.ErrorHandler(c.asyncError),
	}
	if o.Server != nil {
		options = append(options, nats.InProcessServer(o.Server))
	} else {
		options = append(options, nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(pingsOut))
	}
	if o.Role != "" {
		options = append(options, nats.CustomInboxPrefix(o.Role.inbox()))
	}
	return append(options, security...), nil
}

// asyncError hears what no request is answered with. A denied publish, above
// all, looks like a timeout to the one who waits for it.
func (c *Conn) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		c.log.Warn("broker error", "error", err)
		return
	}
	c.log.Error("broker denies permission", "error", err)
	c.mu.Lock()
	c.denied = err
	c.denials++
	c.mu.Unlock()
	c.interrupt()
}

// interrupt ends the requests under way, so that they fail or are sent again
// now rather than after their timeout.
func (c *Conn) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut()
	c.link, c.cut = context.WithCancel(c.life)
}

// Closed returns a channel that is closed when the connection is closed for
// good: by Close, or by a broker that no longer accepts us. Unless it was Close,
// there is no way on from there but to stop the process.
func (c *Conn) Closed() <-chan struct{} { return c.life.Done() }

// Err returns why the connection was closed, where the broker was the reason.
func (c *Conn) Err() error {
	if err := c.nc.LastError(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// MaxData returns the largest payload that the broker accepts, in bytes.
func (c *Conn) MaxData() int { return int(c.nc.MaxPayload()) - headerBudget }

// Close closes the connection. What was published asynchronously, such as a
// settled delivery, is sent before.
func (c *Conn) Close() {
	// If the broker is away there is nothing to flush to: the error says only that.
	_ = c.nc.FlushTimeout(time.Second)
	c.nc.Close()
	<-c.life.Done()
}
