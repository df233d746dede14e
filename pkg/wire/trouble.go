package wire

import (
	"fmt"
	"slices"

	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Troubles is what went wrong lately with tasks of a job. Any worker writes it, for
// people: nothing depends on it.
type Troubles struct {
	Latest []Trouble // of different chunks, the latest last; at most maxTroubles
}

// Trouble is the latest thing that went wrong with the task of a chunk.
type Trouble struct {
	Chunk     int64
	Delivered int64  // how often the task had been delivered by then
	Message   string // not empty
	At        int64  // milliseconds since 1970, by the worker's clock
	Retry     int64  // likewise: when the task is to be tried again; 0 where that is not known
}

// maxTroubles bounds the record.
const maxTroubles = 64

// Add enters what went wrong last; what is known of the same chunk, or else of the
// one that had its trouble first, may go for it.
func (t *Troubles) Add(latest Trouble) {
	t.Latest = slices.DeleteFunc(t.Latest, func(old Trouble) bool { return old.Chunk == latest.Chunk })
	t.Latest = append(t.Latest[max(0, len(t.Latest)-maxTroubles+1):], latest)
}

// Of returns what is known of a chunk, nil if that is nothing.
func (t *Troubles) Of(chunk int64) *Trouble {
	for i := range t.Latest {
		if t.Latest[i].Chunk == chunk {
			return &t.Latest[i]
		}
	}
	return nil
}

// AppendTroubles appends the bytes of t to dst.
func AppendTroubles(dst []byte, t *Troubles) ([]byte, error) {
	var m pb.Troubles
	for _, l := range t.Latest {
		m.Troubles = append(m.Troubles, &pb.Trouble{Chunk: l.Chunk, Delivered: l.Delivered, Message: validText(l.Message), At: l.At, Retry: l.Retry})
	}
	dst, err := appendMessage(dst, &m)
	if err != nil {
		return nil, fmt.Errorf("encode troubles: %w", err)
	}
	return dst, nil
}

// ParseTroubles reads what AppendTroubles writes.
func ParseTroubles(data []byte) (*Troubles, error) {
	var m pb.Troubles
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode troubles: %w", err)
	}
	if len(m.Troubles) > maxTroubles {
		return nil, fmt.Errorf("decode troubles: %d, want at most %d", len(m.Troubles), maxTroubles)
	}
	t := &Troubles{}
	for _, l := range m.Troubles {
		if l.Chunk < 0 || l.Delivered < 1 || l.Message == "" || t.Of(l.Chunk) != nil {
			return nil, fmt.Errorf("decode troubles: chunk %d, delivery %d, message %q", l.Chunk, l.Delivered, l.Message)
		}
		t.Latest = append(t.Latest, Trouble{Chunk: l.Chunk, Delivered: l.Delivered, Message: l.Message, At: l.At, Retry: l.Retry})
	}
	return t, nil
}
