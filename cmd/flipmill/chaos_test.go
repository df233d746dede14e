//go:build cluster

package main

import (
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	kills = flag.Int("kills", 6, "how many processes TestChaos kills")
	seed  = flag.Uint64("seed", 0, "replays the choices of a TestChaos; 0: others each time")
)

// TestChaos kills random processes of a job, the NATS server among them, with
// SIGKILL, and starts each again: the dataset is that of an undisturbed run. When
// a job is done before all kills are, another one begins.
func TestChaos(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("%d kills; -kills=%d -seed=%d makes the same choices again", *kills, *kills, *seed)
	dir := t.TempDir()
	want := calm(t, dir)
	plan := blows(*seed, *kills)
	for round := 1; len(plan) > 0; round++ {
		c := newChaos(t)
		if err := os.Link(filepath.Join(dir, "boards.txt"), filepath.Join(c.dir, "boards.txt")); err != nil {
			t.Fatal(err)
		}
		killed := c.round(plan)
		plan = plan[killed:]
		wantSame(t, hashes(t, filepath.Join(c.dir, "far", "job=boards")), want)
		if t.Failed() {
			t.Fatalf("job %d has another dataset after these kills: %s", round, strings.Join(c.victims, ", "))
		}
		t.Logf("job %d: %s", round, strings.Join(c.victims, ", "))
		if killed == 0 {
			t.Fatalf("job %d was done before anything could be killed", round)
		}
	}
}

// blow is a choice: after so many steps forward the process of that name is killed.
type blow struct {
	after int
	name  string
}

// blows makes the choices of a seed. They are made beforehand, so that they do not
// depend on how many of them one job lasts for.
func blows(seed uint64, kills int) []blow {
	rng := rand.New(rand.NewPCG(seed, 0))
	names := append(slices.Sorted(maps.Keys(chaosCommands())), theBroker)
	plan := make([]blow, kills)
	for i := range plan {
		plan[i] = blow{1 + rng.IntN(3), names[rng.IntN(len(names))]}
	}
	return plan
}

// theBroker is the process that no command of chaos starts.
const theBroker = "nats-server"

// chaosCommands are those that are killed besides, by the names of their processes.
func chaosCommands() map[string][]string {
	return map[string][]string{
		"aggregator 1": {"aggregator", "-o", "far", "--lease", "2s", "--memory", "1MiB"},
		"aggregator 2": {"aggregator", "-o", "far", "--lease", "2s"},
		"submit":       append([]string{"submit", "--wait"}, smallJob...),
		"worker 1":     {"worker", "--workers", "1"},
		"worker 2":     {"worker", "--workers", "2"},
	}
}

// chaos is a cluster whose processes are killed.
type chaos struct {
	*cluster
	commands map[string][]string // by the name of the process, all but the broker
	running  map[string]*process
	progress chan struct{} // something has come forward; never full
	victims  []string
}

func newChaos(t *testing.T) *chaos {
	c := &chaos{commands: chaosCommands(), running: map[string]*process{}, progress: make(chan struct{}, 1<<16)}
	c.cluster = newCluster(t, func(line string) { tellProgress(line, c.progress) })
	return c
}

// tellProgress tells of a line that says that a chunk or a part has come through.
func tellProgress(line string, progress chan<- struct{}) {
	if strings.Contains(line, "chunk solved") || strings.Contains(line, "part committed") {
		progress <- struct{}{}
	}
}

// round drives one job to its end, kills processes as planned, as many as it lasts for,
// and returns how many those were.
func (c *chaos) round(plan []blow) int {
	c.t.Helper()
	c.run("setup", "--ack-wait", "1s") // a killed worker's tasks come back soon
	for name := range c.commands {
		c.restart(name)
	}
	for forward := 0; ; {
		select {
		case <-c.progress:
			forward++
			if next := len(c.victims); next < len(plan) && forward >= plan[next].after {
				c.strike(plan[next].name)
				forward = 0
			}
		case <-c.running["submit"].done:
			if c.running["submit"].exit() == 0 {
				c.stop()
				return len(c.victims)
			}
			c.revive("submit")
		case <-c.running["aggregator 1"].done:
			c.revive("aggregator 1")
		case <-c.running["aggregator 2"].done:
			c.revive("aggregator 2")
		case <-c.running["worker 1"].done:
			c.revive("worker 1")
		case <-c.running["worker 2"].done:
			c.revive("worker 2")
		case <-time.After(processPatience):
			for name, p := range c.running {
				c.t.Logf("%s:\n%s", name, p.log())
			}
			c.t.Fatalf("nothing comes forward after the kills %v", c.victims)
		}
	}
}

func (c *chaos) strike(name string) {
	c.victims = append(c.victims, name)
	if name == theBroker {
		c.broker.kill()
		c.startBroker()
		return
	}
	c.running[name].kill()
	c.restart(name)
}

func (c *chaos) restart(name string) {
	args := c.commands[name]
	c.running[name] = c.start(args[0], args[1:]...)
}

// revive starts a process again that came up while the broker was away. Nothing
// else ends one.
func (c *chaos) revive(name string) {
	c.t.Helper()
	p := c.running[name]
	if code := p.exit(); code != int(exitBroker) {
		c.t.Fatalf("%s ends with %d after the kills %v:\n%s", name, code, c.victims, p.log())
	}
	c.restart(name)
}

// stop ends everything: the next job has processes of its own.
func (c *chaos) stop() {
	for _, p := range c.running {
		p.kill()
	}
	c.broker.kill()
}
