package wire

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Ledger is what the aggregator knows of a job. The job's holder writes it.
type Ledger struct {
	State     State
	Reason    string // why the job failed or, while it is open, what it waits for
	Parts     []Part // committed parts, ascending
	Received  Count  // results seen at least once, committed ones included
	Committed Count
	Epoch     uint32 // of a job that has ended: the latest drive that the aggregator knew of
	Retryable int64  // rejects for which a retry may help, of a job that is done
	Output    string // identity of the output that has the dataset
	Holder    string // aggregator that serves the job; empty if none does
}

// Ended reports whether nothing more will happen to the job that l is of. A job
// that has failed is open again when a new drive of it begins, and one that is done
// when a retry does.
func (l *Ledger) Ended(job *Job) bool {
	switch l.State {
	case Failed:
		return l.Epoch >= job.Epoch
	case Done:
		return l.Epoch >= job.Retry
	}
	return l.State.Ended()
}

// The longest names, in bytes, that a ledger takes.
const (
	maxOutput = 64
	maxHolder = 255
)

// State is where a job stands. The zero State is not valid.
type State uint8

// The states of a job. The numbers are on the wire, do not change.
const (
	Open      State = 1 // parts are missing
	Done      State = 2 // the manifest is written; a retry opens it again
	Failed    State = 3 // stopped until it is driven again, see Ledger.Reason
	Cancelled State = 4 // stopped for good, because people wanted it
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Open:
		return "open"
	case Done:
		return "done"
	case Failed:
		return "failed"
	case Cancelled:
		return "cancelled"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Ended reports whether nothing more will happen to the job by itself.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// PartDigestSize is the length of a part's mark in the ledger.
const PartDigestSize = 16

// Part is a committed part.
type Part struct {
	Number int64
	Digest [PartDigestSize]byte // as SumPart computes it
}

// Count is an amount of work.
type Count struct {
	Chunks  int64
	Records int64
}

func (c Count) validate() error {
	if c.Chunks < 0 || c.Chunks > c.Records {
		return fmt.Errorf("%d chunks of %d records in all", c.Chunks, c.Records)
	}
	return nil
}

// Oldest returns the number of the oldest part that is not committed.
func (l *Ledger) Oldest() int64 {
	// Numbers ascend from 0, so part i has number i up to the first gap.
	return int64(sort.Search(len(l.Parts), func(i int) bool { return l.Parts[i].Number != int64(i) }))
}

// Part returns the committed part of that number, if there is one.
func (l *Ledger) Part(number int64) (Part, bool) {
	i := sort.Search(len(l.Parts), func(i int) bool { return l.Parts[i].Number >= number })
	if i == len(l.Parts) || l.Parts[i].Number != number {
		return Part{}, false
	}
	return l.Parts[i], true
}

// Add enters a committed part, in order. A part that is there already stays as
// it is.
func (l *Ledger) Add(p Part) {
	i := sort.Search(len(l.Parts), func(i int) bool { return l.Parts[i].Number >= p.Number })
	if i == len(l.Parts) || l.Parts[i].Number != p.Number {
		l.Parts = slices.Insert(l.Parts, i, p)
	}
}

// AppendLedger appends the bytes of l to dst.
func AppendLedger(dst []byte, l *Ledger) ([]byte, error) {
	numbers := make([]int64, len(l.Parts))
	digests := make([]byte, 0, PartDigestSize*len(l.Parts))
	for i, p := range l.Parts {
		numbers[i] = p.Number
		digests = append(digests, p.Digest[:]...)
	}
	dst, err := appendMessage(dst, &pb.Ledger{
		State:       pb.State(l.State),
		Reason:      validText(l.Reason),
		PartDeltas:  deltas(numbers),
		PartDigests: digests,
		Received:    &pb.Count{Chunks: l.Received.Chunks, Records: l.Received.Records},
		Committed:   &pb.Count{Chunks: l.Committed.Chunks, Records: l.Committed.Records},
		Epoch:       l.Epoch,
		Retryable:   l.Retryable,
		Output:      validText(l.Output),
		Holder:      validText(l.Holder),
	})
	if err != nil {
		return nil, fmt.Errorf("encode ledger: %w", err)
	}
	return dst, nil
}

// ParseLedger reads what AppendLedger writes.
func ParseLedger(data []byte) (*Ledger, error) {
	var m pb.Ledger
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode ledger: %w", err)
	}
	l := new(Ledger)
	if err := toLedger(l, &m); err != nil {
		return nil, fmt.Errorf("decode ledger: %w", err)
	}
	return l, nil
}

func toLedger(l *Ledger, m *pb.Ledger) error {
	switch m.State {
	case pb.State_STATE_OPEN, pb.State_STATE_DONE, pb.State_STATE_FAILED, pb.State_STATE_CANCELLED:
		l.State = State(m.State)
	default:
		return fmt.Errorf("unknown state %d", m.State)
	}
	if m.Retryable < 0 {
		return fmt.Errorf("%d rejects for a retry", m.Retryable)
	}
	l.Reason, l.Epoch, l.Retryable = m.Reason, m.Epoch, m.Retryable
	if len(m.PartDigests) != PartDigestSize*len(m.PartDeltas) {
		return fmt.Errorf("%d bytes of digests for %d parts", len(m.PartDigests), len(m.PartDeltas))
	}
	l.Parts = slices.Grow(l.Parts, len(m.PartDeltas))
	last := int64(-1)
	for i, number := range sums(m.PartDeltas) {
		if number <= last {
			return errors.New("part numbers do not ascend")
		}
		last = number
		l.Parts = append(l.Parts, Part{Number: number, Digest: [PartDigestSize]byte(m.PartDigests[i*PartDigestSize:])})
	}
	l.Received = Count{Chunks: m.GetReceived().GetChunks(), Records: m.GetReceived().GetRecords()}
	l.Committed = Count{Chunks: m.GetCommitted().GetChunks(), Records: m.GetCommitted().GetRecords()}
	l.Output, l.Holder = m.Output, m.Holder
	if len(l.Output) > maxOutput || len(l.Holder) > maxHolder {
		return fmt.Errorf("output and holder of %d and %d bytes, want at most %d and %d", len(l.Output), len(l.Holder), maxOutput, maxHolder)
	}
	return errors.Join(l.Received.validate(), l.Committed.validate())
}

// deltas returns the differences of consecutive numbers, the first to 0.
func deltas(numbers []int64) []int64 {
	d := make([]int64, len(numbers))
	last := int64(0)
	for i, n := range numbers {
		d[i] = n - last
		last = n
	}
	return d
}

// sums turns deltas back into numbers, in place. A sum that overflows is
// negative, which callers refuse.
func sums(d []int64) []int64 {
	n := int64(0)
	for i := range d {
		n += d[i]
		d[i] = n
	}
	return d
}
