package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// natsServer is what main of the nats-server command does, so that the tests
// have the real server as a process without building another binary.
func natsServer() {
	flags := flag.NewFlagSet("nats-server", flag.ExitOnError)
	options, err := server.ConfigureOptions(flags, os.Args[1:], server.PrintServerAndExit, flags.Usage, server.PrintTLSHelpAndDie)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(options)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
}

// processPatience bounds every wait for a line or an end of a process.
const processPatience = 2 * time.Minute

// process is a command that runs beside the test. Its standard error is kept,
// and its lines are there to be waited for.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	out  strings.Builder // standard output; to be read after the end
	done chan struct{}   // closed when it has ended

	mu    sync.Mutex
	lines []string
	grown chan struct{} // closed, and replaced, with each line
}

// start starts a command in dir. The test's end kills it, and shows what it said
// last if the test has failed. Each line of standard
// error also goes to heard, if that is not nil.
func start(t testing.TB, heard func(line string), dir, name string, args ...string) *process {
	t.Helper()
	path, err := exec.LookPath(name) // testscript.Main put it there
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: strings.Join(append([]string{name}, args...), " "), cmd: exec.Command(path, args...), done: make(chan struct{}), grown: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Stdout = &p.out
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.listen(stderr, heard)
		_ = p.cmd.Wait() // exit tells
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said last:\n%s", p.name, p.log())
		}
	})
	return p
}

func (p *process) listen(stderr io.Reader, heard func(string)) {
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
		if heard != nil {
			heard(lines.Text())
		}
	}
}

// await waits for the n-th line on standard error that has the text.
func (p *process) await(text string, n int) string {
	p.t.Helper()
	late := time.After(processPatience)
	for {
		p.mu.Lock()
		grown := p.grown
		count, found := 0, ""
		for _, line := range p.lines {
			if strings.Contains(line, text) {
				if count++; count == n {
					found = line
				}
			}
		}
		p.mu.Unlock()
		if count >= n {
			return found
		}
		select {
		case <-grown:
		case <-p.done:
			select {
			case <-grown: // its last words
				continue
			default:
			}
			p.t.Fatalf("%s ended (%v) before %q:\n%s", p.name, p.cmd.ProcessState, text, p.log())
		case <-late:
			p.t.Fatalf("%s does not say %q:\n%s", p.name, text, p.log())
		}
	}
}

// count returns how many lines on standard error have the text so far.
func (p *process) count(text string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-50):], "\n")
}

// exit waits for the end and returns the exit code, -1 after a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(processPatience):
		p.kill()
		p.t.Fatalf("%s does not end:\n%s", p.name, p.log())
	}
	return p.cmd.ProcessState.ExitCode()
}

// succeed waits for a good end.
func (p *process) succeed() {
	p.t.Helper()
	if code := p.exit(); code != 0 {
		p.t.Fatalf("%s ends with %d:\n%s", p.name, code, p.log())
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// cluster is a broker with flipmill's processes around it, all in one folder.
type cluster struct {
	t      testing.TB
	dir    string
	url    string
	broker *process
	heard  func(line string) // hears every line of every process; may be nil
}

// newCluster starts a NATS server, as deployments/nats has it.
func newCluster(t testing.TB, heard func(string)) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), url: "nats://" + freeAddresses(t, 1)[0], heard: heard}
	c.startBroker()
	return c
}

// The ports that freeAddresses gives. They begin anywhere, since another run of the
// tests may be under way, and go up, since tests run side by side.
var (
	firstPort  = 10_000 + rand.Int32N(20_000)
	portsGiven atomic.Int32
)

// freeAddresses returns addresses on this host that nobody uses. No other call returns
// them, and they are below the ports that connections are given, so that nobody
// will.
func freeAddresses(t testing.TB, n int) (addresses []string) {
	t.Helper()
	for len(addresses) < n {
		address := fmt.Sprint("127.0.0.1:", firstPort+portsGiven.Add(1))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		check(t, l.Close())
		addresses = append(addresses, address)
	}
	return addresses
}

// startBroker starts the server, from the second time on where it was before.
func (c *cluster) startBroker() {
	c.t.Helper()
	conf, err := filepath.Abs("../../deployments/nats/server.conf")
	check(c.t, err)
	host, port, err := net.SplitHostPort(strings.TrimPrefix(c.url, "nats://"))
	check(c.t, err)
	c.broker = start(c.t, nil, c.dir, "nats-server", "-c", conf, "-a", host, "-p", port)
	c.broker.await("Server is ready", 1)
}

// start starts a verb that talks to the broker.
func (c *cluster) start(verb string, args ...string) *process {
	c.t.Helper()
	return start(c.t, c.heard, c.dir, "flipmill", slices.Concat([]string{verb, "--nats-url", c.url, "--log-level", "debug"}, args)...)
}

// run runs a verb to its end, which must be a good one.
func (c *cluster) run(verb string, args ...string) *process {
	c.t.Helper()
	p := c.start(verb, args...)
	p.succeed()
	return p
}

// writeSmallBoards writes a corpus of 2×2 boards that fills a number of chunks,
// the last one in part.
func writeSmallBoards(t testing.TB, path string, chunks int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for k := range chunks*65_536 - 1000 {
		// A period that no chunk's length is a multiple of: all chunks differ.
		switch k % 65_537 {
		case 65_000:
			fmt.Fprintln(w, "01x0")
		default:
			fmt.Fprintf(w, "%04b\n", k%65_537%16)
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// smallJob is the corpus of most tests with processes: 6 parts of 2 chunks.
var smallJob = []string{"boards.txt", "--size", "2x2", "--part-chunks", "2"}

// calm returns the files of smallJob's dataset as flipmill run leaves them.
func calm(t *testing.T, dir string) map[string]string {
	t.Helper()
	writeSmallBoards(t, filepath.Join(dir, "boards.txt"), 12)
	flipmill(t, dir, append([]string{"run", "-o", "calm"}, smallJob...)...)
	return hashes(t, filepath.Join(dir, "calm", "job=boards"))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
