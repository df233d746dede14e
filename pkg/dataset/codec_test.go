package dataset

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// decodeZstd decodes with a decoder that is not ours.
func decodeZstd(t *testing.T, frame []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, err := d.DecodeAll(frame, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func randomCells(rng *rand.Rand, n int) []byte {
	text := make([]byte, n)
	for i := range text {
		text[i] = '0' + byte(rng.Uint32N(2))
	}
	return text
}

// A frame of cells is zstd to a decoder that knows nothing of cells, and has one
// bit per cell.
func TestAppendCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	prefix := make([]byte, 300_000)
	for i := range prefix {
		prefix[i] = byte(rng.Uint32())
	}
	for _, n := range []int{minCells, minCells + 1, minCells + 2, minCells + 3, 5000, maxBlock - 1, maxBlock, maxBlock + 1, maxBlock + minCells - 1, maxBlock + minCells, 3*maxBlock + 7777} {
		for _, prefix := range [][]byte{nil, prefix[:1], prefix[:500], prefix} {
			text := randomCells(rng, n)
			frame := appendCells([]byte("kept"), prefix, text)
			got := decodeZstd(t, bytes.TrimPrefix(frame, []byte("kept")))
			if !bytes.Equal(got, append(bytes.Clone(prefix), text...)) {
				t.Fatalf("%d cells after %d bytes are decoded to something else", n, len(prefix))
			}
			if limit := len(prefix) + n/8 + 60*(n/maxBlock+1) + minCells; len(frame) > limit {
				t.Errorf("%d cells after %d bytes take %d bytes, want at most %d", n, len(prefix), len(frame), limit)
			}
		}
	}
}

// Cells that repeat themselves take the ordinary encoder, random ones do not.
func TestEncodeCells(t *testing.T) {
	c, err := codecOf(CompressionZstd)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 200_000
	for _, k := range []struct {
		name     string
		text     []byte
		min, max int
	}{
		{"random", randomCells(rng, n), n / 8, n/8 + 200},
		{"empty", bytes.Repeat([]byte("0"), n), 1, 100},
		{"repeated", bytes.Repeat(randomCells(rng, 1000), n/1000), 1, n / 80},
		{"few", randomCells(rng, minCells-1), minCells / 8, minCells/4 + 50},
	} {
		page := append([]byte("levels and lengths"), k.text...)
		frame, err := c.encode(nil, page, len(k.text))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(decodeZstd(t, frame), page) {
			t.Errorf("%s: decoded to something else", k.name)
		}
		if len(frame) < k.min || len(frame) > k.max {
			t.Errorf("%s: %d bytes, want %d to %d", k.name, len(frame), k.min, k.max)
		}
	}
}

func FuzzAppendCells(f *testing.F) {
	f.Add([]byte{0xff, 0, 1, 2}, uint16(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed []byte, repeat uint16, prefix uint8) {
		var text []byte
		for range int(repeat) + minCells/(8*max(1, len(seed))) + 1 {
			for _, b := range append(seed, 1) {
				for k := range 8 {
					text = append(text, '0'+b>>k&1)
				}
			}
		}
		head := seed[:min(len(seed), int(prefix))]
		if got := decodeZstd(t, appendCells(nil, head, text)); !bytes.Equal(got, append(bytes.Clone(head), text...)) {
			t.Fatal("decoded to something else")
		}
	})
}

// Bounds that are cut stay bounds.
func TestCutBounds(t *testing.T) {
	long := bytes.Repeat([]byte("1"), maxBound+10)
	for _, b := range [][]byte{nil, {}, []byte("0"), long[:maxBound], long, bytes.Repeat([]byte{0x7f}, maxBound+1), append(bytes.Repeat([]byte{0x7f}, maxBound), 0)} {
		if low := cutLow(b); bytes.Compare(low, b) > 0 || len(low) > maxBound {
			t.Errorf("low of %q: %q", b, low)
		}
		if high := cutHigh(b); bytes.Compare(high, b) < 0 || len(high) > max(maxBound, len(b)) {
			t.Errorf("high of %q: %q", b, high)
		}
	}
	if high := cutHigh(long); len(high) != maxBound {
		t.Errorf("high of %d bytes has %d", len(long), len(high))
	}
}
