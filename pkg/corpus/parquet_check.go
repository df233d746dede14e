package corpus

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// Limits of a page. Writers make pages of about 1 MiB.
const (
	maxPageBytes  = 128 << 20 // as stored, and when expanded
	maxPageValues = 1 << 24
	maxPageHeader = 64 << 10
)

// checkColumns looks at the pages of the columns that are read, in all row groups.
func (p *parquetRows) checkColumns(in io.ReaderAt, size int64) error {
	total := int64(0)
	for g, group := range p.file.Metadata().RowGroups {
		for _, c := range p.columns {
			if c == nil {
				continue
			}
			if c.Index() >= len(group.Columns) {
				return fmt.Errorf("row group %d: no column %s", g, c.Name())
			}
			chunk := &group.Columns[c.Index()]
			if first := p.file.Metadata().RowGroups[0].Columns[c.Index()].MetaData.Codec; chunk.MetaData.Codec != first { // by which all are expanded
				return fmt.Errorf("row group %d: column %s: codec %s, in the first row group %s: write all with one", g, c.Name(), chunk.MetaData.Codec, first)
			}
			values, err := checkPages(in, size, chunk)
			if err != nil {
				return fmt.Errorf("row group %d: column %s: %w", g, c.Name(), err)
			}
			total += values
		}
	}
	if total > freeExpands && total/maxRatio > size {
		return errOverExpanded
	}
	return nil
}

// checkPages reads the headers of a column chunk's pages, and expands the pages
// without keeping them: what they become is no more than they say, and that is
// no more than the limits. It returns how many values they have.
func checkPages(in io.ReaderAt, size int64, c *format.ColumnChunk) (values int64, err error) {
	m := &c.MetaData
	start := m.DataPageOffset
	if m.DictionaryPageOffset != 0 {
		start = m.DictionaryPageOffset
	}
	if c.FilePath != "" || start < int64(len(parquetMagic)) || m.TotalCompressedSize < 0 || m.TotalCompressedSize > size-start {
		return 0, fmt.Errorf("pages of %d bytes at %d in a file of %d", m.TotalCompressedSize, start, size)
	}
	pages := &pageReader{Reader: bufio.NewReader(io.NewSectionReader(in, start, m.TotalCompressedSize)), codec: m.Codec}
	defer pages.close()
	for {
		n, err := pages.page()
		if err == io.EOF {
			return values, nil
		}
		if err != nil {
			return 0, err
		}
		values += n
	}
}

// pageReader reads the pages of a column chunk.
type pageReader struct {
	*bufio.Reader
	codec format.CompressionCodec

	gzip   *gzip.Reader
	zstd   *zstd.Decoder
	brotli *brotli.Reader
	lz4    [2][]byte // a page as stored, and as it expands
}

func (p *pageReader) close() {
	if p.zstd != nil {
		p.zstd.Close()
	}
}

// page reads a page and returns the number of its values.
func (p *pageReader) page() (int64, error) {
	if _, err := p.Peek(1); err != nil {
		return 0, err
	}
	var header format.PageHeader
	var protocol thrift.CompactProtocol
	if err := thrift.NewDecoder(protocol.NewReader(&headerReader{p.Reader, maxPageHeader})).Decode(&header); err != nil {
		return 0, fmt.Errorf("page header: %w", notEOF(err))
	}
	form, err := p.formOf(&header)
	if err != nil {
		return 0, err
	}
	stored, expanded := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
	switch {
	case form.values < 0 || form.values > maxPageValues:
		return 0, fmt.Errorf("a page of %d values, want at most %d", form.values, maxPageValues)
	case stored < 0 || stored > maxPageBytes || expanded < 0 || expanded > maxPageBytes || form.plain > min(stored, expanded):
		return 0, fmt.Errorf("a page of %d bytes that expand to %d, want at most %d", stored, expanded, maxPageBytes)
	case form.encoding == format.DeltaByteArray: // a few bytes may become any number of them, which no header tells
		return 0, fmt.Errorf("encoding %s is not read: write it with another", form.encoding)
	}
	if _, err := io.CopyN(io.Discard, p, form.plain); err != nil {
		return 0, notEOF(err)
	}
	body := &io.LimitedReader{R: p.Reader, N: stored - form.plain}
	if err := p.expand(body, form.codec, expanded-form.plain); err != nil {
		return 0, fmt.Errorf("expand a page: %w", notEOF(err))
	}
	if _, err := io.CopyN(io.Discard, p, body.N); err != nil {
		return 0, notEOF(err)
	}
	return form.values, nil
}

// pageForm is what a page's header says of it.
type pageForm struct {
	values   int64
	plain    int64 // bytes in front that are never compressed
	codec    format.CompressionCodec
	encoding format.Encoding
}

// formOf returns the form of a page, which must have the header of its type and no
// other: what reads it later may go by either.
func (p *pageReader) formOf(header *format.PageHeader) (pageForm, error) {
	v1, isV1 := header.DataPageHeader.Get()
	v2, isV2 := header.DataPageHeaderV2.Get()
	dictionary, isDictionary := header.DictionaryPageHeader.Get()
	if isV1 != (header.Type == format.DataPage) || isV2 != (header.Type == format.DataPageV2) || isDictionary != (header.Type == format.DictionaryPage) {
		return pageForm{}, fmt.Errorf("a page of type %s without its header, or with that of another", header.Type)
	}
	switch {
	case isV1:
		return pageForm{int64(v1.NumValues), 0, p.codec, v1.Encoding}, nil
	case isDictionary:
		return pageForm{int64(dictionary.NumValues), 0, p.codec, dictionary.Encoding}, nil
	case !isV2:
		return pageForm{}, fmt.Errorf("a page of type %s is not read", header.Type)
	case v2.RepetitionLevelsByteLength < 0 || v2.DefinitionLevelsByteLength < 0:
		return pageForm{}, fmt.Errorf("levels of %d and %d bytes", v2.RepetitionLevelsByteLength, v2.DefinitionLevelsByteLength)
	}
	codec := p.codec
	if compressed, ok := v2.IsCompressed.Get(); ok && !compressed {
		codec = format.Uncompressed
	}
	return pageForm{int64(v2.NumValues), int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength), codec, v2.Encoding}, nil
}

// expand expands a page's body and reports it if it becomes more than it says.
func (p *pageReader) expand(body io.Reader, codec format.CompressionCodec, want int64) (err error) {
	text := body
	switch codec {
	case format.Uncompressed:
	case format.Snappy: // says its size at once
		head := &headerReader{p.Reader, binary.MaxVarintLen64}
		size, err := binary.ReadUvarint(head)
		if err == nil && size != uint64(want) {
			err = fmt.Errorf("%d bytes, not the %d that it says", size, want)
		}
		body.(*io.LimitedReader).N -= int64(binary.MaxVarintLen64 - head.left)
		return err
	case format.Gzip:
		if p.gzip == nil {
			p.gzip = new(gzip.Reader)
		}
		text, err = p.gzip, p.gzip.Reset(body)
	case format.Zstd:
		if p.zstd == nil {
			p.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		}
		if err == nil {
			text, err = p.zstd, p.zstd.Reset(body)
		}
	case format.Brotli: // remembers at most 16 MiB
		if p.brotli == nil {
			p.brotli = new(brotli.Reader)
		}
		text, err = p.brotli, p.brotli.Reset(body)
	case format.Lz4Raw:
		return p.expandLz4(body, want)
	default:
		return fmt.Errorf("codec %s is not read: write it with zstd, snappy, gzip, brotli, lz4_raw or none", codec)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(text, want+1))
	if err == nil && n != want {
		err = fmt.Errorf("%d bytes or more, not the %d that it says", n, want)
	}
	return err
}

// expandLz4 is expand for a codec that has no frames: it expands a page as a whole. The
// package that decodes columns takes each error of it for too little memory, and
// doubles that for ever: so here must be none.
func (p *pageReader) expandLz4(body io.Reader, want int64) error {
	stored := bytes.NewBuffer(p.lz4[0][:0])
	if _, err := stored.ReadFrom(body); err != nil {
		return err
	}
	p.lz4[0] = stored.Bytes()
	p.lz4[1] = slices.Grow(p.lz4[1][:0], int(want))[:want]
	n, err := lz4.UncompressBlock(p.lz4[0], p.lz4[1])
	if err == nil && int64(n) != want {
		err = fmt.Errorf("%d bytes, not the %d that it says", n, want)
	}
	return err
}

// notEOF is err, but for an end of the file where there must not be one.
func notEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// headerReader reads no more than left bytes, and none ahead.
type headerReader struct {
	in   *bufio.Reader
	left int
}

// Read reads up to left bytes.
func (h *headerReader) Read(p []byte) (int, error) {
	if h.left <= 0 {
		return 0, errors.New("too long")
	}
	n, err := h.in.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}

// ReadByte reads a byte.
func (h *headerReader) ReadByte() (byte, error) {
	if h.left <= 0 {
		return 0, errors.New("too long")
	}
	h.left--
	return h.in.ReadByte()
}
