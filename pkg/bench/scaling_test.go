package bench

import (
	"container/heap"
	"testing"
)

// cluster is the model of docs/scaling.md: what each role takes for a chunk, and how
// many chunks may be on their way.
type cluster struct {
	workers                           int
	produce, carry, solve, stitch     float64 // seconds of the one producer, broker, aggregator and of each worker
	partChunks, window, maxAckPending int
}

// rate is the chunks a second that the formula of docs/scaling.md promises: the
// slowest station, or as many chunks as may be on their way in the time that one
// takes for its way.
func (c cluster) rate() float64 {
	busy := float64(min(c.workers, c.window*c.partChunks, c.maxAckPending))
	return min(1/c.produce, 1/c.carry, 1/c.stitch, busy/c.solve)
}

// event is a station being done with a chunk.
type event struct {
	at      float64
	station int
	chunk   int
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// simulate lets chunks go from station to station, each served in the order of their
// coming, and returns how many a second have come through. The producer stops at the
// end of its window; a part is stitched when all its chunks are there.
func (c cluster) simulate(chunks int) float64 {
	const producer, task, worker, result, aggregator = 0, 1, 2, 3, 4
	free := []int{producer: 1, task: 1, worker: min(c.workers, c.maxAckPending), aggregator: 1} // the broker is one for tasks and results
	server := []int{producer, task, worker, task, aggregator}
	times := []float64{producer: c.produce, task: c.carry / 2, worker: c.solve, result: c.carry / 2, aggregator: c.stitch * float64(c.partChunks)}
	waiting := make([][]int, 5)
	have := map[int]int{} // results by part
	done := map[int]bool{}
	oldest, now := 0, 0.0
	var queue events
	for next, committed := 0, 0; committed < chunks; {
		if len(waiting[producer]) == 0 && next < chunks && next/c.partChunks < oldest+c.window {
			waiting[producer] = append(waiting[producer], next)
			next++
		}
		for s := range waiting {
			for free[server[s]] > 0 && len(waiting[s]) > 0 {
				free[server[s]]--
				// Chunks differ, here by a half and less: who is late holds its part up.
				spread := 1.0
				if s == worker {
					spread = 0.75 + 0.5*float64(waiting[s][0]*7919%1000)/1000
				}
				heap.Push(&queue, event{now + times[s]*spread, s, waiting[s][0]})
				waiting[s] = waiting[s][1:]
			}
		}
		e := heap.Pop(&queue).(event)
		now = e.at
		free[server[e.station]]++
		switch part := e.chunk / c.partChunks; {
		case e.station == aggregator:
			done[part] = true
			committed += c.partChunks
			for done[oldest] {
				oldest++
			}
		case e.station == result:
			if have[part]++; have[part] == c.partChunks {
				waiting[aggregator] = append(waiting[aggregator], e.chunk)
			}
		default:
			waiting[e.station+1] = append(waiting[e.station+1], e.chunk)
		}
	}
	return float64(chunks) / now
}

// TestScalingModel: a thousand workers come to within a fifth of what the formula of
// docs/scaling.md says, whichever station is the slowest one, and never beyond it.
func TestScalingModel(t *testing.T) {
	t.Parallel()
	// A chunk of 40,957 boards of 5x5, and one of 10,000 that take 37 µs each.
	cheap := cluster{produce: 0.0083, carry: 0.0170, solve: 0.0207, stitch: 0.0077, partChunks: 64, window: 2, maxAckPending: 1024}
	slow := cluster{produce: 0.0001, carry: 0.0040, solve: 0.37, stitch: 0.0019, partChunks: 64, window: 2, maxAckPending: 1024}
	for _, c := range []struct {
		name    string
		cluster cluster
		workers int
		window  int
	}{
		{"one worker", cheap, 1, 2}, {"two workers and the broker", cheap, 2, 2}, {"the broker is the limit", cheap, 1000, 16},
		{"slow boards, one worker", slow, 1, 2}, {"slow boards, two workers", slow, 2, 2}, {"slow boards, 64 workers", slow, 64, 4},
		{"the broker is the limit", slow, 1000, 32},
	} {
		m := c.cluster
		m.workers, m.window = c.workers, c.window
		got, want := m.simulate(64*200), m.rate()
		if got > want*1.01 || got < want*0.8 {
			t.Errorf("%s: %.1f chunks a second, the formula says %.1f", c.name, got, want)
		}
		t.Logf("%-28s %8.1f chunks/s of %8.1f", c.name, got, want)
	}
	// A window of two parts keeps 128 chunks on their way, whoever else would work.
	few := slow
	few.workers = 1000
	few.carry = 0 // so that nothing else is in the way
	many := few
	many.window = 32
	if a, b := few.simulate(64*200), many.simulate(64*200); a > few.rate() || a < few.rate()/3 || b < 2*a {
		t.Errorf("%.1f chunks a second in a window of 2, %.1f in one of 32", a, b)
	} else {
		t.Logf("%.1f chunks a second in a window of 2, of %.1f; %.1f in one of 32", a, few.rate(), b)
	}
}
