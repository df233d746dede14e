//go:build cluster

package corpus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestObjects: what is read from a bucket, in every format and compression, is what
// is read from the disk, but for its name.
func TestObjects(t *testing.T) {
	b := newBucket(t)
	folder := t.TempDir()
	var files []string
	for _, pattern := range []string{"../../examples/*.*", "testdata/*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, names...)
	}
	read := 0
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.put("corpora/"+filepath.Base(name), data)
		local := filepath.Join(folder, filepath.Base(name))
		if err := os.WriteFile(local, data, 0o644); err != nil {
			t.Fatal(err)
		}
		opts := corpus.Options{Symbols: puzzle.Digits()}
		want, wantErr := recordsOf(t, local, opts)
		got, gotErr := recordsOf(t, "s3://bucket/corpora/"+filepath.Base(name), opts)
		want = strings.ReplaceAll(want, local, "FILE")
		got = strings.ReplaceAll(got, "s3://bucket/corpora/"+filepath.Base(name), "FILE")
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s: %d bytes of records, then %v; from the disk %d, then %v", name, len(got), gotErr, len(want), wantErr)
		}
		if wantErr == nil {
			read++
		}
	}
	if read < 10 {
		t.Errorf("only %d of %d files have records", read, len(files))
	}
}
