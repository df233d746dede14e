package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"slices"

	"github.com/ulikunitz/xz/lzma"
)

// xzReader reads an xz file: streams one after the other, each of blocks, and behind
// them an index of the blocks.
//
// Source: The .xz File Format, version 1.2.1 (tukaani.org/xz/xz-file-format.txt). What
// is in the blocks, LZMA2, is expanded by a package; that package's own reader of whole
// files gives each block the dictionary that it asks for, remembers all blocks of a
// stream, and takes a file that is cut off between two blocks for a whole one.
type xzReader struct {
	in    countedReader
	check byte // kind of the blocks' checksums in the open stream

	block    io.Reader // what is open; nil between blocks
	start    int64     // offset of its header
	says     [2]int64  // its size as stored and expanded, -1 where its header does not say
	stored   int64     // offset of what is behind its header
	expanded int64     // bytes so far
	sum      hash.Hash // of them; nil where the stream has none

	blocks uint64    // of the open stream so far
	sizes  hash.Hash // of their sizes, which the index has once more
}

// countedReader counts what is read.
type countedReader struct {
	in io.Reader
	n  int64
}

// Read reads bytes.
func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

var errChecksum = errors.New("wrong checksum")

func newXZ(in io.Reader) (io.Reader, error) {
	x := &xzReader{in: countedReader{in: in}}
	return x, x.beginStream()
}

// Read reads expanded bytes.
func (x *xzReader) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil && len(p) > 0 {
		if x.block == nil {
			if err = x.next(); err != nil {
				return 0, err
			}
		}
		n, err = x.block.Read(p)
		x.expanded += int64(n)
		if x.sum != nil {
			x.sum.Write(p[:n])
		}
		if err == io.EOF {
			err = x.endBlock()
		}
	}
	return n, err
}

// take reads the next bytes, which must be there.
func (x *xzReader) take(n int) ([]byte, error) {
	p := make([]byte, n)
	_, err := io.ReadFull(&x.in, p)
	return p, notEOF(err)
}

// next opens the next block; io.EOF at the end of the file.
func (x *xzReader) next() error {
	for {
		x.start = x.in.n
		size, err := x.take(1)
		if err != nil {
			return err
		}
		if size[0] > 0 {
			return x.beginBlock(size[0])
		}
		if err := x.endStream(); err != nil {
			return err
		}
		if err := x.beginStream(); err != nil {
			return err
		}
	}
}

// beginStream reads a stream's header: magic, flags, checksum of these. Zeros, four by
// four, may be in front; io.EOF where nothing else is left.
func (x *xzReader) beginStream() error {
	head := make([]byte, 12)
	for binary.LittleEndian.Uint32(head) == 0 {
		if _, err := io.ReadFull(&x.in, head[:4]); err != nil {
			return err
		}
	}
	if _, err := io.ReadFull(&x.in, head[4:]); err != nil {
		return notEOF(err)
	}
	switch {
	case string(head[:6]) != xzMagic:
		return errors.New("what is behind a stream is none")
	case crc32.ChecksumIEEE(head[6:8]) != binary.LittleEndian.Uint32(head[8:]):
		return fmt.Errorf("header: %w", errChecksum)
	case head[6] != 0 || !slices.Contains([]byte{0, 1, 4, 10}, head[7]):
		return fmt.Errorf("a checksum of kind %#x is not known", head[6:8])
	}
	x.check, x.blocks, x.sizes = head[7], 0, sha256.New()
	return nil
}

// beginBlock reads a block's header, whose first byte says how long it is: flags, the
// sizes that these say are there, the filter (of LZMA2: its number, 1, the size of the
// dictionary), zeros, checksum.
func (x *xzReader) beginBlock(size byte) error {
	rest, err := x.take(4*int(size) + 3)
	if err != nil {
		return err
	}
	head := append([]byte{size}, rest...)
	at := len(head) - 4
	if crc32.ChecksumIEEE(head[:at]) != binary.LittleEndian.Uint32(head[at:]) {
		return fmt.Errorf("header of a block: %w", errChecksum)
	}
	flags, left := head[1], bytes.NewReader(head[2:at])
	x.says = [2]int64{-1, -1}
	for i, is := range []byte{0x40, 0x80} {
		if flags&is != 0 {
			n, err := binary.ReadUvarint(left)
			if err != nil {
				return notEOF(err)
			}
			x.says[i] = int64(n)
		}
	}
	filter := make([]byte, left.Len())
	left.Read(filter)
	if flags&0x3f != 0 || len(filter) < 3 || filter[0] != 0x21 || filter[1] != 1 || len(bytes.Trim(filter[3:], "\x00")) > 0 {
		return errors.New("a filter that is not read: only LZMA2 is")
	}
	dictionary, err := lzma.DecodeDictCap(filter[2])
	if err != nil {
		return err
	}
	if dictionary > maxWindow {
		return fmt.Errorf("its dictionary of %d bytes is larger than %d", dictionary, maxWindow)
	}
	x.stored, x.expanded, x.sum = x.in.n, 0, newXZSum(x.check)
	x.block, err = lzma.Reader2Config{DictCap: max(lzma.MinDictCap, int(dictionary))}.NewReader2(&x.in)
	return err
}

// newXZSum returns what makes a checksum of that kind; nil of none.
func newXZSum(check byte) hash.Hash {
	switch check {
	case 1:
		return crc32.NewIEEE()
	case 4:
		return crc64.New(crc64.MakeTable(crc64.ECMA))
	case 10:
		return sha256.New()
	}
	return nil
}

// endBlock reads what is behind a block: zeros up to a multiple of 4, its checksum.
func (x *xzReader) endBlock() error {
	x.block = nil
	unpadded := x.in.n - x.start
	for i, is := range []int64{x.in.n - x.stored, x.expanded} {
		if x.says[i] >= 0 && x.says[i] != is {
			return fmt.Errorf("a block of %d bytes says that it has %d", is, x.says[i])
		}
	}
	if err := x.pad(unpadded); err != nil {
		return err
	}
	if x.sum != nil {
		want := x.sum.Sum(nil)
		if x.check != 10 { // numbers, which package hash has the other way round
			slices.Reverse(want)
		}
		got, err := x.take(len(want))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("block: %w", errChecksum)
		}
		unpadded += int64(len(want))
	}
	x.blocks++
	fmt.Fprintln(x.sizes, unpadded, x.expanded)
	return nil
}

// pad reads the zeros behind so many bytes.
func (x *xzReader) pad(behind int64) error {
	zeros, err := x.take(int(-behind & 3))
	if err == nil && len(bytes.Trim(zeros, "\x00")) > 0 {
		err = errors.New("zeros are missing")
	}
	return err
}

// endStream reads an index, whose first byte was read, and the footer of the stream:
// checksum, size of the index, flags as in the header, magic. The index has the number
// of blocks, two sizes of each, zeros up to a multiple of 4, and a checksum.
func (x *xzReader) endStream() error {
	sum, sizes := crc32.NewIEEE(), sha256.New()
	sum.Write([]byte{0})
	plain := x.in.in
	x.in.in = io.TeeReader(plain, sum)
	number := lzma.ByteReader(&x.in)
	blocks, err := binary.ReadUvarint(number)
	for i := uint64(0); err == nil && blocks == x.blocks && i < blocks; i++ {
		var unpadded, expanded uint64
		if unpadded, err = binary.ReadUvarint(number); err == nil {
			expanded, err = binary.ReadUvarint(number)
		}
		fmt.Fprintln(sizes, unpadded, expanded)
	}
	if err == nil && (blocks != x.blocks || !bytes.Equal(sizes.Sum(nil), x.sizes.Sum(nil))) {
		err = errors.New("the index does not have its blocks")
	}
	if err == nil {
		err = x.pad(x.in.n - x.start)
	}
	x.in.in = plain
	if err != nil {
		return notEOF(err)
	}
	size := x.in.n + 4 - x.start
	foot, err := x.take(4 + 12)
	if err != nil {
		return err
	}
	want := binary.LittleEndian.AppendUint32(nil, sum.Sum32())
	body := append(binary.LittleEndian.AppendUint32(nil, uint32(size/4-1)), 0, x.check)
	want = binary.LittleEndian.AppendUint32(want, crc32.ChecksumIEEE(body))
	want = append(append(want, body...), "YZ"...)
	if !bytes.Equal(foot, want) {
		return errors.New("a stream does not end as it has to")
	}
	return nil
}
