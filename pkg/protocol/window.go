package protocol

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/flipmill/flipmill/pkg/wire"
)

// Errors that end a drive.
var (
	// ErrOtherCorpus says that committed parts come from another corpus.
	ErrOtherCorpus = errors.New("committed parts were made from another corpus: name another job, or remove the dataset")
	// ErrLost says that something is neither on the broker nor committed any more
	// that this drive has handed over, or passed by. Another drive brings it again.
	ErrLost = errors.New("what was handed over is lost")
)

// Window knows how far a producer has come with a corpus, and how far it may go:
// a part is handed over only while fewer than the window's parts lie between it
// and the oldest one that is not committed.
type Window struct {
	partChunks int64
	width      int64 // in parts

	stored map[int64]bool // chunks that the broker has from earlier drives
	ledger *wire.Ledger   // what was heard last; nil: nobody knows what is committed
	order  wire.Order
	oldest int64 // part that was not committed: the highest of all that were heard

	chunks  int64 // handed over
	records int64
	parts   []wire.Part         // handed over completely
	digests [][sha256.Size]byte // of the chunks so far of the part being handed over

	// The part being handed over, if it is committed: its chunks are compared
	// instead of published.
	committed *wire.Part
}

// NewWindow returns the window of a drive that begins.
func NewWindow(partChunks, parts int) *Window {
	return &Window{partChunks: int64(partChunks), width: int64(parts), order: wire.Proceed}
}

// Refusal says why a job must not be driven any further, nothing while it may.
// The ledger is nil before an aggregator has taken the job up.
func Refusal(ledger *wire.Ledger, order wire.Order) string {
	state := wire.Open
	if ledger != nil {
		state = ledger.State
	}
	switch {
	case state == wire.Failed:
		return ledger.Reason
	case state == wire.Cancelled, order == wire.Cancel && state != wire.Done:
		return "it was cancelled, which is final: give the corpus another --job"
	}
	return ""
}

// Stored takes in which chunks the broker has from earlier drives. What is heard
// of the ledger must be newer: a chunk that is not stored is then committed, or
// missing.
func (w *Window) Stored(chunks map[int64]bool) { w.stored = chunks }

// Hear takes in where the job stands.
func (w *Window) Hear(ledger *wire.Ledger, order wire.Order) error {
	w.ledger, w.order = ledger, order
	oldest := ledger.Oldest()
	if oldest < w.oldest && oldest*w.partChunks < w.chunks {
		return fmt.Errorf("%w: part %d has gone from the output", ErrLost, oldest)
	}
	w.oldest = max(w.oldest, oldest)
	return nil
}

// Stalls reports whether nothing has come in between what was heard last and this
// newer ledger.
func (w *Window) Stalls(now *wire.Ledger) bool {
	return w.ledger != nil && now != nil && now.Received == w.ledger.Received && now.Oldest() == w.ledger.Oldest()
}

// Lost returns the first chunk that was handed over and is neither committed nor
// among those that the broker has. What is heard of the ledger must be newer. The
// chunks of a job that has ended, or is to end, are not lost but removed.
func (w *Window) Lost(stored map[int64]bool) (chunk int64, lost bool) {
	if w.ledger == nil || w.ledger.State != wire.Open || w.order == wire.Cancel {
		return 0, false
	}
	for chunk := w.ledger.Oldest() * w.partChunks; chunk < w.chunks; chunk++ {
		if _, committed := w.ledger.Part(chunk / w.partChunks); !committed && !stored[chunk] {
			return chunk, true
		}
	}
	return 0, false
}

// Next returns what becomes of the next chunk: Publish, Compare, Pass, or Rest
// until there is news.
func (w *Window) Next() Step {
	if w.ledger == nil {
		return Rest
	}
	_, part := w.Chunk()
	done := w.ledger.State == wire.Done
	if part >= w.ledger.Oldest()+w.width && !done {
		return Rest
	}
	w.committed = nil
	found, committed := w.ledger.Part(part)
	switch {
	case committed, done: // what a job that is done does not have is of another corpus
		w.committed = &found
		return Compare
	case w.stored[w.chunks]:
		return Pass
	case w.Paused():
		return Rest
	}
	return Publish
}

// First reports whether the next chunk is of the oldest part that is not committed:
// such a chunk must never wait for others.
func (w *Window) First() bool {
	_, part := w.Chunk()
	return w.ledger != nil && part <= w.ledger.Oldest()
}

// Paused reports whether people want nothing more to be published.
func (w *Window) Paused() bool { return w.order == wire.Pause }

// Chunk returns the numbers of the next chunk and of its part.
func (w *Window) Chunk() (chunk, part int64) { return w.chunks, w.chunks / w.partChunks }

// Add notes that the next chunk was published, compared or passed, as Next said.
func (w *Window) Add(digest [sha256.Size]byte, records int) error {
	w.digests = append(w.digests, digest)
	w.chunks++
	w.records += int64(records)
	if w.chunks%w.partChunks == 0 {
		return w.endPart()
	}
	return nil
}

// End notes that the corpus has ended.
func (w *Window) End() error {
	if len(w.digests) > 0 || w.chunks == 0 { // an empty corpus has one empty part
		return w.endPart()
	}
	return nil
}

// endPart notes the mark of a part, and compares it if the part was committed
// already. What other drives of another corpus have left besides, the collector
// finds from the totals.
func (w *Window) endPart() error {
	part := wire.Part{Number: int64(len(w.parts)), Digest: wire.SumPart(w.digests)}
	if w.committed != nil && part != *w.committed {
		return fmt.Errorf("part %d: %w", part.Number, ErrOtherCorpus)
	}
	w.parts, w.digests, w.committed = append(w.parts, part), w.digests[:0], nil
	return nil
}

// Totals returns what is known of a corpus that has ended; the rest is for the
// caller to fill in.
func (w *Window) Totals() *wire.Totals {
	return &wire.Totals{Records: w.records, Chunks: w.chunks, PartsSHA256: wire.SumParts(w.parts)}
}

// Count returns how much has been handed over.
func (w *Window) Count() wire.Count { return wire.Count{Chunks: w.chunks, Records: w.records} }
