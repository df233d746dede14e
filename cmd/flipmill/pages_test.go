//go:build cluster

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPages walks through pages as a reader does: in a folder with the examples,
// beside a NATS server with a worker and an aggregator, and an S3 server whose bucket
// has levels, it runs every command of a page and compares what is printed. In a page,
//
//	```console   is one or more commands after "$ ", each with what it prints;
//	             a line "…" stands for any lines
//	```csv …     and blocks of other kinds are not run, but for
//	```file NAME is a file that the reader writes
//
// With -update the pages are told what is printed now, where no "…" is.
func TestPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("found %d pages in docs/howto (%v)", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md", "../../docs/tutorial.md") {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			newReader(t).walk(page)
		})
	}
}

// reader is a person at a prompt.
type reader struct {
	t       *testing.T
	dir     string
	environ []string
}

func newReader(t *testing.T) *reader {
	c := newCluster(t, nil)
	linkExamples(t, c.dir)
	c.start("aggregator", "-o", "shared")
	c.start("worker")
	s3 := newBucket(t, "bucket")
	levels, err := os.ReadFile("../../examples/levels.csv")
	check(t, err)
	check(t, s3.put("levels/levels.csv", levels))
	environ := append(os.Environ(), "NATS_URL="+c.url, "TERM=dumb")
	return &reader{t, c.dir, append(environ, s3.environment()...)}
}

var (
	blocks   = regexp.MustCompile("(?ms)^```(console|file \\S+)\n(.*?)^```$")
	commands = regexp.MustCompile(`(?m)^\$ `)
)

func (r *reader) walk(page string) {
	text, err := os.ReadFile(page)
	if err != nil {
		r.t.Fatal(err)
	}
	ran := 0
	told := blocks.ReplaceAllStringFunc(string(text), func(block string) string {
		kind, body, _ := strings.Cut(strings.TrimPrefix(block, "```"), "\n")
		body = strings.TrimSuffix(body, "```")
		if name, isFile := strings.CutPrefix(kind, "file "); isFile {
			if err := os.WriteFile(filepath.Join(r.dir, name), []byte(body), 0o666); err != nil {
				r.t.Fatal(err)
			}
			return block
		}
		var now strings.Builder
		for _, entry := range commands.Split(body, -1)[1:] {
			ran++
			now.WriteString("$ " + r.enter(entry))
		}
		return "```console\n" + now.String() + "```"
	})
	if ran == 0 {
		r.t.Errorf("%s has no command", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(told), 0o666); err != nil {
			r.t.Fatal(err)
		}
	}
}

// enter runs a command and returns it with what it prints.
func (r *reader) enter(entry string) string {
	line, want, _ := strings.Cut(entry, "\n")
	for strings.HasSuffix(line, `\`) { // goes on in the next line
		var more string
		more, want, _ = strings.Cut(want, "\n")
		line += "\n" + more
	}
	if line == "make test" { // this is it
		return entry
	}
	typed := strings.ReplaceAll(line, "go run ./cmd/flipmill", "flipmill")
	cmd := exec.CommandContext(r.t.Context(), "bash", "-c", typed)
	cmd.Dir, cmd.Env = r.dir, r.environ
	out, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		r.t.Fatal(err)
	}
	got := string(out)
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…\n", "(?s:.*)") + "$"
	if regexp.MustCompile(pattern).MatchString(got) {
		return entry
	}
	if !*update || strings.Contains(want, "…\n") {
		r.t.Errorf("%s\nprints\n%s\nthe page says\n%s", line, got, want)
		return entry
	}
	return line + "\n" + got
}
