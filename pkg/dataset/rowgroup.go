package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// rowGroup builds a Parquet file of exactly one row group, a whole column at a
// time, with one data page (version 1) per column and a page index. It exists
// because parquet-go's writers take values one by one: they cost about 500 ns a
// row of ours, whole columns about a fifth (see dataset_timing_test.go). All
// encodings and the Thrift structures are parquet-go's.
type rowGroup struct {
	layout  *layout
	file    bytes.Buffer
	rows    int
	chunks  []format.ColumnChunk
	indexes []format.ColumnIndex
	offsets []format.OffsetIndex

	encoded, page, packed []byte // reused
}

// content is the values of one column.
type content struct {
	defined *levels         // which rows have a value; nil for a required column
	values  encoding.Values // the values, or their numbers in dict; nulls left out
	count   int             // of values
	dict    encoding.Values // the distinct values of a dictionary column
	dictLen int
	cells   int // characters of values, if all of them are '0' or '1'; else 0
}

// levels says which rows of an optional column have a value, or where the lists
// of a column of lists begin and end.
type levels struct {
	encoded []byte // as a data page starts: byte count, then runs
	count   int    // of rows or, of lists, of values and what stands for those that have none
	nulls   int    // of these without a value
}

// set encodes present, which has 1 for a row with a value and 0 for one without.
func (l *levels) set(present []byte) error {
	l.encoded = l.encoded[:0]
	return l.add(present, 1)
}

// setLists encodes the repetition and definition levels of a column of lists.
func (l *levels) setLists(repetition, definition []byte, leaf parquet.LeafColumn) error {
	l.encoded = l.encoded[:0]
	return errors.Join(l.add(repetition, leaf.MaxRepetitionLevel), l.add(definition, leaf.MaxDefinitionLevel))
}

// add encodes levels up to a greatest one, which is that of values.
func (l *levels) add(levels []byte, most int) error {
	encoded, err := (&rle.Encoding{BitWidth: bits.Len(uint(most))}).EncodeLevels(nil, levels)
	if err != nil {
		return fmt.Errorf("encode levels: %w", err)
	}
	l.encoded = binary.LittleEndian.AppendUint32(l.encoded, uint32(len(encoded)))
	l.encoded = append(l.encoded, encoded...)
	l.count, l.nulls = len(levels), len(levels)-bytes.Count(levels, []byte{byte(most)})
	return nil
}

// begin starts a file of rows rows. The bytes of the last one become invalid.
func (g *rowGroup) begin(rows int) {
	g.rows = rows
	g.file.Reset()
	g.file.WriteString(magic)
	g.chunks, g.indexes, g.offsets = g.chunks[:0], g.indexes[:0], g.offsets[:0]
}

// add writes the next column of the schema.
func (g *rowGroup) add(c content) error {
	leaf := g.layout.leaves[len(g.chunks)]
	chunk := format.ColumnChunk{MetaData: format.ColumnMetaData{
		Type:         format.Type(leaf.Node.Type().Kind()),
		PathInSchema: leaf.Path,
		Codec:        g.layout.codec.CompressionCodec(),
		NumValues:    int64(g.rows),
	}}
	m := &chunk.MetaData
	if leaf.MaxDefinitionLevel > 0 {
		m.Encoding = append(m.Encoding, format.RLE)
		m.NumValues, m.Statistics.NullCount = int64(c.defined.count), int64(c.defined.nulls)
	}
	bounded, enc := c.values, leaf.Node.Encoding()
	if enc.Encoding() == format.RLEDictionary {
		bounded = c.dict
		m.Encoding = append(m.Encoding, format.Plain)
		m.DictionaryPageOffset = int64(g.file.Len())
		if err := g.dictionaryPage(m, c); err != nil {
			return fmt.Errorf("column %s: %w", nameOf(leaf), err)
		}
	}
	m.Encoding = append(m.Encoding, enc.Encoding())
	low, high := bounds(bounded, c.count)
	if len(low) <= maxBound && len(high) <= maxBound {
		m.Statistics.MinValue, m.Statistics.MaxValue = low, high
	}
	m.DataPageOffset = int64(g.file.Len())
	if err := g.dataPage(m, c, enc); err != nil {
		return fmt.Errorf("column %s: %w", nameOf(leaf), err)
	}
	g.chunks = append(g.chunks, chunk)
	g.indexes = append(g.indexes, columnIndex(c, m, low, high))
	g.offsets = append(g.offsets, format.OffsetIndex{PageLocations: []format.PageLocation{{
		Offset: m.DataPageOffset, CompressedPageSize: int32(int64(g.file.Len()) - m.DataPageOffset),
	}}})
	return nil
}

func (g *rowGroup) dictionaryPage(m *format.ColumnMetaData, c content) error {
	var err error
	if g.encoded, err = encode(g.encoded, c.dict, &parquet.Plain); err != nil {
		return err
	}
	header := format.PageHeader{Type: format.DictionaryPage}
	header.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(c.dictLen), Encoding: format.Plain})
	return g.write(m, header, format.Plain, g.encoded, 0)
}

func (g *rowGroup) dataPage(m *format.ColumnMetaData, c content, enc encoding.Encoding) error {
	var err error
	if g.encoded, err = encode(g.encoded, c.values, enc); err != nil {
		return err
	}
	body := g.encoded
	if c.defined != nil {
		g.page = append(append(g.page[:0], c.defined.encoded...), g.encoded...)
		body = g.page
	}
	header := format.PageHeader{Type: format.DataPage}
	header.DataPageHeader = thrift.New(format.DataPageHeader{
		NumValues: int32(m.NumValues), Encoding: enc.Encoding(),
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		Statistics: format.Statistics{NullCount: m.Statistics.NullCount},
	})
	return g.write(m, header, enc.Encoding(), body, c.cells)
}

// write compresses a page and appends it, header first.
func (g *rowGroup) write(m *format.ColumnMetaData, header format.PageHeader, enc format.Encoding, body []byte, cells int) error {
	packed, err := g.layout.codec.encode(g.packed, body, cells)
	if err != nil {
		return fmt.Errorf("compress page: %w", err)
	}
	g.packed = packed
	header.UncompressedPageSize, header.CompressedPageSize = int32(len(body)), int32(len(packed))
	header.CRC = int32(crc32.ChecksumIEEE(packed))
	start := g.file.Len()
	if err := g.thrift(&header); err != nil {
		return fmt.Errorf("write page header: %w", err)
	}
	headerSize := g.file.Len() - start
	g.file.Write(packed)
	m.TotalUncompressedSize += int64(headerSize + len(body))
	m.TotalCompressedSize += int64(headerSize + len(packed))
	m.EncodingStats = append(m.EncodingStats, format.PageEncodingStats{PageType: header.Type, Encoding: enc, Count: 1})
	return nil
}

// finish writes page index and footer and returns the file, valid until begin.
func (g *rowGroup) finish() ([]byte, error) {
	group := format.RowGroup{Columns: g.chunks, NumRows: int64(g.rows), FileOffset: int64(len(magic))}
	for i := range g.indexes {
		c := &g.chunks[i]
		c.ColumnIndexOffset = int64(g.file.Len())
		if err := g.thrift(&g.indexes[i]); err != nil {
			return nil, fmt.Errorf("write column index: %w", err)
		}
		c.ColumnIndexLength = int32(int64(g.file.Len()) - c.ColumnIndexOffset)
	}
	for i := range g.offsets {
		c := &g.chunks[i]
		c.OffsetIndexOffset = int64(g.file.Len())
		if err := g.thrift(&g.offsets[i]); err != nil {
			return nil, fmt.Errorf("write offset index: %w", err)
		}
		c.OffsetIndexLength = int32(int64(g.file.Len()) - c.OffsetIndexOffset)
		group.TotalByteSize += c.MetaData.TotalUncompressedSize
		group.TotalCompressedSize += c.MetaData.TotalCompressedSize
	}
	meta := g.layout.empty
	meta.NumRows, meta.RowGroups = int64(g.rows), []format.RowGroup{group}
	start := g.file.Len()
	if err := g.thrift(&meta); err != nil {
		return nil, fmt.Errorf("write footer: %w", err)
	}
	tail := binary.LittleEndian.AppendUint32(nil, uint32(g.file.Len()-start))
	g.file.Write(append(tail, magic...))
	return g.file.Bytes(), nil
}

func (g *rowGroup) thrift(v any) error {
	var protocol thrift.CompactProtocol
	return thrift.NewEncoder(protocol.NewWriter(&g.file)).Encode(v)
}

// encode encodes values into dst's memory.
func encode(dst []byte, v encoding.Values, enc encoding.Encoding) ([]byte, error) {
	switch v.Kind() {
	case encoding.Boolean:
		return encoding.EncodeBoolean(dst, v, enc)
	case encoding.Double:
		return encoding.EncodeDouble(dst, v, enc)
	case encoding.Int32:
		return encoding.EncodeInt32(dst, v, enc)
	case encoding.Int64:
		return encoding.EncodeInt64(dst, v, enc)
	case encoding.ByteArray:
		return encoding.EncodeByteArray(dst, v, enc)
	}
	panic("BUG: dataset: values of kind " + v.Kind().String())
}
