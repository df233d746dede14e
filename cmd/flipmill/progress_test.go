package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// said shows a meter for 12 s of a made-up clock: 10,000 of 40,000 after 1 s, and
// 20,000 of 40,000 at the end.
func said(t *testing.T, mode string, sure bool) (text string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var out bytes.Buffer // written by one goroutine, which stop waits for
		m := newMeter("run", "records", func() (int64, bool) { return 40_000, sure })
		stop := m.show(&out, mode)
		m.done.Store(10_000)
		<-time.After(11 * time.Second)
		m.done.Store(20_000)
		<-time.After(time.Second + time.Millisecond)
		stop()
		text = out.String()
	})
	return text
}

// A log has a line now and then, and whoever is done at once has none.
func TestProgressPlain(t *testing.T) {
	t.Parallel()
	want := "run: 10,000 of about 40,000 records, 25%, 2,000/s, 15s left\nrun: 10,000 of about 40,000 records, 25%, 1,000/s, 30s left\n"
	if got := said(t, "plain", false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// What is no terminal gets lines.
	want = strings.ReplaceAll(want, "about ", "")
	if got := said(t, "auto", true); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := said(t, "none", true); got != "" {
		t.Errorf("none says %q", got)
	}
	m := newMeter("generate", "boards", func() (int64, bool) { return 0, false })
	m.done.Store(1234)
	if got := m.now(2*time.Second, false).String(); got != "generate: 1,234 boards, 617/s" {
		t.Errorf("got %q", got)
	}
}

// A program gets an object each second, and one at the end.
func TestProgressJSON(t *testing.T) {
	t.Parallel()
	lines := progressLines(t, []byte(said(t, "json", false)))
	if len(lines) != 13 {
		t.Fatalf("%d lines in 12 seconds, want 12 and one for the end", len(lines))
	}
	first, last := lines[0], lines[12]
	if first["done"] != 10_000.0 || first["total"] != 40_000.0 || first["estimated"] != true || first["seconds"] != 1.0 || first["rate"] != 10_000.0 || first["seconds_left"] != 3.0 {
		t.Errorf("first %v", first)
	}
	if last["done"] != 20_000.0 || last["ended"] != true {
		t.Errorf("last %v", last)
	}
}

// progressLines parses what --progress json wrote: lines with the documented
// fields, of which the last alone is the end.
func progressLines(t *testing.T, text []byte) (lines []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, name := range []string{"progress", "unit", "done", "total", "estimated", "seconds", "rate", "seconds_left", "ended"} {
			if _, ok := fields[name]; !ok {
				t.Errorf("no %s in %s", name, line)
			}
		}
		if len(fields) != 9 {
			t.Errorf("%d fields in %s", len(fields), line)
		}
		lines = append(lines, fields)
	}
	for i, fields := range lines {
		if fields["ended"] != (i == len(lines)-1) {
			t.Errorf("line %d of %d: ended %v", i, len(lines), fields["ended"])
		}
	}
	return lines
}

// A bar is one line that is written again and again; the last state stays.
func TestProgressBar(t *testing.T) {
	t.Parallel()
	text := said(t, "bar", true)
	if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		t.Errorf("the bar is no line: %q", text)
	}
	for _, want := range []string{"\r  25% |██", "|  run: 10,000 of 40,000 records, 10,000/s, 3s left", "50% |█", "|  run: 20,000 of 40,000 records, "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}

// The verbs that take long tell programs how far they are, in the end of all that
// they were to do.
func TestProgressOfVerbs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkExamples(t, dir)
	for _, v := range []struct {
		args []string
		unit string
		done float64
	}{
		{[]string{"run", "examples/boards-5x5.txt"}, "records", 10_000},
		{[]string{"run", "--generate", "random,count=70000", "--size", "3x3", "--columns", "none", "--job", "counts"}, "records", 70_000},
		{[]string{"verify", "out/job=boards-5x5"}, "records", 10_000},
		{[]string{"verify", "out/job=counts"}, "records", 70_000},
		{[]string{"run", "--generate", "random,count=70000", "--size", "3x3", "--part-chunks", "1", "--job", "parts"}, "records", 70_000},
		{[]string{"compact", "out/job=parts"}, "records", 70_000},
		{[]string{"report", "out/job=boards-5x5"}, "searches", 2}, // hardest boards of one size, and rejects
		{[]string{"check", "examples/boards-5x5.txt"}, "records", 10_000},
		{[]string{"generate", "random,count=5000", "--size", "4x4"}, "boards", 5000},
	} {
		cmd := command(t, dir, append(v.args, "--progress", "json")...)
		var told bytes.Buffer
		cmd.Stderr = &told
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", v.args, err, told.String())
		}
		lines := progressLines(t, told.Bytes())
		if len(lines) == 0 {
			t.Fatalf("%v: nothing", v.args)
		}
		last := lines[len(lines)-1]
		if last["progress"] != v.args[0] || last["unit"] != v.unit || last["done"] != v.done || last["total"] != v.done {
			t.Errorf("%v ends with %v", v.args, last)
		}
	}
}

// The records of a corpus are estimated from the bytes that have been read.
func TestReading(t *testing.T) {
	t.Parallel()
	var published atomic.Int64
	var read, of int64
	total := reading(puzzle.Spec{}, &published, func() (int64, int64) { return read, of })
	for _, c := range []struct{ published, read, of, want int64 }{
		{0, 0, 1000, 0}, // nothing is known
		{10, 100, 0, 0}, // a pipe
		{10, 100, 1000, 100},
		{100, 1000, 1000, 100},
	} {
		published.Store(c.published)
		read, of = c.read, c.of
		if got, _ := total(); got != c.want {
			t.Errorf("%v: got %d", c, got)
		}
	}
	made := reading(puzzle.Spec{Generate: puzzle.Generate{Kind: puzzle.GenerateRandom}}, &published, func() (int64, int64) { return 0, 500 })
	if got, sure := made(); got != 500 || !sure {
		t.Errorf("of 500 generated boards it tells %d, sure of it: %t", got, sure)
	}
}

// TestProgressDocumented: the page shows a line as it is written.
func TestProgressDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.FromSlash("../../docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	left, total := 15.0, int64(40_000)
	line := progress{Verb: "run", Unit: "records", Done: 10_000, Total: &total, Estimated: true, Seconds: 5, Rate: 2000, Left: &left}.json()
	if !bytes.Contains(page, line) {
		t.Errorf("the page does not show %s", line)
	}
	for name := range progressLines(t, append(bytes.Replace(line, []byte(`"ended":false`), []byte(`"ended":true`), 1), '\n'))[0] {
		if row := fmt.Sprintf("\n| `%s` |", name); !bytes.Contains(page, []byte(row)) {
			t.Errorf("the page does not explain %s", name)
		}
	}
}
