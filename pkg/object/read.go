package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// ErrChanged says that an object is not the one that was opened: somebody has
// written another with its name.
var ErrChanged = errors.New("it changed while it was read")

const (
	patience = 8 // attempts at the next byte, when connections break

	blockBytes = 1 << 20
	keptBlocks = 16 // for as many columns of a Parquet file
	smallRead  = 64 << 10
)

// Reader is an open object: one version of it. Read reads it from its beginning,
// and goes on where it was when a connection breaks.
type Reader struct {
	client *Client
	url    string
	size   int64
	tag    string // of the version

	body   io.ReadCloser // what follows; nil where nothing is under way
	offset int64         // of the next byte

	mu     sync.Mutex
	blocks []block // that were read last, the latest at the end
}

type block struct {
	start int64
	data  []byte
}

// Open opens an object.
func (c *Client) Open(url string) (*Reader, error) {
	bucket, key, err := split(url)
	if err != nil {
		return nil, err
	}
	head, err := c.s3.HeadObject(c.ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, explain("open", url, err)
	}
	return &Reader{client: c, url: url, size: aws.ToInt64(head.ContentLength), tag: aws.ToString(head.ETag)}, nil
}

// Size returns the object's size in bytes.
func (r *Reader) Size() int64 { return r.size }

// Close ends the reading.
func (r *Reader) Close() error {
	if r.body == nil {
		return nil
	}
	body := r.body
	r.body = nil
	return body.Close()
}

// Read reads the next bytes.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.offset == r.size || len(p) == 0 {
		return 0, r.end()
	}
	for try := range patience {
		if err := r.pause(try); err != nil {
			return 0, err
		}
		if r.body == nil {
			if r.body, err = r.get(r.offset, r.size); err != nil {
				return 0, err
			}
		}
		n, err = r.body.Read(p[:min(int64(len(p)), r.size-r.offset)])
		r.offset += int64(n)
		if err != nil {
			r.Close() // what is broken cannot be closed better
		}
		if n > 0 && (r.offset < r.size || err == io.EOF) {
			err = nil // if there was one, the next call makes good for it
		}
		if n > 0 {
			return n, err
		}
	}
	return 0, r.broken(r.offset, err)
}

// end reads the end of the last connection, at which checksums are compared.
func (r *Reader) end() error {
	if r.offset < r.size {
		return nil
	}
	if r.body != nil {
		_, err := r.body.Read(make([]byte, 1))
		r.Close()
		if err != io.EOF {
			return explain("read", r.url, fmt.Errorf("at its end: %w", err))
		}
	}
	return io.EOF
}

// ReadAt reads bytes from anywhere. Small reads, such as those of the pages of a
// Parquet file, are served from blocks that are kept.
func (r *Reader) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset < 0 || offset >= r.size {
		return 0, io.EOF
	}
	if rest := r.size - offset; rest < int64(len(p)) {
		p, err = p[:rest], io.EOF
	}
	if len(p) > smallRead {
		n, readErr := r.fetch(p, offset)
		return n, cmp.Or(readErr, err)
	}
	for n < len(p) {
		more, blockErr := r.readBlock(p[n:], offset+int64(n))
		if n += more; blockErr != nil {
			return n, blockErr
		}
	}
	return n, err
}

// readBlock reads bytes of one block.
func (r *Reader) readBlock(p []byte, offset int64) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	start := offset - offset%blockBytes
	var b block
	if i := slices.IndexFunc(r.blocks, func(b block) bool { return b.start == start }); i >= 0 {
		b = r.blocks[i]
		r.blocks = slices.Delete(r.blocks, i, i+1)
	} else {
		if len(r.blocks) == keptBlocks {
			b = r.blocks[0]
			r.blocks = slices.Delete(r.blocks, 0, 1)
		}
		size := min(blockBytes, r.size-start)
		b = block{start, slices.Grow(b.data[:0], int(size))[:size]}
		if _, err := r.fetch(b.data, start); err != nil {
			return 0, err
		}
	}
	r.blocks = append(r.blocks, b)
	return copy(p, b.data[offset-start:]), nil
}

// fetch fills p, all of which is within the object.
func (r *Reader) fetch(p []byte, offset int64) (n int, err error) {
	for try := 0; ; try++ {
		if err := r.pause(try); err != nil {
			return n, err
		}
		body, err := r.get(offset+int64(n), offset+int64(len(p)))
		if err != nil {
			return n, err
		}
		more, err := io.ReadFull(body, p[n:])
		body.Close() // all that is wanted of it was read
		switch n += more; {
		case n == len(p):
			return n, nil
		case more > 0:
			try = -1
		case try == patience-1:
			return n, r.broken(offset+int64(n), err)
		}
	}
}

// get asks for the bytes from..to of the version that was opened.
func (r *Reader) get(from, to int64) (io.ReadCloser, error) {
	bucket, key, err := split(r.url)
	if err != nil {
		return nil, err
	}
	in := &s3.GetObjectInput{Bucket: &bucket, Key: &key}
	if r.tag != "" {
		in.IfMatch = &r.tag
	}
	if to-from < r.size {
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	out, err := r.client.s3.GetObject(r.client.ctx, in)
	if err != nil {
		return nil, explain("read", r.url, err)
	}
	// There are servers that know no If-Match, or no ranges.
	switch got := aws.ToInt64(out.ContentLength); {
	case aws.ToString(out.ETag) != r.tag:
		err = ErrChanged
	case got != to-from:
		err = fmt.Errorf("asked for %d bytes, the server has sent %d", to-from, got)
	}
	if err != nil {
		out.Body.Close()
		return nil, explain("read", r.url, err)
	}
	return out.Body, nil
}

func (r *Reader) broken(at int64, err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return explain("read", r.url, &failure{fmt.Errorf("the connection breaks at byte %d, %d times in a row: %w", at, patience, err), true})
}

// pause waits before an attempt, but for the first two: most connections that break
// were idle, or too long.
func (r *Reader) pause(try int) error {
	if try > 1 {
		select {
		case <-time.After(r.client.pause << (try - 2)):
		case <-r.client.ctx.Done():
		}
	}
	if r.client.ctx.Err() != nil {
		return explain("read", r.url, context.Cause(r.client.ctx))
	}
	return nil
}
