package dataset

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// Records are replaced, found again by anybody, and dropped; nothing else is left
// of them, and what is no record of ours is left alone.
func TestRecords(t *testing.T) {
	output := t.TempDir()
	want := func(records map[string]string) {
		t.Helper()
		found, err := Records(output)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for job, data := range found {
			got[job] = string(data)
		}
		if !maps.Equal(got, records) {
			t.Errorf("got %q, want %q", got, records)
		}
		if left, _ := filepath.Glob(filepath.Join(output, ".tmp", "*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want(nil)
	ok(DropRecord(output, "a"))
	ok(KeepRecord(output, "a", []byte("first")))
	ok(KeepRecord(output, "b", []byte("of b")))
	ok(KeepRecord(output, "a", []byte("second")))
	ok(KeepRecord(output, "a", []byte("second")))
	ok(os.WriteFile(filepath.Join(output, recordsName, ".nfs0001"), nil, 0o600))
	want(map[string]string{"a": "second", "b": "of b"})
	ok(DropRecord(output, "a"))
	want(map[string]string{"b": "of b"})
	if KeepRecord(output, "../a", nil) == nil || DropRecord(output, "../.output-id") == nil {
		t.Error("a job's id may be a path")
	}
}
