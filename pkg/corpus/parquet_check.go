package corpus

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a page. Writers make pages of about 1 MiB.
const (
	maxPageBytes  = 128 << 20 // when expanded
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
			values, err := checkPages(in, size, &group.Columns[c.Index()])
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
	gzip  *gzip.Reader
	zstd  *zstd.Decoder
}

func (p *pageReader) close() {
	if p.zstd != nil {
		p.zstd.Close()
	}
}

// page reads a page and returns the number of its values.
func (p *pageReader) page() (values int64, err error) {
	if _, err := p.Peek(1); err != nil {
		return 0, err
	}
	var header format.PageHeader
	var protocol thrift.CompactProtocol
	if err := thrift.NewDecoder(protocol.NewReader(&headerReader{p.Reader, maxPageHeader})).Decode(&header); err != nil {
		return 0, fmt.Errorf("page header: %w", notEOF(err))
	}
	plain, codec, encoding := int64(0), p.codec, format.Plain // plain is what is in front and never compressed
	if h, ok := header.DataPageHeader.Get(); ok {
		values, encoding = int64(h.NumValues), h.Encoding
	}
	if h, ok := header.DictionaryPageHeader.Get(); ok {
		values = max(values, int64(h.NumValues))
	}
	if h, ok := header.DataPageHeaderV2.Get(); ok {
		values, encoding = max(values, int64(h.NumValues)), h.Encoding
		plain = int64(h.RepetitionLevelsByteLength) + int64(h.DefinitionLevelsByteLength)
		if compressed, ok := h.IsCompressed.Get(); ok && !compressed {
			codec = format.Uncompressed
		}
	}
	stored, expanded := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
	switch {
	case values < 0 || values > maxPageValues:
		return 0, fmt.Errorf("a page of %d values, want at most %d", values, maxPageValues)
	case stored < 0 || expanded < 0 || expanded > maxPageBytes || plain < 0 || plain > min(stored, expanded):
		return 0, fmt.Errorf("a page of %d bytes that expand to %d, want at most %d", stored, expanded, maxPageBytes)
	case encoding == format.DeltaByteArray: // a few bytes may become any number of them, which no header tells
		return 0, fmt.Errorf("encoding %s is not read: write it with another", encoding)
	}
	if _, err := io.CopyN(io.Discard, p, plain); err != nil {
		return 0, notEOF(err)
	}
	body := &io.LimitedReader{R: p.Reader, N: stored - plain}
	if err := p.expand(body, codec, expanded-plain); err != nil {
		return 0, fmt.Errorf("expand a page: %w", notEOF(err))
	}
	if _, err = io.CopyN(io.Discard, p, body.N); err != nil {
		return 0, notEOF(err)
	}
	return values, nil
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
	default:
		return fmt.Errorf("codec %s is not read: write it with zstd, snappy, gzip or none", codec)
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
