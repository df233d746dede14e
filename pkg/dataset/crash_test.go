//go:build cluster

package dataset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Variables that make this test binary a process that dies.
const (
	dieVariable   = "DATASET_TEST_DIE"   // at which step, counted from 0
	mergeVariable = "DATASET_TEST_MERGE" // set if it compacts a finished one instead
)

// TestDyingProcess is what TestDiesAnywhere runs as a process of its own. By
// itself it does nothing.
func TestDyingProcess(t *testing.T) {
	output := os.Getenv(outputVariable)
	if output == "" {
		return
	}
	last, err := strconv.Atoi(os.Getenv(dieVariable))
	if err != nil {
		t.Fatal(err)
	}
	trap := func(step, file string) {
		if last--; last < 0 {
			fmt.Printf("dies: %s %s\n", step, file)
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			select {}
		}
	}
	if os.Getenv(mergeVariable) == "" {
		continueDataset(t, output, trap)
		return
	}
	if err := dataset.CompactTrapped(filepath.Join(output, "job=demo"), 6, trap); err != nil {
		t.Fatal(err)
	}
}

// continueDataset finishes what earlier processes have left of a dataset.
func continueDataset(t *testing.T, output string, trap func(step, file string)) {
	t.Helper()
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	d, err := dataset.Open(output, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Clean(); err != nil {
		t.Fatal(err)
	}
	d.Trap(trap)
	committed, err := d.Committed()
	if err != nil {
		t.Fatal(err)
	}
	there := map[int]bool{}
	for _, f := range committed {
		there[f.Part] = true
	}
	for p := range 3 {
		if !there[p] {
			c.commit(t, d, p)
		}
	}
	if _, err := d.Finish(c.input()); err != nil {
		t.Fatal(err)
	}
}

// TestDiesAnywhere lets a process die at each step of each file of a dataset:
// before a file is written, after that, before and after its content is synced,
// after it has its name, before and after that is synced. The next process makes
// the same bytes.
func TestDiesAnywhere(t *testing.T) {
	t.Parallel()
	want := t.TempDir()
	continueDataset(t, want, nil)
	whole := tree(t, want)
	var deaths []string
	for {
		output := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDyingProcess$")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", dieVariable, len(deaths)), outputVariable+"="+output)
		out, died := dies(t, child)
		if !died {
			wantSteps(t, deaths)
			return // it had no step left to die at
		}
		deaths = append(deaths, strings.TrimSpace(string(out)))
		continueDataset(t, output, nil)
		if !maps.Equal(tree(t, output), whole) {
			t.Errorf("%s: the next process makes other files", out)
		}
	}
}

// dies runs a process that dies of its own signal, or ends well.
func dies(t *testing.T, child *exec.Cmd) (out []byte, died bool) {
	t.Helper()
	out, err := child.CombinedOutput()
	exit, _ := errors.AsType[*exec.ExitError](err)
	if err != nil && (exit == nil || exit.ExitCode() != -1) {
		t.Fatalf("%v\n%s", err, out)
	}
	return out, err != nil
}

// wantSteps: 3 results, 2 rejects, statistics, manifest and _SUCCESS, each in 5
// steps.
func wantSteps(t *testing.T, deaths []string) {
	t.Helper()
	count := map[string]int{}
	for _, d := range deaths {
		count[strings.Fields(d)[1]]++
	}
	want := map[string]int{"created": 8, "written": 8, "synced": 8, "linked": 8, "durable": 8}
	if !maps.Equal(count, want) {
		t.Errorf("died at %v", deaths)
	}
}

// TestCompactDies kills a process at each step of a compaction: there is the old
// dataset, or the new one, and the next compaction leaves the new one and nothing
// besides.
func TestCompactDies(t *testing.T) {
	t.Parallel()
	spec := testSpec(t, "plus", puzzle.Either)
	old, want := t.TempDir(), t.TempDir()
	smallCorpus(t, spec).write(t, old)
	before := tree(t, old)
	larger := spec
	larger.PartChunks = 6
	smallCorpus(t, larger).write(t, want)
	after := tree(t, want)
	seen := map[string]int{}
	for steps := 0; ; steps++ {
		output := t.TempDir()
		path := smallCorpus(t, spec).write(t, output)
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDyingProcess$")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", dieVariable, steps), outputVariable+"="+output, mergeVariable+"=1")
		out, died := dies(t, child)
		left := tree(t, output)
		maps.DeleteFunc(left, func(name, _ string) bool { return !strings.HasPrefix(name, "job=demo/") })
		switch {
		case maps.Equal(left, before):
			seen["old"]++
		case maps.Equal(left, after):
			seen["new"]++
		default:
			t.Errorf("%s: neither the old dataset nor the new one", out)
		}
		if _, _, err := dataset.Compact(path, 6, nil); err != nil {
			t.Errorf("%s: %v", out, err)
		}
		if !maps.Equal(tree(t, output), after) {
			t.Errorf("%s: the next compaction leaves other files", out)
		}
		if !died {
			// Results, rejects, statistics, manifest and _SUCCESS in 5 steps each, and
			// the mark; then replaced, put away, and the end.
			if seen["old"] != 26 || seen["new"] != 3 {
				t.Errorf("found after a death: %v", seen)
			}
			return
		}
	}
}

// TestDiesInBucket is TestDiesAnywhere for some of the steps, in a bucket.
func TestDiesInBucket(t *testing.T) {
	want := t.TempDir()
	continueDataset(t, want, nil)
	whole := tree(t, want)
	var deaths []string
	for step := 0; ; step += 8 {
		b := serveBucket(t)
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDyingProcess$")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", dieVariable, step), outputVariable+"="+inBucket, "TMPDIR="+t.TempDir())
		out, died := dies(t, child)
		if !died {
			if !maps.Equal(b.objects(t), whole) {
				t.Error("who does not die makes other files")
			}
			break
		}
		deaths = append(deaths, string(out))
		if _, there := b.objects(t)["job=demo/_SUCCESS"]; there {
			t.Errorf("%s: the dataset looks finished", out)
		}
		for name, data := range b.objects(t) {
			if whole[name] != data {
				t.Errorf("%s: %s is not what it must be", out, name)
			}
		}
		continueDataset(t, inBucket, nil)
		if !maps.Equal(b.objects(t), whole) {
			t.Errorf("%s: the next process makes other files", out)
		}
		_, temp, _ := strings.Cut(child.Env[len(child.Env)-1], "=")
		if left, err := os.ReadDir(temp); len(left) > 0 || err != nil {
			t.Errorf("%s: left on this machine: %v, %v", out, left, err)
		}
	}
	if len(deaths) != 5 { // of 8 files, in 5 steps each
		t.Errorf("died at %q", deaths)
	}
}

// TestRetry lets a retry die at each of its steps: before it, and after whatever
// follows, there is a whole dataset, the old one or the new, and in the end the
// new one and nothing besides.
func TestRetry(t *testing.T) {
	t.Parallel()
	c := smallCorpus(t, testSpec(t, "plus", puzzle.Either))
	want := t.TempDir()
	c.write(t, want)
	whole := tree(t, want)
	type death struct{ step, file string }
	steps := map[string]int{}
	for deaths := 0; ; deaths++ {
		output := t.TempDir()
		d := c.spoilt(t, output)
		left := deaths
		died := func() (at any) {
			defer func() { at = recover() }()
			c.retryAll(t, output, true, func(step, file string) {
				if left--; left < 0 {
					panic(death{step, file})
				}
			})
			return nil
		}()
		if at, ok := died.(death); ok {
			steps[at.step]++
		} else if died != nil {
			t.Fatal(died)
		}
		report, err := dataset.Verify(d.Path(), nil)
		if err != nil || len(report.Problems) > 0 {
			t.Errorf("died at %v: %+v, %v", died, report, err)
		}
		c.retryAll(t, output, false, nil)
		if !maps.Equal(tree(t, output), whole) {
			t.Errorf("died at %v: the next process makes other files", died)
		}
		if died == nil {
			// Results, statistics, manifest and _SUCCESS; then the folders.
			if want := (map[string]int{"created": 4, "written": 4, "synced": 4, "linked": 4, "durable": 4, "marked": 1, "replaced": 1, "put away": 1}); !maps.Equal(steps, want) {
				t.Errorf("died at %v, want %v", steps, want)
			}
			return
		}
	}
}

// Every value of the manifest is checked against the data files.
func TestVerifyManifestValues(t *testing.T) {
	path := smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, t.TempDir())
	file := filepath.Join(path, "manifest.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	changed := 0
	alter(whole, "", func(where string) {
		changed++
		var m dataset.Manifest
		loose, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(loose, &m) == nil { // keep the form, so that only the value can be found
			if loose, err = json.MarshalIndent(m, "", "  "); err != nil {
				t.Fatal(err)
			}
			loose = append(loose, '\n')
		}
		if err := os.WriteFile(file, loose, 0o644); err != nil {
			t.Fatal(err)
		}
		if found := problems(t, path); len(found) == 0 {
			t.Errorf("%s changed: nothing found", where)
		}
	})
	if changed < 100 {
		t.Errorf("only %d values changed", changed)
	}
}
