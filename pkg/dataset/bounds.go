package dataset

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// maxBound is the most bytes of a column's least and greatest value that are
// kept. Longer ones are left out of the row group's statistics, where readers
// take them for values, and cut in the column index, where the format allows it.
const maxBound = 64

// bounds returns the least and the greatest of n values in their plain encoding;
// nil where there are none.
func bounds(v encoding.Values, n int) (low, high []byte) {
	switch v.Kind() {
	case encoding.Boolean:
		ones := 0
		for _, b := range v.Boolean() { // behind the values there are zeros
			ones += bits.OnesCount8(b)
		}
		if n > 0 {
			low, high = []byte{byte(ones / n)}, []byte{byte(min(1, ones))}
		}
	case encoding.Double:
		if n := v.Double(); len(n) > 0 {
			low = binary.LittleEndian.AppendUint64(nil, math.Float64bits(slices.Min(n)))
			high = binary.LittleEndian.AppendUint64(nil, math.Float64bits(slices.Max(n)))
		}
	case encoding.Int32:
		if n := v.Int32(); len(n) > 0 {
			low = binary.LittleEndian.AppendUint32(nil, uint32(slices.Min(n)))
			high = binary.LittleEndian.AppendUint32(nil, uint32(slices.Max(n)))
		}
	case encoding.Int64:
		if n := v.Int64(); len(n) > 0 {
			low = binary.LittleEndian.AppendUint64(nil, uint64(slices.Min(n)))
			high = binary.LittleEndian.AppendUint64(nil, uint64(slices.Max(n)))
		}
	case encoding.ByteArray:
		return byteBounds(v.ByteArray())
	}
	return low, high
}

func byteBounds(data []byte, offsets []uint32) (low, high []byte) {
	if len(offsets) < 2 {
		return nil, nil
	}
	low = data[:offsets[1]]
	high = low
	for i := 2; i < len(offsets); i++ {
		value := data[offsets[i-1]:offsets[i]]
		if bytes.Compare(value, low) < 0 {
			low = value
		} else if bytes.Compare(value, high) > 0 {
			high = value
		}
	}
	// The values' memory is reused before the footer is written. An empty value
	// must not become nil, which says that there is no value.
	return append([]byte{}, low...), append([]byte{}, high...)
}

// columnIndex returns the page index of a column of one page.
func columnIndex(c content, m *format.ColumnMetaData, low, high []byte) format.ColumnIndex {
	return format.ColumnIndex{
		NullPages:     []bool{c.count == 0},
		MinValues:     [][]byte{cutLow(low)},
		MaxValues:     [][]byte{cutHigh(high)},
		BoundaryOrder: format.Ascending,
		NullCounts:    []int64{m.Statistics.NullCount},
	}
}

// cutLow returns a value of at most maxBound bytes that is not above b.
func cutLow(b []byte) []byte { return append([]byte{}, b[:min(len(b), maxBound)]...) }

// cutHigh returns a value that is not below b, of at most maxBound bytes if one
// exists: the cut value with its last byte that can grow incremented.
func cutHigh(b []byte) []byte {
	if len(b) <= maxBound {
		return append([]byte{}, b...)
	}
	cut := cutLow(b)
	for i := len(cut) - 1; i >= 0; i-- {
		if cut[i] < 0x7f { // a greater byte could make invalid UTF-8 of a string
			cut[i]++
			return cut[:i+1]
		}
	}
	return append([]byte{}, b...)
}
