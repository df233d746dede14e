// Package protocol decides what each role does next, and in which order: when a
// producer may publish, what becomes of a task in a worker's hands, when an
// aggregator commits and purges. It does no I/O and has no clock. A role feeds
// its value with what it hears, carries out the Step that Next returns, and
// says what came of it.
//
//	Window     of a producer, for one drive of a job's corpus
//	Handling   of a worker, for one delivery of a task
//	Collector  of an aggregator, for one job
//
// Together they keep a job whole over a broker that delivers late, twice, in any
// order, or not at all:
//   - A chunk is published only while its part is inside the window, and not if
//     its part is committed, or if the broker has it from an earlier drive.
//   - A task is acknowledged only after its result is stored, and given up only
//     with an answer.
//   - A part's results are purged only after its files are durable. What a
//     process knew and did not finish, the next one finds in the files and the
//     log.
//   - What the ledger says of a job's progress never falls.
//
// The tests of the package drive the three against each other over a model of
// the broker; the roles run the same values. A value belongs to one goroutine.
package protocol

import "fmt"

// Step is what a role is to do next.
type Step int

// The steps. Rest is any role's: nothing, until it hears more. For a worker it is
// the end.
const (
	Rest Step = iota

	Publish // producer: publish the next chunk
	Compare // producer: do not publish the next chunk, its part is committed
	Pass    // producer: do not publish the next chunk, the broker has it

	LookUp  // worker: read the job's record and the order to it; aggregator: read the record
	Solve   // worker: solve the chunk
	Isolate // worker: solve the chunk in child processes, it may have killed a worker
	GiveUp  // worker: answer that every board is rejected
	Refuse  // worker: answer that the job must fail
	Store   // worker: publish the answer and wait until it is stored
	Ack     // worker: acknowledge the task
	Drop    // worker: remove the task, nobody wants the answer
	Return  // worker: give the task back at once
	Delay   // worker: give the task back, to be tried after a pause
	Leave   // worker: like Delay, and then end

	Commit   // aggregator: make the part durable
	Finish   // aggregator: write what completes the dataset
	Tell     // aggregator: write the ledger
	Purge    // aggregator: remove the part's results from the log
	PurgeJob // aggregator: remove the job's tasks and results
)

// String returns the step's name.
func (s Step) String() string {
	names := [...]string{
		"rest", "publish", "compare", "pass",
		"look up", "solve", "isolate", "give up", "refuse", "store", "ack", "drop", "return", "delay", "leave",
		"commit", "finish", "tell", "purge", "purge job",
	}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("Step(%d)", int(s))
	}
	return names[s]
}
