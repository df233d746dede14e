package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/daemon"
)

// childEnv makes the test binary play the daemon whose signals are tested.
const childEnv = "DAEMON_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		os.Exit(child(mode))
	}
	goleak.VerifyTestMain(m)
}

// child reports each step on stdout and ends as a command would. It ends after
// draining ("drains"), goes on until it is aborted ("works"), or does not even
// end then ("hangs").
func child(mode string) int {
	drain, abort, stop := daemon.Context(context.Background(), 0)
	defer stop()
	fmt.Println("ready")
	<-drain.Done()
	fmt.Println("drain:", context.Cause(drain))
	ended := drain
	if mode != "drains" {
		<-abort.Done()
		fmt.Println("abort:", context.Cause(abort))
		ended = abort
	}
	if mode == "hangs" {
		io.Copy(io.Discard, os.Stdin) // open for as long as the test lives
	}
	if s, ok := errors.AsType[daemon.Signal](context.Cause(ended)); ok {
		return s.ExitCode()
	}
	return 1
}

// TestSignals sends real signals to a real process, each one when the process
// has reported the effect of the last.
func TestSignals(t *testing.T) {
	const drainInt, drainTerm = "drain: stopped by signal: interrupt", "drain: stopped by signal: terminated"
	const abortInt, abortTerm = "abort: stopped by signal: interrupt", "abort: stopped by signal: terminated"
	for _, test := range []struct {
		name    string
		mode    string
		signals []syscall.Signal
		reports []string // one after each signal; empty: the process ends
		exit    string
	}{
		{"interrupt drains", "drains", []syscall.Signal{syscall.SIGINT}, []string{drainInt}, "exit status 130"},
		{"terminate drains", "drains", []syscall.Signal{syscall.SIGTERM}, []string{drainTerm}, "exit status 143"},
		{"second interrupt aborts", "works", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}, []string{drainInt, abortInt}, "exit status 130"},
		{"terminate after interrupt aborts", "works", []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, []string{drainInt, abortTerm}, "exit status 143"},
		{"third signal kills", "hangs", []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM}, []string{drainTerm, abortTerm, ""}, "signal: terminated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+test.mode)
			cmd.Stderr = os.Stderr
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			expect := func(want string) {
				t.Helper()
				if lines.Scan(); lines.Text() != want {
					t.Errorf("the process says %q, want %q", lines.Text(), want)
				}
			}
			expect("ready")
			for i, s := range test.signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				expect(test.reports[i])
			}
			if err := cmd.Wait(); err == nil || err.Error() != test.exit {
				t.Errorf("the process ended with %v, want %s", err, test.exit)
			}
		})
	}
}

func TestStopEndsBoth(t *testing.T) {
	drain, abort, stop := daemon.Context(t.Context(), 0)
	if drain.Err() != nil || abort.Err() != nil {
		t.Error("a context is done before anything happened")
	}
	stop()
	stop() // harmless
	if context.Cause(drain) != context.Canceled || context.Cause(abort) != context.Canceled {
		t.Errorf("causes are %v and %v, want both canceled", context.Cause(drain), context.Cause(abort))
	}
}

func TestParentEndsBoth(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	drain, abort, stop := daemon.Context(parent, 0)
	defer stop()
	cause := errors.New("enough")
	cancel(cause)
	<-abort.Done()
	<-drain.Done()
	if context.Cause(drain) != cause || context.Cause(abort) != cause {
		t.Errorf("causes are %v and %v, want the parent's", context.Cause(drain), context.Cause(abort))
	}
}

func TestLogger(t *testing.T) {
	var text, lines strings.Builder
	daemon.NewLogger(&text, "text", slog.LevelWarn).Info("quiet")
	daemon.NewLogger(&text, "text", slog.LevelInfo).Info("part committed", "part", 3)
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `level=INFO msg="part committed" part=3`) {
		t.Errorf("text is %q", got)
	}
	daemon.NewLogger(&lines, "json", slog.LevelDebug).Debug("part committed", "part", 3)
	var line struct {
		Level, Msg string
		Part       int
	}
	if err := json.Unmarshal([]byte(lines.String()), &line); err != nil || line.Level != "DEBUG" || line.Msg != "part committed" || line.Part != 3 {
		t.Errorf("json is %q, error %v", lines.String(), err)
	}
}
