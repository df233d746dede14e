package dataset_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Whoever cleans up takes nothing away from one who lives, whether he writes a
// part or has only begun to: all of them come to their end, with the same files.
// What dead processes leave, TestDiesAnywhere looks for.
func TestCleanSparesTheLiving(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	want := t.TempDir()
	c.write(t, want)
	output := t.TempDir()
	stop := make(chan struct{})
	var cleaning, writing sync.WaitGroup
	for range 2 {
		cleaning.Go(func() {
			d, err := dataset.Open(output, "demo", spec)
			for ; err == nil; err = d.Clean() {
				select {
				case <-stop:
					return
				default:
				}
			}
			t.Error(err)
		})
	}
	for range 3 {
		writing.Go(func() { c.write(t, output) })
	}
	writing.Wait()
	close(stop)
	cleaning.Wait()
	if !maps.Equal(tree(t, output), tree(t, want)) {
		t.Error("other files than without the others")
	}
}

// A folder has one identity, whoever asks for it first, and another has another.
func TestIdentify(t *testing.T) {
	output := t.TempDir()
	if id, err := dataset.Identity(output); id != "" || err != nil {
		t.Fatalf("a new folder has the identity %q, %v", id, err)
	}
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var err error
			if ids[i], err = dataset.Identify(output); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("identities %q", ids)
		}
	}
	if id, err := dataset.Identity(output); id != ids[0] || err != nil {
		t.Errorf("it is %q, %v", id, err)
	}
	if left, err := os.ReadDir(filepath.Join(output, ".tmp")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if other, err := dataset.Identify(t.TempDir()); err != nil || other == ids[0] {
		t.Errorf("another folder is %q, %v", other, err)
	}
	for _, text := range []string{"", "no id", strings.Repeat("x", 65)} {
		if err := os.WriteFile(filepath.Join(output, ".output-id"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if id, err := dataset.Identify(output); err == nil {
			t.Errorf("%q is read as %q", text, id)
		}
	}
}
