package puzzle

import (
	"encoding/binary"
	"slices"
)

// MaskBytes returns how many bytes a mask of boards of this size takes, packed.
func (s Size) MaskBytes() int {
	if s.Width() <= 8 {
		return 1
	}
	return 2
}

// AppendMasks appends masks in little-endian order, in the given number of bytes each.
// Several masks are one 64-bit store: three times as fast as one by one
// (BenchmarkAppendTask).
func AppendMasks(dst []byte, masks []uint16, maskBytes int) []byte {
	have, n := len(dst), len(masks)*maskBytes
	dst = slices.Grow(dst, n)[:have+n]
	b := dst[have:]
	if maskBytes == 1 {
		for ; len(masks) >= 8; masks, b = masks[8:], b[8:] {
			low := uint64(masks[0]) | uint64(masks[1])<<8 | uint64(masks[2])<<16 | uint64(masks[3])<<24
			high := uint64(masks[4]) | uint64(masks[5])<<8 | uint64(masks[6])<<16 | uint64(masks[7])<<24
			binary.LittleEndian.PutUint64(b, low|high<<32)
		}
		for i, m := range masks {
			b[i] = byte(m)
		}
		return dst
	}
	for ; len(masks) >= 4; masks, b = masks[4:], b[8:] {
		binary.LittleEndian.PutUint64(b, uint64(masks[0])|uint64(masks[1])<<16|uint64(masks[2])<<32|uint64(masks[3])<<48)
	}
	for i, m := range masks {
		binary.LittleEndian.PutUint16(b[2*i:], m)
	}
	return dst
}

// LineSteps returns line numbers as the steps from one to the next, the first from 0,
// and how often each is taken in a row.
func LineSteps(lines []int64) (steps, counts []int64) {
	last := int64(0)
	for _, line := range lines {
		step := line - last
		last = line
		if n := len(steps); n > 0 && steps[n-1] == step {
			counts[n-1]++
			continue
		}
		steps, counts = append(steps, step), append(counts, 1)
	}
	return steps, counts
}
