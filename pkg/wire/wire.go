// Package wire turns the messages between producer, workers and aggregator into
// bytes and back. flipmill.proto, next to this file, is the specification.
//
// Task and Result travel through the queue; Job and Ledger are the two records
// that the bucket keeps of a job. Each has an Append function, which appends its
// bytes to a buffer, and a Parse function.
//
// Parse functions take bytes from anywhere. They check sizes before they
// allocate, so the memory they take is bounded by a multiple of the input's;
// what they return is consistent and valid, and nothing in it refers to the
// input. Append functions refuse only what no reader could identify or
// decode; content that comes from our own packages is theirs to get right.
//
// Equal values have equal bytes. The package has no state; its functions are
// safe for concurrent use.
package wire

import (
	"crypto/sha256"
	"fmt"
	"math"
	"strings"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"google.golang.org/protobuf/proto"
)

// ID says which task of which job a message belongs to.
type ID struct {
	Job   string
	Chunk int64  // 0-based number of the chunk within the job
	Part  int64  // number of the part that holds the chunk
	Epoch uint32 // drive of the corpus, see Job
}

// String returns job/chunk/epoch: equal for copies of a message, different for
// any two others that are sent to one stream.
func (id ID) String() string { return fmt.Sprintf("%s/%d/%d", id.Job, id.Chunk, id.Epoch) }

// Validate reports an id that cannot be one.
func (id ID) Validate() error {
	if err := puzzle.CheckJob(id.Job); err != nil {
		return err
	}
	if id.Chunk < 0 || id.Part < 0 || id.Part > id.Chunk {
		return fmt.Errorf("chunk %d of part %d: want 0 <= part <= chunk", id.Chunk, id.Part)
	}
	return nil
}

// SumPart returns the mark of a part in the ledger: the beginning of the
// SHA-256 over the concatenated digests of its chunks.
func SumPart(chunks [][sha256.Size]byte) (mark [PartDigestSize]byte) {
	h := sha256.New()
	for _, digest := range chunks {
		h.Write(digest[:])
	}
	copy(mark[:], h.Sum(nil))
	return mark
}

// SumParts returns the SHA-256 over the marks of all parts of a job, in order.
func SumParts(parts []Part) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p.Digest[:])
	}
	h.Sum(sum[:0])
	return sum
}

// appendMessage appends the deterministic encoding of m.
func appendMessage(dst []byte, m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, m)
}

// validText makes text for people fit a string field. It may quote anything,
// and the news of a failure must not fail for that.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// digest32 returns b as a SHA-256 digest.
func digest32(what string, b []byte) (d [sha256.Size]byte, err error) {
	if len(b) != len(d) {
		return d, fmt.Errorf("%s of %d bytes, want %d", what, len(b), len(d))
	}
	return [sha256.Size]byte(b), nil
}

// addUp returns the sum of two non-negative numbers, or false if one is
// negative or the sum is too large.
func addUp(a, b int64) (int64, bool) {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return 0, false
	}
	return a + b, true
}
