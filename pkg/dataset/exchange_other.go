//go:build !linux

package dataset

import "errors"

// exchange would let two folders change places in one step.
func exchange(_, _ string) error { return errors.ErrUnsupported }
