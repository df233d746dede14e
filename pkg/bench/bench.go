// Package bench measures how fast the rooms of flipmill are, each by itself and all
// of them together, and compares each with a baseline: something that nobody who
// does the same could do without, or the plain way to do it. So a figure can be
// judged without knowing the machine.
//
// Terms: a [Loop] is what is timed, over and over; a [Case] is a loop with the loop
// that is its baseline. They take turns, so that whatever else the machine does
// meets both, and the figures are medians of the turns.
//
//	for _, c := range bench.Cases(bench.Solver) {
//		r, err := c.Measure(ctx, bench.Options{Rounds: 5, Turn: 200 * time.Millisecond, Dir: dir})
//		...
//	}
//
// Boards are those of pkg/generate with fixed seeds: the same on every machine.
// Who changes what a case does gives it another name, so that nobody compares the
// figures of two things.
package bench

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// The subjects, in the order in which a board meets them.
const (
	Solver = "solver" // boards solved
	Parse  = "parse"  // a corpus read
	Encode = "encode" // boards and answers made a row group
	Stitch = "stitch" // row groups copied into the files of a part
	Queue  = "queue"  // messages carried by the broker
	E2E    = "e2e"    // flipmill run
)

// Subjects returns the names of all subjects.
func Subjects() []string { return []string{Solver, Parse, Encode, Stitch, Queue, E2E} }

// Options says how to measure.
type Options struct {
	Rounds int                                             // turns of each loop
	Turn   time.Duration                                   // about how long a turn takes; that of E2E follows from it
	Dir    string                                          // an existing folder for files
	Run    func(ctx context.Context, args ...string) error // flipmill run in this process; for E2E alone
}

// Loop is what is timed.
type Loop struct {
	Do    func() error
	Units int // how many units, such as boards, one Do handles
}

// Case is something to be measured, and its baseline.
type Case struct {
	Subject  string
	Name     string
	Unit     string // what is counted
	Baseline string // what the baseline does; empty where there is none
	prepare  func(ctx context.Context, o Options) (*bench, error)
}

// bench is a case made ready.
type bench struct {
	loop, baseline Loop
	bytes          float64      // bytes in or out for each unit, which are worth knowing
	close          func() error // may be nil
	whole          bool         // one Do is one turn
}

// Result is what a case has come to. Times are medians.
type Result struct {
	Subject  string  `json:"subject"`
	Case     string  `json:"case"`
	Unit     string  `json:"unit"`
	Rate     float64 `json:"per_second"`
	CPU      float64 `json:"cpu_ns_per_unit"` // of all threads of this process
	Bytes    float64 `json:"bytes_per_unit,omitempty"`
	Baseline string  `json:"baseline,omitempty"`
	BaseRate float64 `json:"baseline_per_second,omitempty"`
	BaseCPU  float64 `json:"baseline_cpu_ns_per_unit,omitempty"`
	Ratio    float64 `json:"cpu_ratio,omitempty"` // CPU time of the case by that of its baseline, turn by turn
	Rounds   int     `json:"rounds"`
}

// Cases returns the cases of a subject.
func Cases(subject string) []Case {
	switch subject {
	case Solver:
		return solverCases()
	case Parse:
		return parseCases()
	case Encode:
		return encodeCases()
	case Stitch:
		return stitchCases()
	case Queue:
		return queueCases()
	case E2E:
		return endToEndCases()
	}
	return nil
}

// Measure takes as many turns as wanted. It returns early, with an error, when ctx
// ends.
func (c Case) Measure(ctx context.Context, o Options) (result *Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("measure %s %s: %w", c.Subject, c.Name, err)
		}
	}()
	b, err := c.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if b.close != nil {
			if end := b.close(); err == nil {
				err = end
			}
		}
	}()
	loops := []Loop{b.loop}
	if c.Baseline != "" {
		loops = append(loops, b.baseline)
	}
	turns, err := takeTurns(ctx, loops, o, b.whole)
	if err != nil {
		return nil, err
	}
	r := &Result{Subject: c.Subject, Case: c.Name, Unit: c.Unit, Bytes: b.bytes, Baseline: c.Baseline, Rounds: o.Rounds}
	r.Rate, r.CPU = 1e9/turns[0].median(wallOf), turns[0].median(cpuOf)
	if c.Baseline != "" {
		r.BaseRate, r.BaseCPU = 1e9/turns[1].median(wallOf), turns[1].median(cpuOf)
		ratios := make([]float64, o.Rounds)
		for i := range ratios {
			ratios[i] = turns[0][i].cpu / turns[1][i].cpu
		}
		r.Ratio = Median(ratios)
	}
	return r, nil
}

// turn is what one turn of a loop took for each unit, in nanoseconds.
type turn struct{ wall, cpu float64 }

func wallOf(t turn) float64 { return t.wall }
func cpuOf(t turn) float64  { return t.cpu }

// turns are the turns of one loop.
type turns []turn

func (t turns) median(of func(turn) float64) float64 {
	values := make([]float64, len(t))
	for i := range t {
		values[i] = of(t[i])
	}
	return Median(values)
}

// takeTurns finds out how often each loop must go round for a turn, which also
// warms everything up, and then lets the loops take turns.
func takeTurns(ctx context.Context, loops []Loop, o Options, whole bool) ([]turns, error) {
	times := make([]int, len(loops))
	for i, l := range loops {
		for times[i] = 1; ; {
			took, err := l.turn(ctx, times[i])
			if err != nil {
				return nil, err
			}
			spent := took.wall * float64(times[i]*l.Units)
			if whole || spent >= 0.7*float64(o.Turn) {
				break
			}
			// Not more than ten times as often: the first time says little.
			times[i] = max(times[i]+1, int(min(10, float64(o.Turn)/spent)*float64(times[i])))
		}
	}
	all := make([]turns, len(loops))
	for range o.Rounds {
		for i, l := range loops {
			took, err := l.turn(ctx, times[i])
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], took)
		}
	}
	return all, nil
}

// turn goes round the loop a number of times.
func (l Loop) turn(ctx context.Context, times int) (turn, error) {
	cpu, start := cpuTime(), time.Now()
	for range times {
		if err := ctx.Err(); err != nil {
			return turn{}, err
		}
		if err := l.Do(); err != nil {
			return turn{}, err
		}
	}
	wall := max(1, time.Since(start)) // a clock may be coarse
	units := float64(times * l.Units)
	return turn{float64(wall) / units, float64(max(1, cpuTime()-cpu)) / units}, nil
}

// cpuTime returns the time that this process has spent on processors.
func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic("BUG: a process does not know its own times: " + err.Error())
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// Median returns the median of some values, which it sorts; of an even number of
// values the larger one in the middle.
func Median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
