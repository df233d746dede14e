package dataset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestProbe(t *testing.T) {
	dir := t.TempDir()
	for _, output := range []string{dir, filepath.Join(dir, "new")} {
		free, err := Probe(output)
		if err != nil || free <= 0 {
			t.Errorf("%s: %d bytes free, error %v", output, free, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("the probe leaves %v, error %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{filepath.Join(dir, "file"), "/proc"} { // a file, and a folder that takes none
		if _, err := Probe(output); err == nil {
			t.Errorf("%s is fine", output)
		}
	}
	// What others have in .tmp stays.
	other := filepath.Join(dir, tempName, "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Probe(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other); errors.Is(err, fs.ErrNotExist) {
		t.Error("the probe removes what others have made")
	}
}

// A folder in which no file can be made is an error, not an endless try.
func TestTempWhereNoneCanBe(t *testing.T) {
	for _, folder := range []string{"/proc", "/proc/flipmill"} {
		if f, err := createTemp(folder, "flipmill.*.tmp"); err == nil {
			f.Close()
			t.Errorf("%s takes %s", folder, f.Name())
		}
	}
}
