package corpus_test

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// readXZ reads a file of boards of 2x2 to its end.
func readXZ(t *testing.T, stored string) (boards string, err error) {
	c, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: corpus.Lines, Size: puzzle.Size{Rows: 2, Cols: 2}}, strings.NewReader(stored))
	if err != nil {
		return "", err
	}
	defer c.Close()
	var text strings.Builder
	var rec corpus.Record
	for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
		text.WriteString(show(&rec) + "\n")
	}
	return text.String(), err
}

// TestXZDictionary: each block is asked how much is to be remembered, not only the
// first one of a file.
func TestXZDictionary(t *testing.T) {
	const want = "its dictionary is larger than 134217728 bytes"
	streams := made(t, "boards-streams.xz")
	if _, err := readXZ(t, streams+made(t, "dictionary.xz")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("in a later stream: %v", err)
	}
	const block = "\x02\x00\x21\x01" // how the header of a block without sizes begins
	data := []byte(streams)
	at := strings.LastIndex(streams, block)
	data[at+len(block)] = 34 // 512 MiB
	binary.LittleEndian.PutUint32(data[at+8:], crc32.ChecksumIEEE(data[at:at+8]))
	if _, err := readXZ(t, string(data)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("in a later block: %v", err)
	}
}

// TestXZDamaged: whatever byte of a file is another one, that is an error, or the boards
// are the same: how long a chunk is within a block, its package does not compare. Nor
// can a file be cut off anywhere but behind a stream.
func TestXZDamaged(t *testing.T) {
	data := made(t, "small.xz") // two streams, of which the first has two blocks, and 8 zeros in between
	want, err := readXZ(t, data)
	if err != io.EOF || strings.Count(want, "2x2") != 40 {
		t.Fatal(want, err)
	}
	for i := 6; i < len(data); i++ { // behind the magic, without which it is a file of text
		damaged := []byte(data)
		damaged[i] ^= 1 << (i % 8)
		if boards, err := readXZ(t, string(damaged)); err == io.EOF && boards != want {
			t.Errorf("byte %d is %#x, and all is well", i, damaged[i])
		}
	}
	ends := 0
	for n := 6; n < len(data); n++ {
		if boards, err := readXZ(t, data[:n]); err == io.EOF {
			ends++
			if n%4 != 0 || strings.Count(boards, "2x2") != 30 {
				t.Errorf("cut off at %d: %s", n, boards)
			}
		}
	}
	if ends != 3 { // behind the first stream, or 4 or 8 of the zeros
		t.Errorf("%d of the places where it may be cut off are ends of it, want 3", ends)
	}
}
