package dataset

import (
	"fmt"

	"github.com/flipmill/flipmill/pkg/tally"
)

// ReadTally reads the manifest of the dataset at path and its statistics, which
// must agree. The error is fs.ErrNotExist where the dataset is not finished.
func ReadTally(path string) (*Manifest, *tally.Tally, error) {
	v, err := openFinished(path)
	if err != nil {
		return nil, nil, err
	}
	t, err := v.readStats()
	if err != nil {
		return nil, nil, fmt.Errorf("read statistics of %s: %w", path, err)
	}
	return v.manifest, t, nil
}

// openFinished returns a verifier of the dataset at path that has not looked at
// anything but the manifest.
func openFinished(path string) (*verifier, error) {
	m, err := ReadManifest(path)
	if err != nil {
		return nil, err
	}
	v := &verifier{path: path, manifest: m}
	if v.files, err = below(path); err != nil {
		return nil, err
	}
	if v.spec, err = m.Spec.ParseSpec(); err == nil {
		v.layouts, err = newLayouts(v.spec)
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest of %s: %w", path, err)
	}
	return v, nil
}
