package dataset

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// codec compresses pages. Its output is what the codec's name says to any
// reader; pages of cells take a shorter way to it.
type codec struct {
	compress.Codec
}

// codecOf returns the codec of a spec's Compression.
func codecOf(compression string) (codec, error) {
	switch compression {
	case CompressionZstd:
		return codec{&zstd.Codec{Level: zstd.SpeedDefault}}, nil
	case CompressionSnappy:
		return codec{&snappy.Codec{}}, nil
	case CompressionNone:
		return codec{&parquet.Uncompressed}, nil
	}
	return codec{}, fmt.Errorf("compression %q: want %s, %s or %s", compression, CompressionZstd, CompressionSnappy, CompressionNone)
}

// encode compresses a page into dst's memory. The page ends in cells characters
// that are all '0' or '1'.
func (c codec) encode(dst, page []byte, cells int) ([]byte, error) {
	if c.CompressionCodec() == format.Zstd && cells >= minCells {
		text := page[len(page)-cells:]
		at := (cells - min(cells, sampleCells)) / 2
		sample, err := c.Encode(dst, text[at:at+min(cells, sampleCells)])
		if err != nil {
			return nil, fmt.Errorf("compress sample: %w", err)
		}
		dst = sample
		if len(sample)*9 > min(cells, sampleCells) {
			return appendCells(dst[:0], page[:len(page)-cells], text), nil
		}
	}
	return c.Encode(dst, page)
}

// Random cells hold one bit each, and searching them for repetitions, as zstd
// encoders do, costs 4 to 8 ns a cell only to end at 1.4 bits: whatever looks
// like a repetition costs more than it saves. A zstd frame whose blocks have no
// repetitions at all but Huffman-coded literals needs exactly 1 bit a cell and
// is a mere packing of bits. The frames below are ordinary zstd (RFC 8878).
// Where boards do repeat themselves, such as counted or empty ones, the ordinary
// encoder is better: a sample from the page's middle decides.
const (
	minCells    = 1 << 10 // fewer cells are not worth a choice
	sampleCells = 32 << 10
	maxBlock    = 128 << 10 // bytes of one block, the format's limit
)

// appendCells appends a zstd frame of prefix and then text, which consists of
// '0' and '1'.
func appendCells(dst, prefix, text []byte) []byte {
	const header = 2<<6 | 1<<5 // 4-byte content size; window as large as the content
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd, header)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(prefix)+len(text)))
	for ; len(prefix) > 0; prefix = prefix[min(len(prefix), maxBlock):] {
		dst = appendRaw(dst, prefix[:min(len(prefix), maxBlock)], false)
	}
	for len(text) > maxBlock {
		dst = appendPacked(dst, text[:maxBlock], false)
		text = text[maxBlock:]
	}
	if len(text) < minCells {
		return appendRaw(dst, text, true)
	}
	return appendPacked(dst, text, true)
}

const (
	rawBlock    = 0
	packedBlock = 2
)

func appendBlockHeader(dst []byte, size, kind int, last bool) []byte {
	h := size<<3 | kind<<1
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16))
}

func appendRaw(dst, data []byte, last bool) []byte {
	return append(appendBlockHeader(dst, len(data), rawBlock, last), data...)
}

// appendPacked appends a block of Huffman-coded literals in four streams and of
// no sequences. text has minCells to maxBlock characters.
func appendPacked(dst, text []byte, last bool) []byte {
	const (
		blockHeader   = 3
		literalHeader = 5 // type, format, 18 bits of each size
		jumpTable     = 6 // the sizes of the first three streams, two bytes each
	)
	start := len(dst)
	dst = append(dst, make([]byte, blockHeader+literalHeader)...)
	dst = appendTree(dst)
	jumps := len(dst)
	dst = append(dst, make([]byte, jumpTable)...)
	segment := (len(text) + 3) / 4
	rest := text
	for i := range 4 {
		from := len(dst)
		n := min(segment, len(rest))
		dst = appendStream(dst, rest[:n])
		rest = rest[n:]
		if i < 3 {
			binary.LittleEndian.PutUint16(dst[jumps+2*i:], uint16(len(dst)-from))
		}
	}
	packed := len(dst) - start - blockHeader - literalHeader
	const compressedLiterals, fourStreams18Bit = 2, 3
	h := uint64(compressedLiterals | fourStreams18Bit<<2 | len(text)<<4 | packed<<22)
	for i := range literalHeader {
		dst[start+blockHeader+i] = byte(h >> (8 * i))
	}
	dst = append(dst, 0) // no sequences
	appendBlockHeader(dst[:start], len(dst)-start-blockHeader, packedBlock, last)
	return dst
}

// appendTree appends the description of the Huffman tree in which '0' has the
// code 0 and '1' the code 1: a weight of four bits per symbol below '1', whose
// own weight follows from the others'.
func appendTree(dst []byte) []byte {
	dst = append(dst, 127+'1')
	n := len(dst)
	dst = append(dst, make([]byte, ('1'+1)/2)...)
	dst[n+'0'/2] = 1 << 4 // the symbol '0', even, is in the upper half of its byte
	return dst
}

// appendStream appends a character's code per bit: the first character in the
// highest bit, below a 1 that marks the end; the lowest byte first.
func appendStream(dst, text []byte) []byte {
	for ; len(text) >= 8; text = text[:len(text)-8] {
		dst = append(dst, pack(binary.LittleEndian.Uint64(text[len(text)-8:])))
	}
	last := byte(1)
	for _, c := range text {
		last = last<<1 | c&1
	}
	return append(dst, last)
}

// pack returns the low bits of 8 characters, the first in the highest bit. The
// product adds up each character's bit at a place of its own in the top byte.
func pack(chars uint64) byte {
	return byte((chars & 0x0101010101010101) * 0x8040201008040201 >> 56)
}
