package wire

import (
	"fmt"

	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Order is what people want done with a job. The control verbs write it, in a
// record of its own next to the job's. The zero Order is not valid.
type Order uint8

// The orders. The numbers are on the wire, do not change.
const (
	Proceed Order = 1 // drive it to its end; so it is without a record
	Pause   Order = 2 // finish what is queued and hand over nothing more
	Cancel  Order = 3 // drop what is queued and end it; nothing takes this back
)

// String returns the order's name.
func (o Order) String() string {
	switch o {
	case Proceed:
		return "proceed"
	case Pause:
		return "pause"
	case Cancel:
		return "cancel"
	}
	return fmt.Sprintf("Order(%d)", uint8(o))
}

// AppendOrder appends the bytes of o to dst.
func AppendOrder(dst []byte, o Order) ([]byte, error) {
	dst, err := appendMessage(dst, &pb.Control{Order: pb.Order(o)})
	if err != nil {
		return nil, fmt.Errorf("encode control: %w", err)
	}
	return dst, nil
}

// ParseOrder reads what AppendOrder writes.
func ParseOrder(data []byte) (Order, error) {
	var m pb.Control
	if err := proto.Unmarshal(data, &m); err != nil {
		return 0, fmt.Errorf("decode control: %w", err)
	}
	switch m.Order {
	case pb.Order_ORDER_PROCEED, pb.Order_ORDER_PAUSE, pb.Order_ORDER_CANCEL:
		return Order(m.Order), nil
	}
	return 0, fmt.Errorf("decode control: unknown order %d", m.Order)
}
