//go:build cluster

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPages walks through every page as a reader does: in a folder that has what a
// clone has, beside a NATS server with a worker and an aggregator and an S3 server
// whose bucket has levels, where a page has to do with such, it runs every command of
// the page. In a page,
//
//	```console   is one or more commands after "$ ", each with what it prints: "…" stands
//	             for the rest of a line, and a line "…" for any lines. In the reference,
//	             it is the examples of a verb, without what they print.
//	```sh        is a command a line; each ends well, or serves until the page ends
//	| to | run … is a table of commands, each row in a folder of its own
//	```file NAME is a file that the reader writes
//
// Nothing else has commands. With -update the pages are told what is printed now, where
// no "…" is.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, page := range allPages(t) {
		switch filepath.Base(page) {
		case "CHANGELOG.md": // what was true once
			continue
		case "analytics.md": // TestAnalytics
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			check(t, err)
			told := newReader(t, string(text)).walk(string(text))
			if *update {
				check(t, os.WriteFile(page, []byte(told), 0o666))
			}
		})
	}
}

// notHere are the commands that no test of pages can run, and why.
var notHere = []struct{ command, why string }{
	{`^make( |$)`, "the project's own work, of which CI does the parts"},
	{`^go (test|build|install) `, "compiles for minutes; CI builds, and runs each test and each benchmark"},
	{`^CGO_ENABLED=0 go build `, "the same"},
	{`^flipmill bench`, "measures for minutes; the script bench.txtar runs it"},
	{`kubectl `, "wants a Kubernetes; tests in deployments read what is applied"},
	{`^ssh `, "wants another machine"},
	{`^(aws|nats) `, "a program of others, which one has to install"},
	{`^export AWS_`, "names a profile, or a server, of the reader's own; here variables lead to the bucket"},
	{`--replicas 3`, "wants three servers; TestServersLost has them"},
	{`^sha256sum -c SHA256SUMS`, "wants a release, which is made outside tests"},
}

// reader is a person at a prompt.
type reader struct {
	t       *testing.T
	dir     string
	environ []string
	ports   map[string]string // those that pages name, and those that they are here
	exports string            // the commands that made variables
}

var (
	blocks   = regexp.MustCompile("(?ms)^```(console|sh|file \\S+)\n(.*?)^```$|^\\| to \\| run.*?\n\n")
	commands = regexp.MustCompile(`(?m)^\$ `)
	spans    = regexp.MustCompile("`((?:… \\| )?flipmill [^`]*)`")
	serves   = regexp.MustCompile(`^(nats-server|flipmill (worker|aggregator))\b`)
	orders   = regexp.MustCompile(`^flipmill (pause|resume|cancel) `)
	noBlock  = regexp.MustCompile(`(?m)^    (?:\$ )?(?:bin/)?(?:flipmill|nats-server|make|go|kubectl|duckdb) .*$|^\$ .*$`)
	toBroker = regexp.MustCompile(`flipmill (setup|doctor|submit|list|status|why|wait|watch|resume|retry|health|worker|aggregator)\b`)
	anyLines = regexp.MustCompile(`(?m)^…\n`)
	datasets = regexp.MustCompile(`(\w+)/job=([a-z0-9-]+)`)
)

// newReader makes what a page has to do with.
func newReader(t *testing.T, text string) *reader {
	r := &reader{t: t, environ: append(os.Environ(), "TERM=dumb"), ports: map[string]string{}}
	r.dir = r.folder()
	ownBroker := strings.Contains(text, "\nnats-server ")
	text = strings.Join(blocks.FindAllString(text, -1), "\n")
	if toBroker.MatchString(text) && !ownBroker {
		c := newCluster(t, nil)
		r.serveAt(c.url[strings.LastIndex(c.url, ":")+1:])
		c.dir = r.dir
		c.start("aggregator", "-o", "datasets")
		c.start("worker")
		c.run("submit", "boards.txt", "--size", "5x5", "--wait")
	}
	if strings.Contains(text, "s3://") {
		s3 := newBucket(t, "bucket")
		levels, err := os.ReadFile("../../examples/levels.csv")
		check(t, err)
		check(t, s3.put("levels/levels.csv", levels))
		r.environ = append(r.environ, s3.environment()...)
	}
	return r
}

func (r *reader) serveAt(port string) {
	r.ports["4222"] = port
	r.environ = append(r.environ, "NATS_URL=nats://127.0.0.1:"+port)
}

// folder makes one that has what people have before they read: a clone, and files of
// theirs.
func (r *reader) folder() string {
	r.t.Helper()
	root, err := filepath.Abs("../..")
	check(r.t, err)
	cmd := exec.CommandContext(r.t.Context(), "bash", "-c", `ln -s "$0"/{configs,deployments,examples,go.mod,go.sum} . && cp configs/flipmill.yaml . &&
		cp examples/boards-5x5.txt boards.txt && head -n 4 examples/flip-game.txt > board.txt && head -n 5 examples/fliptile.txt > tiles.txt &&
		mkdir levels && cp examples/levels.csv levels && cp examples/levels.csv b.csv && gzip < boards.txt > a.txt.gz`, root)
	cmd.Dir = r.t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	return cmd.Dir
}

// walk runs the commands of a page and returns it with what they print now.
func (r *reader) walk(text string) string {
	told := blocks.ReplaceAllStringFunc(text, func(block string) string {
		kind, body, _ := strings.Cut(strings.TrimPrefix(block, "```"), "\n")
		body = strings.TrimSuffix(body, "```")
		name, isFile := strings.CutPrefix(kind, "file ")
		switch {
		case isFile:
			check(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(body), 0o666))
		case strings.HasPrefix(kind, "|"):
			r.rows(body)
		case kind == "sh":
			r.obeyAll(r.dir, body)
		case !strings.HasPrefix(body, "$ "):
			r.obeyAll(r.folder(), body)
		default:
			var now strings.Builder
			for _, entry := range commands.Split(body, -1)[1:] {
				now.WriteString("$ " + r.enter(entry))
			}
			return "```console\n" + now.String() + "```"
		}
		return block
	})
	for _, line := range noBlock.FindAllString(blocks.ReplaceAllString(text, ""), -1) {
		r.t.Errorf("nothing runs %q: it is in no block of commands", line)
	}
	return told
}

// enter types a command of which the page says what it prints, and returns it with
// what it prints.
func (r *reader) enter(entry string) string {
	line, want, _ := strings.Cut(entry, "\n")
	for strings.HasSuffix(line, `\`) { // goes on in the next line
		var more string
		more, want, _ = strings.Cut(want, "\n")
		line += "\n" + more
	}
	if isNotHere(line) {
		return entry
	}
	got, _ := r.run(r.dir, line)
	pattern := anyLines.ReplaceAllString(regexp.QuoteMeta(want), "(?s:.*)")
	if regexp.MustCompile("^" + strings.ReplaceAll(pattern, "…", ".*") + "$").MatchString(got) {
		return entry
	}
	if !*update || strings.Contains(want, "…") {
		r.t.Errorf("%s\nprints\n%s\nthe page says\n%s", line, got, want)
		return entry
	}
	return line + "\n" + got
}

// rows obeys the commands of a table, each row in a folder of its own.
func (r *reader) rows(table string) {
	for row := range strings.Lines(table) {
		found := spans.FindAllStringSubmatch(row, -1)
		if len(found) == 0 {
			continue
		}
		dir := r.folder()
		for _, span := range found {
			r.obey(dir, strings.ReplaceAll(span[1], "… |", "cat boards.txt |"))
		}
	}
}

// obeyAll obeys the commands of a block that has no outcomes.
func (r *reader) obeyAll(dir, block string) {
	r.t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			r.obey(dir, line)
		}
	}
}

// obey types a command that must end well, or serve. Datasets that it reads are there.
func (r *reader) obey(dir, line string) {
	r.t.Helper()
	if strings.Contains(line, " --http ") && !strings.HasPrefix(line, "flipmill health ") {
		r.ports["9464"] = freePort(r.t)
	}
	switch {
	case isNotHere(line):
		return
	case strings.HasPrefix(line, "export "), strings.HasPrefix(line, "set -a"):
		r.exports += line + "\n"
		return
	case serves.MatchString(line):
		r.serve(dir, line)
		return
	}
	for _, dataset := range datasets.FindAllStringSubmatch(line, -1) {
		if _, err := os.Stat(filepath.Join(dir, dataset[0])); errors.Is(err, fs.ErrNotExist) {
			r.obey(dir, "flipmill run boards.txt --size 5x5 --output "+dataset[1]+" --job "+dataset[2])
		}
	}
	out, err := r.run(dir, line)
	if err != nil && !(orders.MatchString(line) && strings.Contains(out, "the job has ended")) { // TestJobVerbs gives orders in time
		r.t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// serve starts a command that goes on until the page has been read, at ports that are
// free. When it returns, it serves.
func (r *reader) serve(dir, line string) {
	r.t.Helper()
	line, _, _ = strings.Cut(line, " #")
	ready := " started"
	if config, is := strings.CutPrefix(line, "nats-server "); is {
		ready = "Server is ready"
		r.serveAt(freePort(r.t))
		line = "nats-server -a 127.0.0.1 -p " + r.ports["4222"] + " " + config
	}
	start(r.t, nil, dir, "env", append(r.environ, "FLIPMILL_LOG_LEVEL=info", "bash", "-c", r.typed("exec "+line))...).await(ready, 1)
}

func freePort(t *testing.T) string {
	_, port, _ := strings.Cut(freeAddresses(t, 1)[0], ":")
	return port
}

// typed is a command as it is typed here, where servers have other ports than on a
// page.
func (r *reader) typed(line string) string {
	line = strings.NewReplacer("go run ./cmd/flipmill", "flipmill", "bin/flipmill", "flipmill", "JOB", "boards", "//broker:", "//localhost:").Replace(r.exports + line)
	return r.translated(line, false)
}

func (r *reader) translated(text string, back bool) string {
	for page, here := range r.ports {
		if back {
			page, here = here, page
		}
		text = strings.ReplaceAll(text, ":"+page, ":"+here)
	}
	return text
}

// run returns what a command prints, with the ports that the page has.
func (r *reader) run(dir, line string) (string, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), processPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", r.typed(line))
	cmd.Dir, cmd.Env = dir, r.environ
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		r.t.Fatal(err)
	}
	return r.translated(string(out), true), err
}

func isNotHere(line string) bool {
	return slices.ContainsFunc(notHere, func(e struct{ command, why string }) bool {
		return regexp.MustCompile(e.command).MatchString(line)
	})
}
