package wire

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
)

func testTroubles() *Troubles {
	return &Troubles{Latest: []Trouble{
		{Chunk: 17, Delivered: 2, Message: "no answer", At: 1_790_000_000_000},
		{Chunk: 3, Delivered: 1, Message: "no room", At: 1_790_000_001_000, Retry: 1_790_000_002_000},
	}}
}

func TestTroubles(t *testing.T) {
	roundTrip(t, testTroubles(), AppendTroubles, ParseTroubles)
	refuses(t, testTroubles(), AppendTroubles, ParseTroubles, map[string]func(*pb.Troubles){
		"negative chunk": func(m *pb.Troubles) { m.Troubles[0].Chunk = -1 },
		"no delivery":    func(m *pb.Troubles) { m.Troubles[1].Delivered = 0 },
		"no message":     func(m *pb.Troubles) { m.Troubles[0].Message = "" },
		"a chunk twice":  func(m *pb.Troubles) { m.Troubles[0].Chunk = 3 },
		"too many":       func(m *pb.Troubles) { m.Troubles = make([]*pb.Trouble, 65) },
	})
}

// The record keeps the latest of each chunk, and of so many chunks.
func TestAddTrouble(t *testing.T) {
	var all Troubles
	for k := range int64(100) {
		all.Add(Trouble{Chunk: k, Delivered: 1, Message: "no"})
		all.Add(Trouble{Chunk: 99 - k%2, Delivered: k + 1, Message: "again"})
	}
	if n := len(all.Latest); n != maxTroubles {
		t.Errorf("%d are kept", n)
	}
	if last := all.Latest[maxTroubles-1]; last != (Trouble{Chunk: 98, Delivered: 100, Message: "again"}) || *all.Of(98) != last || all.Of(30) != nil {
		t.Errorf("the last is %+v", last)
	}
	if _, err := AppendTroubles(nil, &all); err != nil {
		t.Error(err)
	}
}

func FuzzParseTroubles(f *testing.F) {
	seed(f, testTroubles(), AppendTroubles)
	f.Fuzz(func(t *testing.T, data []byte) { stable(t, data, AppendTroubles, ParseTroubles) })
}
