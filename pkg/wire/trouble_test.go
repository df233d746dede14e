package wire

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
)

func testTrouble() *Trouble { return &Trouble{Chunk: 17, Delivered: 2, Message: "no answer"} }

func TestTrouble(t *testing.T) {
	roundTrip(t, testTrouble(), AppendTrouble, ParseTrouble)
	refuses(t, testTrouble(), AppendTrouble, ParseTrouble, map[string]func(*pb.Trouble){
		"negative chunk": func(m *pb.Trouble) { m.Chunk = -1 },
		"no delivery":    func(m *pb.Trouble) { m.Delivered = 0 },
		"no message":     func(m *pb.Trouble) { m.Message = "" },
	})
}

func FuzzParseTrouble(f *testing.F) {
	seed(f, testTrouble(), AppendTrouble)
	f.Fuzz(func(t *testing.T, data []byte) { stable(t, data, AppendTrouble, ParseTrouble) })
}
