package corpus_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/flipmill/flipmill/pkg/corpus"
)

// forge changes the footer of a sound Parquet file; more is put behind its pages, at
// the offset that change is told.
func forge(t *testing.T, path string, more []byte, change func(footer *format.FileMetaData, at int64)) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	data = data[:len(data)-8-int(binary.LittleEndian.Uint32(data[len(data)-8:]))]
	footer := f.Metadata()
	change(footer, int64(len(data)))
	text := marshal(t, footer)
	data = append(append(data, more...), text...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(text)))
	return writeFile(t, "forged.parquet", string(data)+"PAR1")
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestParquetForged: what decodes columns trusts files more than the checks before it
// do. Files in which the two could see different things are refused.
func TestParquetForged(t *testing.T) {
	open := func(path, want string) {
		t.Helper()
		c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{}, nil)
		if err == nil {
			c.Close()
		}
		if err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	two := duckdbFile(t, "two-groups", "SELECT '01/10' AS board FROM range(4096)", ", ROW_GROUP_SIZE 2048, COMPRESSION zstd")
	open(forge(t, two, nil, func(*format.FileMetaData, int64) {}), "")
	open(forge(t, two, nil, func(footer *format.FileMetaData, _ int64) {
		footer.RowGroups[1].Columns[0].MetaData.Codec = format.Uncompressed
	}), "row group 1: column board: codec UNCOMPRESSED, in the first row group ZSTD")

	one := duckdbFile(t, "lz4", "SELECT '01/10' AS board", ", COMPRESSION lz4_raw")
	board := strings.Repeat("0101010101/", 10)
	value := "\x02\x00\x00\x00\x03\x01" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(board)))) + board // it is there, its length and bytes
	stored := make([]byte, 100)
	n, err := new(lz4.Compressor).CompressBlock([]byte(value), stored)
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	stored = stored[:n]
	v1, v2 := format.DataPageHeader{NumValues: 1, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}, format.DataPageHeaderV2{NumValues: 1, NumRows: 1}
	for _, test := range []struct {
		change func(*format.PageHeader)
		body   []byte
		want   string
	}{
		{func(*format.PageHeader) {}, stored, ""},
		{func(h *format.PageHeader) { h.DataPageHeaderV2 = thrift.New(v2) }, stored, "a page of type DATA_PAGE without its header, or with that of another"},
		{func(h *format.PageHeader) { h.Type = format.DataPageV2 }, stored, "a page of type DATA_PAGE_V2 without its header"},
		{func(h *format.PageHeader) {
			h.Type, h.DataPageHeader = format.IndexPage, thrift.Null[format.DataPageHeader]{}
		}, stored, "a page of type INDEX_PAGE is not read"},
		{func(h *format.PageHeader) { h.UncompressedPageSize++ }, stored, "expand a page"},
		{func(h *format.PageHeader) { h.UncompressedPageSize-- }, stored, "expand a page"},
		{func(h *format.PageHeader) { h.UncompressedPageSize = 1 << 28 }, stored, "want at most 134217728"},
		{func(h *format.PageHeader) { h.CompressedPageSize = 1 << 28 }, stored, "want at most 134217728"},
		{func(*format.PageHeader) {}, []byte("\x00\xff\xff"), "expand a page"},        // a match before there is anything
		{func(*format.PageHeader) {}, bytes.Repeat([]byte{255}, 50), "expand a page"}, // a length that does not end
	} {
		h := format.PageHeader{Type: format.DataPage, CompressedPageSize: int32(len(test.body)), UncompressedPageSize: int32(len(value)), DataPageHeader: thrift.New(v1)}
		test.change(&h)
		page := append(marshal(t, &h), test.body...)
		open(forge(t, one, page, func(footer *format.FileMetaData, at int64) {
			m := &footer.RowGroups[0].Columns[0].MetaData
			m.DictionaryPageOffset, m.DataPageOffset, m.TotalCompressedSize = 0, at, int64(len(page))
		}), test.want)
	}
}
