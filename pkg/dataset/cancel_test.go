package dataset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// A cancelled dataset says so in its folder, even where that had nothing else,
// and is not finished. Driven again to its end it is as if nothing had been.
func TestCancel(t *testing.T) {
	output := t.TempDir()
	d, err := dataset.Open(output, "j", testSpec(t, "plus", puzzle.Zero))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is harmless
		if err := d.Cancel(); err != nil {
			t.Fatal(err)
		}
	}
	mark := filepath.Join(output, "job=j", "_CANCELLED")
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
	if finished, err := dataset.Finished(d.Path()); finished || err != nil {
		t.Errorf("finished: %v, %v", finished, err)
	}
	if _, err := d.Finish(dataset.Input{CorpusSHA256: strings.Repeat("0", 64)}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("the mark after the end: %v", err)
	}
	report, err := dataset.Verify(d.Path(), nil)
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%v, %v", report, err)
	}
}
