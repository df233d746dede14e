package protocol_test

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var (
	schedules = flag.Int("schedules", 2500, "how many schedules TestSimulation takes")
	seed      = flag.Uint64("seed", 1, "the first of them; 0: others each time")
)

// mutation is a fault in a role, which the simulation must find.
type mutation int

const (
	none       mutation = iota
	purgeFirst          // results are purged before their part is durable
	ackFirst            // a task is acknowledged before its result is stored
	noWindow            // chunks are published whatever is committed
	sealFirst           // a job is sealed before all tasks are stored
	offset              // an aggregator begins where the log ends
	noLease             // an aggregator writes whatever others have written
)

// everything is no limit of the faults in a schedule.
const everything = 1 << 30

// TestSimulation drives the three roles' values over a model of the broker,
// through schedules in which it delays, loses, doubles and reorders messages,
// comes back with another store, and processes die. Whatever happens, each job
// ends, with every chunk in exactly one part.
func TestSimulation(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	for k := range uint64(*schedules) {
		if err := newWorld(first+k, everything, none).run(); err != nil {
			explain(t, first+k)
			t.Fatalf("schedule %d: %v", first+k, err)
		}
	}
	t.Logf("%d schedules from -seed=%d on", *schedules, first)
}

// explain shows a schedule that goes wrong, with as few faults as it takes.
func explain(t *testing.T, seed uint64) {
	t.Helper()
	limit := everything
	for fewer := range 200 {
		if newWorld(seed, fewer, none).run() != nil {
			limit = fewer
			break
		}
	}
	w := newWorld(seed, limit, none)
	w.trace = t.Logf
	_ = w.run() // its problem is the last line
}

// TestSimulationFinds shows that the simulation has teeth: it finds each of these
// faults in a role within a few schedules.
func TestSimulationFinds(t *testing.T) {
	const enough = 400
	for name, wrong := range map[string]mutation{
		"purge before durable":       purgeFirst,
		"acknowledge before stored":  ackFirst,
		"publish beyond the window":  noWindow,
		"seal before all are stored": sealFirst,
		"skip what is in the log":    offset,
		"write what others hold":     noLease,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(enough) {
				if err := newWorld(seed, everything, wrong).run(); err != nil {
					t.Logf("schedule %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not found in %d schedules", enough)
		})
	}
}
