package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs the console blocks of the README in order, in an empty folder
// with the examples, and compares what they print. `make test` is left to
// whoever runs this test.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n\\$ (.*?)```").FindAllStringSubmatch(string(text), -1) {
		line, want, _ := strings.Cut(block[1], "\n")
		var got string
		switch {
		case strings.HasPrefix(line, "go run ./cmd/flipmill "):
			out, err := command(t, dir, strings.Fields(strings.TrimPrefix(line, "go run ./cmd/flipmill "))...).Output()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			got = string(out)
		case strings.HasPrefix(line, "duckdb -csv -c "):
			if got, err = query(dir, strings.Trim(strings.TrimPrefix(line, "duckdb -csv -c "), `"`)); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		case line == "make test":
			continue
		default:
			t.Fatalf("the README has a command that this test cannot run: %s", line)
		}
		if ran++; got != want {
			t.Errorf("%s prints\n%s\nthe README says\n%s", line, got, want)
		}
	}
	if ran < 3 {
		t.Errorf("found only %d commands in the README", ran)
	}
	for _, row := range exitTable {
		if want := fmt.Sprintf("| %d | %s |\n", row.code, row.meaning); !strings.Contains(string(text), want) {
			t.Errorf("the README's table of exit codes lacks %q", want)
		}
	}
}
