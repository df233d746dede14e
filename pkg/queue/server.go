package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// stockMaxPayload is the maximum payload of a NATS server as it comes.
const stockMaxPayload = 1 << 20

// startTimeout is how long a server may take to recover its store.
const startTimeout = time.Minute

// ServerOptions says how to run a broker in this process.
type ServerOptions struct {
	StoreDir   string // where the streams are kept; created if need be, used by one process at a time
	Listen     string // host:port for TCP clients; empty means none, port 0 any free one
	MaxPayload int    // bytes of one message with its headers; 0 means 1 MiB, as a stock server has
	Fresh      bool   // begin with an empty store, whatever an earlier process left there, and remove it at Close
	SyncAlways bool   // sync every message to disk instead of once a second
}

// ErrInUse says that another process has a broker on the same store.
var ErrInUse = errors.New("in use by another process")

// Server is a broker in this process. It listens on no port unless told to,
// installs no signal handlers, and writes no logs. Streams in memory (see Limits)
// need no room on its disk.
type Server struct {
	lock   *os.File
	remove string // directory to remove at Close, if any
	ns     *server.Server
}

// StartServer starts a broker and waits until it can be connected to.
func StartServer(o ServerOptions) (*Server, error) {
	options, err := natsServerOptions(o)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	s, err := startServer(options, o.Fresh)
	if err != nil {
		return nil, fmt.Errorf("start broker: %w", err)
	}
	return s, nil
}

func startServer(options *server.Options, fresh bool) (*Server, error) {
	lock, err := lockDir(options.StoreDir)
	if err != nil {
		return nil, err
	}
	s := &Server{lock: lock}
	if err := s.start(options, fresh); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(options *server.Options, fresh bool) (err error) {
	if fresh {
		s.remove = options.StoreDir
		if err := os.RemoveAll(filepath.Join(options.StoreDir, server.JetStreamStoreDir)); err != nil {
			return fmt.Errorf("empty the store: %w", err)
		}
	}
	if s.ns, err = server.NewServer(options); err != nil {
		return err
	}
	s.ns.Start()
	if !s.ns.ReadyForConnections(startTimeout) {
		return fmt.Errorf("not ready after %s; is the store %s sound and the disk not full?", startTimeout, options.StoreDir)
	}
	return nil
}

// InProcessConn connects to the server without a port. It is for the NATS client.
func (s *Server) InProcessConn() (net.Conn, error) { return s.ns.InProcessConn() }

func natsServerOptions(o ServerOptions) (*server.Options, error) {
	if o.StoreDir == "" {
		return nil, errors.New("no store directory")
	}
	options := &server.Options{
		ServerName: "flipmill",
		DontListen: o.Listen == "",
		JetStream:  true,
		StoreDir:   o.StoreDir,
		MaxPayload: stockMaxPayload,
		// Streams in memory have limits of their own (see Limits), which are seldom
		// reached. Left to itself the server would refuse them where they add up to
		// more than three quarters of the machine's memory, or of GOMEMLIMIT.
		JetStreamMaxMemory: 1 << 50,
		NoSigs:             true,
		NoLog:              true,
		// A power failure may cost the last second of acknowledged messages,
		// which a job can be driven through again to replace.
		SyncInterval: time.Second,
		SyncAlways:   o.SyncAlways,
	}
	if o.MaxPayload != 0 {
		options.MaxPayload = int32(o.MaxPayload)
	}
	if o.Listen == "" {
		return options, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address: %w", err)
	}
	options.Host = host
	if options.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("listen address %s: port: %w", o.Listen, err)
	}
	if options.Port == 0 {
		options.Port = server.RANDOM_PORT
	}
	return options, nil
}

// lockName is the file in a store that the process which uses it has locked.
const lockName = "flipmill.lock"

// lockDir makes sure that this process alone uses a store: two servers on one
// would destroy it without an error.
func lockDir(dir string) (*os.File, error) {
	for tries := 0; ; tries++ {
		f, err := lockFile(dir)
		if errors.Is(err, fs.ErrNotExist) && tries < 100 {
			continue // removed since it was made; in /proc it is never there
		}
		if err != nil {
			return nil, err
		}
		// Whoever held the lock before may have removed the file since we opened
		// it: then what we have locked is no longer what others will find.
		ours, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if now, err := os.Stat(f.Name()); err == nil && os.SameFile(ours, now) {
			return f, nil
		}
		f.Close()
	}
}

func lockFile(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("store %s is %w", dir, ErrInUse)
		}
		return nil, fmt.Errorf("lock store %s: %w", dir, err)
	}
	return f, nil
}

// URL returns where TCP clients reach the server.
func (s *Server) URL() string { return s.ns.ClientURL() }

// Close stops the server and lets go of its store, of which a fresh one is
// removed.
func (s *Server) Close() {
	if s.ns != nil {
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
	}
	if s.remove != "" {
		// What cannot be removed is in nobody's way: the next fresh start tries again.
		_ = os.RemoveAll(filepath.Join(s.remove, server.JetStreamStoreDir))
		removeLocked(s.remove)
		s.remove = ""
	}
	s.lock.Close()
}

// removeLocked removes a directory with nothing but our lock in it, if it is so.
// The lock goes first: from then on somebody else may begin to use the directory,
// which then stays.
func removeLocked(dir string) {
	_ = os.Remove(filepath.Join(dir, lockName))
	_ = os.Remove(dir)
}
