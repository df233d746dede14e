// Package deployments_test runs what the files of this folder say: as processes
// of this host where containers would run, each service with an address of its
// own on the loopback; and as far as parsing goes where only a cluster would do.
// The processes are the real flipmill and the real nats-server, built from this
// repository and from the version in its go.mod.
package deployments_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "flipmill-deployments-*")
		if err == nil {
			defer os.RemoveAll(dir)
			err = prepare(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// prepare builds the programs, and forgets what the developer's own environment
// says about flipmill.
func prepare(dir string) error {
	build := exec.Command("go", "build", "-o", dir, "./cmd/flipmill", "github.com/nats-io/nats-server/v2")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", build, err, out)
	}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "FLIPMILL_") || name == "NATS_URL" {
			os.Unsetenv(name)
		}
	}
	return os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// TestSourcesAreSeen reads the sources of the programs: Go remembers a passed
// test until a file that the test itself read changes.
func TestSourcesAreSeen(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.':
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") || strings.HasPrefix(d.Name(), "go."):
			seen++
			_, err = os.ReadFile(name)
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Fatalf("%d sources, error %v", seen, err)
	}
}

// process is a command that runs beside the test. The test's end kills it.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu  sync.Mutex
	out bytes.Buffer // both outputs
}

// Write keeps what the process writes.
func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// start starts a program with nothing but the given environment.
func start(t testing.TB, dir string, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append([]string{}, env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // exit tells
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.done
		if t.Failed() {
			t.Logf("%v:\n%s", p.cmd, p.log())
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%v does not end:\n%s", p.cmd, p.log())
	}
	return p.cmd.ProcessState.ExitCode()
}

// want waits for the end, which must have a certain exit code.
func (p *process) want(code int) {
	p.t.Helper()
	if got := p.exit(); got != code {
		p.t.Fatalf("%v ends with %d, want %d:\n%s", p.cmd, got, code, p.log())
	}
}

// until tries again and again, until there is no error.
func until(t testing.TB, try func() error) {
	t.Helper()
	late, again := time.After(patience), time.NewTicker(100*time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatal(err)
		}
	}
}

// hosts gives each name an address of its own on the loopback, as a network of
// containers does, so that no port has to change.
type hosts struct {
	prefix  string // of this test
	names   []string
	aliases map[string]string // to addresses
}

// The networks that tests have. They begin anywhere, since another run of the tests may
// be under way.
var (
	firstNetwork  = rand.Uint32N(250 * 250)
	networksGiven atomic.Uint32
)

func newHosts() *hosts {
	n := (firstNetwork + networksGiven.Add(1)) % (250 * 250)
	return &hosts{prefix: fmt.Sprintf("127.%d.%d.", 1+n/250, n%250), aliases: map[string]string{}}
}

// address returns the address of a name, which may be new.
func (h *hosts) address(name string) string {
	for i, n := range h.names {
		if n == name {
			return h.prefix + fmt.Sprint(i+1)
		}
	}
	h.names = append(h.names, name)
	return h.prefix + fmt.Sprint(len(h.names))
}

// alias gives an address one more name.
func (h *hosts) alias(name, of string) {
	address := h.address(of)
	h.aliases[name] = address
}

// local writes a text of the container called own for this host: names become
// addresses, all interfaces its own one, and paths those of its files here.
func (h *hosts) local(text, own string, files map[string]string) string {
	for path, here := range files {
		text = regexp.MustCompile(`(^|[=:" ])`+regexp.QuoteMeta(path)+`($|[/," ])`).ReplaceAllString(text, "${1}"+here+"${2}")
	}
	text = regexp.MustCompile(`\b(0\.0\.0\.0|127\.0\.0\.1)\b`).ReplaceAllString(text, h.address(own))
	known := maps.Clone(h.aliases)
	for _, name := range h.names {
		known[name] = h.address(name)
	}
	for name, address := range known {
		text = strings.ReplaceAll(text, "//"+name+":", "//"+address+":")
	}
	return text
}

// hashes returns the SHA-256 of each file below a folder.
func hashes(t testing.TB, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		sums[strings.TrimPrefix(name, dir)] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
