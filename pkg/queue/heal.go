package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A stream whose file could not be written, on a full disk above all, takes no
// more messages until its server is started again. For a broker of its own the
// process does that itself, as soon as there is room; whatever was not
// acknowledged is sent again then.

// healRoom is how much room the disk must have before the broker starts again.
const healRoom = 4 << 20

// healPause is how often that is looked at.
const healPause = 500 * time.Millisecond

var errBrokerDown = errors.New("the broker waits for room on its disk")

// InProcessConn connects to the server without a port. It is for the NATS client.
func (s *Server) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errBrokerDown
	}
	return s.ns.InProcessConn()
}

// heal starts the server again after each trouble, until ctx ends.
func (s *Server) heal(ctx context.Context, options *server.Options, log *slog.Logger) {
	for {
		select {
		case <-s.trouble:
		case <-ctx.Done():
			return
		}
		log.Warn("the broker cannot write to its store and waits for room on the disk, nothing is lost", "store", options.StoreDir)
		s.mu.Lock()
		s.down = true
		s.mu.Unlock()
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
		for err := errBrokerDown; err != nil; {
			select {
			case <-time.After(healPause):
			case <-ctx.Done():
				return
			}
			if err = s.restart(options); err != nil && !errors.Is(err, errBrokerDown) {
				log.Warn("the broker does not start again", "error", err)
			}
		}
		log.Info("the broker is there again")
	}
}

// restart starts the server on its store, if there is room.
func (s *Server) restart(options *server.Options) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(options.StoreDir, &disk); err != nil {
		return fmt.Errorf("look at the disk of %s: %w", options.StoreDir, err)
	}
	if disk.Bavail*uint64(disk.Bsize) < healRoom {
		return errBrokerDown
	}
	ns, err := s.launch(options.Clone())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ns, s.down = ns, err != nil
	return err
}

// launch starts a server and waits until it can be connected to.
func (s *Server) launch(options *server.Options) (*server.Server, error) {
	ns, err := server.NewServer(options)
	if err != nil {
		return nil, err
	}
	ns.SetLogger(ear{s.trouble}, false, false)
	ns.Start()
	if !ns.ReadyForConnections(startTimeout) {
		ns.Shutdown()
		return nil, fmt.Errorf("not ready after %s; is the store %s sound and the disk not full?", startTimeout, options.StoreDir)
	}
	return ns, nil
}

// ear listens to the server's log for the one thing that nothing else tells in
// time: that it has stopped writing. TestFullDisk would notice other words.
type ear struct{ trouble chan<- struct{} }

// Errorf hears an error.
func (e ear) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !strings.Contains(text, "Critical write error") && !strings.Contains(text, "DISABLED") {
		return
	}
	select {
	case e.trouble <- struct{}{}:
	default: // it is known already
	}
}

// The rest is of no use to anybody.

// Noticef ignores a message.
func (ear) Noticef(string, ...any) {}

// Warnf ignores a message.
func (ear) Warnf(string, ...any) {}

// Fatalf ignores a message: StartServer returns the error.
func (ear) Fatalf(string, ...any) {}

// Debugf ignores a message.
func (ear) Debugf(string, ...any) {}

// Tracef ignores a message.
func (ear) Tracef(string, ...any) {}
