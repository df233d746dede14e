package wire

import (
	"fmt"

	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Trouble is the latest thing that went wrong with a task of a job. Any worker
// writes it, for people: nothing depends on it.
type Trouble struct {
	Chunk     int64
	Delivered int64  // how often the task had been delivered by then
	Message   string // not empty
}

// AppendTrouble appends the bytes of t to dst.
func AppendTrouble(dst []byte, t *Trouble) ([]byte, error) {
	dst, err := appendMessage(dst, &pb.Trouble{Chunk: t.Chunk, Delivered: t.Delivered, Message: validText(t.Message)})
	if err != nil {
		return nil, fmt.Errorf("encode trouble: %w", err)
	}
	return dst, nil
}

// ParseTrouble reads what AppendTrouble writes.
func ParseTrouble(data []byte) (*Trouble, error) {
	var m pb.Trouble
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode trouble: %w", err)
	}
	if m.Chunk < 0 || m.Delivered < 1 || m.Message == "" {
		return nil, fmt.Errorf("decode trouble: chunk %d, delivery %d, message %q", m.Chunk, m.Delivered, m.Message)
	}
	return &Trouble{Chunk: m.Chunk, Delivered: m.Delivered, Message: m.Message}, nil
}
