package protocol

import "fmt"

// MaxDeliveries is how often a task is tried before its boards become rejects.
// Poisonous boards are found at the second delivery. Workers that are killed or
// stopped for reasons of their own use up some of them too, so there are many.
const MaxDeliveries = 20

// Handling is what becomes of a delivery in a worker's hands.
type Handling struct {
	delivered int  // how often, this time included
	isolates  bool // the worker has child processes for what may have killed one
	refused   bool
	next      Step
}

// NewHandling returns the handling of a task's n-th delivery.
func NewHandling(n int, isolates bool) *Handling {
	return &Handling{delivered: n, isolates: isolates, next: LookUp}
}

// Outcome is what came of a step of a worker.
type Outcome int

// The outcomes.
const (
	Done       Outcome = iota
	Unwanted           // the job is unknown or cancelled
	Unreadable         // the task makes no sense: only driving the job again can help
	TooLarge           // the broker does not take the answer
	Stopped            // the worker is to put down what it holds
	Broken             // not this task but the broker is not as it must be
	Trouble            // anything else, which may pass
)

// String returns the outcome's name.
func (o Outcome) String() string {
	names := [...]string{"done", "unwanted", "unreadable", "too large", "stopped", "broken", "trouble"}
	if o < 0 || int(o) >= len(names) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return names[o]
}

// Next returns what is to be done now. Drop, Return, Delay and Leave put the
// delivery down and are its last step; Rest follows an answer.
func (h *Handling) Next() Step { return h.next }

// Did takes in what came of the step that Next returned.
func (h *Handling) Did(o Outcome) {
	switch o {
	case Done:
		h.next = h.after()
	case Unwanted:
		h.next = Drop
	case Stopped:
		h.next = Return
	case Broken:
		h.next = Leave
	case Unreadable, TooLarge:
		h.next = Refuse
		if h.refused { // the refusal itself cannot be stored
			h.next = Delay
		}
		h.refused = true
	default:
		h.next = Delay
	}
}

// after returns what follows a step that went well.
func (h *Handling) after() Step {
	switch h.next {
	case LookUp:
		switch {
		case h.delivered > MaxDeliveries:
			return GiveUp
		case h.delivered > 1 && h.isolates:
			return Isolate
		}
		return Solve
	case Solve, Isolate, GiveUp, Refuse:
		return Store
	case Store:
		return Ack
	}
	return Rest
}
