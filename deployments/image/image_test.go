// Package image_test builds what the Containerfile builds, without a container engine.
package image_test

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// buildCommand returns the Containerfile's go build command, for a shell, with
// the binary going to out instead.
func buildCommand(t *testing.T, out string) string {
	t.Helper()
	text, err := os.ReadFile("Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	run := regexp.MustCompile(`(?m)^RUN ((?:--mount=\S+\s+)*)(.*go build .*) -o (\S+) (\./cmd/flipmill)$`).FindStringSubmatch(joined)
	if run == nil {
		t.Fatalf("no RUN line with go build in\n%s", text)
	}
	if entry := `ENTRYPOINT ["/` + filepath.Base(run[3]) + `"]`; !strings.Contains(joined, entry) {
		t.Errorf("the binary is %s, but there is no %s", run[3], entry)
	}
	return run[2] + " -o " + out + " " + run[4]
}

// TestBuildCommand runs the build and checks what a scratch image needs: a
// binary that asks for no loader, runs, and knows its version.
func TestBuildCommand(t *testing.T) {
	touchSources(t)
	binary := filepath.Join(t.TempDir(), "flipmill")
	build := exec.Command("sh", "-c", buildCommand(t, binary))
	build.Dir = root
	build.Env = append(os.Environ(), "VERSION=v0.0.0-image-test")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}

	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary is not static: it has a %v segment", p.Type)
		}
	}

	version := exec.Command(binary, "version")
	version.Env = []string{} // as little as the image has
	out, err := version.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v0.0.0-image-test") {
		t.Errorf("flipmill version: %v, output %q, want the version it was built with", err, out)
	}
}

// touchSources looks at every file that the build reads. Go remembers a passed
// test until a file that the test itself looked at changes.
func touchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "out" || d.Name() == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") || strings.HasPrefix(d.Name(), "go."):
			_, err = os.Stat(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
