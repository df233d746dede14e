package dataset_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestCompact: a dataset with larger parts is, byte for byte, the one that its job
// leaves with --part-chunks of that number; once more changes nothing.
func TestCompact(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from, to, want int
		change         func(s *puzzle.Spec)
	}{
		{1, 1, 1, func(*puzzle.Spec) {}},
		{1, 2, 2, func(*puzzle.Spec) {}},
		{1, 64, 64, func(*puzzle.Spec) {}},
		{2, 5, 4, func(*puzzle.Spec) {}}, // parts stay whole
		{3, 5, 3, func(*puzzle.Spec) {}},
		{5, 64, 5, func(*puzzle.Spec) {}}, // there is one part
		{2, 6, 6, func(s *puzzle.Spec) { s.Cells, s.Compression = dataset.CellsBits, dataset.CompressionSnappy }},
		{1, 3, 3, func(s *puzzle.Spec) { s.Columns = nil }},
		{2, 4, 4, func(s *puzzle.Spec) { s.Keep = []string{"level", "author"} }},
	} {
		spec := testSpec(t, "plus", puzzle.Either)
		test.change(&spec)
		spec.PartChunks = test.from
		output, want := t.TempDir(), t.TempDir()
		path := smallCorpus(t, spec).write(t, output)
		spec.PartChunks = test.want
		smallCorpus(t, spec).write(t, want)
		for range 2 {
			_, is, err := dataset.Compact(path, test.to, nil)
			if err != nil {
				t.Fatalf("%d to %d: %v", test.from, test.to, err)
			}
			if is.Spec.PartChunks != test.want || len(is.Parts) != (5+test.want-1)/test.want {
				t.Errorf("%d to %d: %d parts of %d", test.from, test.to, len(is.Parts), is.Spec.PartChunks)
			}
			if !maps.Equal(tree(t, output), tree(t, want)) {
				t.Errorf("%d to %d: other files than of parts of %d", test.from, test.to, test.want)
			}
		}
		spec.PartChunks = test.from
		if _, err := dataset.Open(output, "demo", spec); (err == nil) != (test.from == test.want) || err != nil && !strings.Contains(err.Error(), "part-chunks is") {
			t.Errorf("%d to %d: opened with the old number: %v", test.from, test.to, err)
		}
		reader, err := dataset.NewReader(output, "demo", spec)
		if err != nil {
			t.Fatalf("%d to %d: read with the old number: %v", test.from, test.to, err)
		}
		if parts, _, err := reader.Committed(); err != nil || parts != (5+test.want-1)/test.want {
			t.Errorf("%d to %d: %d parts are found with the old number, %v", test.from, test.to, parts, err)
		}
		if report, err := dataset.Verify(path, nil); err != nil || !report.OK() {
			t.Errorf("%d to %d: %v, %v", test.from, test.to, report.Problems, err)
		}
	}
}

// TestCompactInto: in another output it is the dataset that its job leaves there with
// --part-chunks of that number, also where there is nothing to merge and where two make it
// at a time, and the old one stays.
func TestCompactInto(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	b := serveBucket(t)
	for _, size := range []int{1, 64} {
		large := spec
		large.PartChunks = size
		from, want := t.TempDir(), t.TempDir()
		smallCorpus(t, large).write(t, want)
		spec.PartChunks = 1
		paths := []string{smallCorpus(t, spec).write(t, from), dataset.Path(inBucket+"/old", "demo")}
		smallCorpus(t, spec).write(t, inBucket+"/old")
		before, bucketBefore := tree(t, from), b.objects(t)
		for i, path := range paths {
			folder, objects := t.TempDir(), fmt.Sprintf("%s/new/%d-%d", inBucket, size, i)
			var compacting sync.WaitGroup
			for _, into := range []string{folder, objects} {
				for range 2 {
					compacting.Go(func() {
						if _, is, err := dataset.CompactInto(into, path, size, nil); err != nil || is.Spec.PartChunks != size {
							t.Errorf("%s into %s: %v", path, into, err)
						}
					})
				}
			}
			compacting.Wait()
			if !maps.Equal(tree(t, folder), tree(t, want)) {
				t.Errorf("%s into a folder: other files than of parts of %d", path, size)
			}
			prefix := fmt.Sprintf("new/%d-%d/", size, i)
			made := map[string]string{}
			for name, content := range b.objects(t) {
				if inside, ok := strings.CutPrefix(name, prefix); ok {
					made[inside] = content
				}
			}
			if !maps.Equal(made, tree(t, want)) {
				t.Errorf("%s into a bucket: other objects than of parts of %d", path, size)
			}
		}
		after := b.objects(t)
		maps.DeleteFunc(after, func(name, _ string) bool { _, old := bucketBefore[name]; return !old })
		if !maps.Equal(tree(t, from), before) || !maps.Equal(after, bucketBefore) {
			t.Errorf("parts of %d: the old dataset is another", size)
		}
	}
}

// TestCompactDamaged: what is not as the manifest says is not given a new checksum, and
// nothing is left of the attempt.
func TestCompactDamaged(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"results/part-00001.parquet", "rejects/part-00001.parquet", "results/part-00002.parquet"} {
		output := t.TempDir()
		path := smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, output)
		data, err := os.ReadFile(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		data[100] ^= 1
		if err := os.WriteFile(filepath.Join(path, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		before := tree(t, output)
		if _, _, err := dataset.Compact(path, 4, nil); err == nil || !strings.Contains(err.Error(), name+" is not the file that the manifest lists") {
			t.Errorf("%s: %v", name, err)
		}
		if !maps.Equal(tree(t, output), before) {
			t.Errorf("%s: the output is another", name)
		}
	}
}

// TestCompactOvertaken: a retry that replaces the dataset meanwhile wins.
func TestCompactOvertaken(t *testing.T) {
	t.Parallel()
	c, output, want := smallCorpus(t, testSpec(t, "plus", puzzle.Either)), t.TempDir(), t.TempDir()
	d := c.spoilt(t, output)
	c.write(t, want)
	err := dataset.CompactTrapped(d.Path(), 64, func(step, _ string) {
		if step == "marked" {
			c.retryAll(t, output, true, nil)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "another dataset has taken its place meanwhile") {
		t.Errorf("%v", err)
	}
	if !maps.Equal(tree(t, output), tree(t, want)) {
		t.Error("it is not the dataset of the retry")
	}
}

// TestCompactErrors: what is no finished dataset is said to be none.
func TestCompactErrors(t *testing.T) {
	t.Parallel()
	output := t.TempDir()
	c := smallCorpus(t, testSpec(t, "plus", puzzle.Either))
	d, err := dataset.Open(output, "demo", c.spec)
	if err != nil {
		t.Fatal(err)
	}
	c.commit(t, d, 0)
	for path, want := range map[string]string{output: "datasets are the folders in it", d.Path(): "no finished dataset in", filepath.Join(output, "job=none"): "no such file"} {
		if _, _, err := dataset.Compact(path, 64, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
