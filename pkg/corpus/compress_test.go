package corpus_test

import (
	"bytes"
	"compress/gzip" // not the one that the package reads with
	"io"

	"github.com/klauspost/compress/zstd"
)

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

func zstded(text string) string {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	io.WriteString(z, text)
	z.Close()
	return b.String()
}
