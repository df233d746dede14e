package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/flipmill/flipmill/pkg/wire"
)

// fault is something that goes wrong, or that people do.
type fault int

const (
	lostMessage fault = iota // what is published does not arrive, and is sent again
	lostAck                  // it arrives, which nobody hears of
	lateCopy                 // it arrives a second time, much later
	reordered                // a later message overtakes an earlier one
	crash                    // a process dies and another one starts
	stopped                  // a worker is told to stop
	silent                   // a worker is cut off: its tasks go to others while it works on them
	passing                  // a request fails for a reason that passes
	taskLost                 // the broker loses a task that it has acknowledged
	resultLost               // or a result
	restored                 // the broker comes back with an older store
	wiped                    // the broker comes back with an empty store
	full                     // the output takes no files for a while
	ordered                  // people pause, resume or cancel
	submitted                // people submit the job again, at any time
	changed                  // and with another corpus
	impatient                // an aggregator takes a job from a holder that lives
	retried                  // people retry a job that is done
	faults                   // how many there are
)

func (f fault) String() string {
	return [...]string{"lost message", "lost ack", "late copy", "reordered", "crash", "stopped", "silent", "passing trouble",
		"task lost", "result lost", "store restored", "store wiped", "disk full", "order", "submitted again", "corpus changed", "lease too short", "retry"}[f]
}

// plan is what a seed makes of a schedule, besides its choices.
type plan struct {
	rate  int // per mille: how often a fault that can happen does
	kinds [faults]bool
	chaos int // turns with faults; afterwards all is calm, and jobs must end
	limit int // of faults in all
}

// world is one schedule: jobs, and all that works for them.
type world struct {
	rng   *rand.Rand
	plan  plan
	wrong mutation

	now         int // the virtual time: turns taken
	calm        bool
	moved       int // the time when something has come forward
	happened    int // faults
	broker      *broker
	backup      *broker // an older copy of the broker's store
	fullUntil   int     // the time when the output takes files again
	memory      int64   // of the aggregator
	jobs        []*job
	producers   []*producer
	workers     []*worker
	aggregators []*aggregator
	processes   int      // aggregators that have been started
	late        []func() // messages that are still on their way

	problem error
	trace   func(format string, args ...any) // nil but in a replay
}

// kind is what a chunk does to those who work on it.
type kind int

const (
	sound      kind = iota
	kills           // a worker that solves it dies, a child process too: it then has a reject
	hopeless        // nobody ever gets an answer
	unreadable      // the task cannot be read
	tooLarge        // the broker does not take the answer
)

// job is a job with what is true of it.
type job struct {
	id         string
	partChunks int
	window     int
	corpora    [2][]int64 // records of each chunk; the second is a changed one
	kinds      []kind
	disk       *folder
	again      *folder // beside it, for a retry; nil unless there is one
	kept       *record // in the output; nil once the job has ended for good

	answered  map[int64]bool // chunks of which a result has been stored at some time
	published map[int64]bool
	cancelled bool
	otherwise bool // driven with the changed corpus too
	retried   bool
	lost      bool // the broker has lost something that it had acknowledged
	broken    bool // the submit that ended last did not come to its end
	drives    int  // begun when all was calm
}

func (w *world) say(format string, args ...any) {
	if w.trace != nil {
		w.trace("%5d "+format, append([]any{w.now}, args...)...)
	}
}

// violated notes that something that must hold does not.
func (w *world) violated(format string, args ...any) {
	if w.problem == nil {
		w.problem = fmt.Errorf(format, args...)
		w.say("VIOLATED: %v", w.problem)
	}
}

// happens reports whether something goes wrong now.
func (w *world) happens(f fault) bool {
	if w.calm || !w.plan.kinds[f] || w.happened >= w.plan.limit || w.rng.IntN(1000) >= w.plan.rate {
		return false
	}
	w.happened++
	w.say("fault %d: %v", w.happened, f)
	return true
}

// pick returns the first of some things or, out of order, any.
func pick[T any](w *world, from []T) T {
	if len(from) > 1 && w.happens(reordered) {
		return from[w.rng.IntN(len(from))]
	}
	return from[0]
}

// newWorld makes the schedule of a seed.
func newWorld(seed uint64, limit int, wrong mutation) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{rng: rng, wrong: wrong, plan: plan{rate: []int{0, 3, 10, 30, 100, 200}[rng.IntN(6)], chaos: 20 + rng.IntN(600), limit: limit}}
	for f := range w.plan.kinds {
		w.plan.kinds[f] = rng.IntN(3) > 0
	}
	w.plan.kinds[wiped] = rng.IntN(6) == 0
	w.plan.kinds[changed] = rng.IntN(4) == 0
	w.memory = []int64{0, 3, 1000}[rng.IntN(3)]
	room := 0
	for n := range 1 + rng.IntN(2) {
		j := newJob(rng, n)
		w.jobs = append(w.jobs, j)
		room += 16 * j.window * j.partChunks
	}
	if rng.IntN(2) == 0 {
		room = 1000
	}
	w.broker = newBroker(room)
	for range 1 + rng.IntN(3) {
		w.workers = append(w.workers, newWorker(w))
	}
	for _, j := range w.jobs {
		w.submit(j, 0)
	}
	for range 1 + rng.IntN(2) {
		w.aggregators = append(w.aggregators, newAggregator(w))
	}
	return w
}

func newJob(rng *rand.Rand, n int) *job {
	j := &job{
		id: fmt.Sprint("job-", n), partChunks: 1 + rng.IntN(3), window: 1 + rng.IntN(3), disk: newFolder(),
		answered: map[int64]bool{}, published: map[int64]bool{},
	}
	rare := []int{1, 100, 100, 100}[rng.IntN(4)]
	for range rng.IntN(10) {
		j.corpora[0] = append(j.corpora[0], 1+rng.Int64N(5))
		j.kinds = append(j.kinds, sound)
		if last := len(j.kinds) - 1; rng.IntN(10) == 0 {
			j.kinds[last] = kills
		} else if rng.IntN(8*rare) == 0 {
			j.kinds[last] = hopeless + kind(rng.IntN(3))
		}
	}
	// The changed corpus differs from some chunk on, and in length.
	j.corpora[1] = slices.Clone(j.corpora[0])[:rng.IntN(len(j.corpora[0])+1)]
	for range rng.IntN(3) {
		j.corpora[1] = append(j.corpora[1], 1+rng.Int64N(5))
	}
	for len(j.kinds) < len(j.corpora[1]) {
		j.kinds = append(j.kinds, sound)
	}
	return j
}

// digest stands for the content of a chunk, its place included.
func (j *job) digest(version int, chunk int64) (d [32]byte) {
	d[0], d[1], d[2] = byte(chunk), byte(j.corpora[version][chunk]), byte(j.first(version, chunk))
	copy(d[3:], j.id)
	return d
}

// first returns the number of a chunk's first record.
func (j *job) first(version int, chunk int64) (n int64) {
	for _, records := range j.corpora[version][:chunk] {
		n += records
	}
	return n
}

// answer is what a worker makes of a task, with some records rejected.
func (j *job) answer(id wire.ID, version int, rejected int64) *wire.Result {
	records := j.corpora[version][id.Chunk]
	rejected = min(rejected, records)
	return &wire.Result{
		ID: id, First: j.first(version, id.Chunk), Boards: records - rejected, Rejected: rejected,
		Digest: j.digest(version, id.Chunk), Results: make([]byte, 1),
	}
}

// oldest returns the first part that is not on the disk.
func (j *job) oldest() int64 {
	for part := int64(0); ; part++ {
		if _, ok := j.disk.parts[part]; !ok {
			return part
		}
	}
}

// submit begins to drive a job.
func (w *world) submit(j *job, version int) {
	w.say("submit %s, corpus %d", j.id, version)
	j.otherwise = j.otherwise || version > 0
	w.producers = append(w.producers, newProducer(w, j, version))
}

// driven reports whether somebody drives a job.
func (w *world) driven(j *job) bool {
	return slices.ContainsFunc(w.producers, func(p *producer) bool { return p.job == j })
}

func (w *world) job(id string) *job {
	return w.jobs[slices.IndexFunc(w.jobs, func(j *job) bool { return j.id == id })]
}
