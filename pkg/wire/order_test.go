package wire

import "testing"

func TestOrder(t *testing.T) {
	for order, name := range map[Order]string{Proceed: "proceed", Pause: "pause", Cancel: "cancel"} {
		data, err := AppendOrder([]byte("before"), order)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseOrder(data[len("before"):])
		if err != nil || got != order || got.String() != name {
			t.Errorf("%v is read as %v, %v", order, got, err)
		}
	}
	for what, data := range map[string][]byte{"nothing": nil, "order 4": {8, 4}, "half a message": {8}, "noise": []byte("noise")} {
		if got, err := ParseOrder(data); err == nil {
			t.Errorf("%s is read as %v", what, got)
		}
	}
}

func FuzzParseOrder(f *testing.F) {
	data, err := AppendOrder(nil, Pause)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if order, err := ParseOrder(data); err == nil && (order < Proceed || order > Cancel) {
			t.Errorf("%x is read as %v", data, order)
		}
	})
}

// Ended is what producers, workers and people wait for.
func TestStateEnded(t *testing.T) {
	for state, want := range map[State]bool{Open: false, Done: true, Failed: true, Cancelled: true} {
		if state.Ended() != want {
			t.Errorf("%v has ended: %v", state, !want)
		}
	}
}
