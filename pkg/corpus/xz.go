package corpus

import (
	"errors"
	"fmt"
	"io"

	"github.com/therootcompany/xz"
)

const xzMagic = "\xfd7zXZ\x00"

// xzReader says in our words what is wrong with a file.
type xzReader struct {
	text *xz.Reader
}

// newXZ reads xz with dictionaries of at most maxWindow bytes, in whichever block.
func newXZ(in io.Reader) (io.Reader, error) {
	text, err := xz.NewReader(in, maxWindow)
	return &xzReader{text}, explainXZ(err)
}

// Read reads expanded bytes.
func (x *xzReader) Read(p []byte) (int, error) {
	n, err := x.text.Read(p)
	return n, explainXZ(err)
}

func explainXZ(err error) error {
	switch {
	case errors.Is(err, xz.ErrMemlimit):
		return fmt.Errorf("its dictionary is larger than %d bytes", maxWindow)
	case errors.Is(err, xz.ErrBuf): // it wants more bytes, and there are none
		return io.ErrUnexpectedEOF
	}
	return err
}
