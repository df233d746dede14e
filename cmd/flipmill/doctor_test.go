//go:build cluster

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/queue"
)

// wantFindings waits for the end of a doctor that was asked for JSON: its exit
// code, and the checks that are not OK.
func wantFindings(t *testing.T, p *process, want code, bad ...string) []queue.Finding {
	t.Helper()
	got := p.exit()
	var findings []queue.Finding
	if err := json.Unmarshal([]byte(p.out.String()), &findings); err != nil {
		t.Fatalf("%s: %v in %q\n%s", p.name, err, p.out.String(), p.log())
	}
	var wrong []string
	for _, f := range findings {
		if !f.OK {
			wrong = append(wrong, f.Check)
		}
	}
	if got != int(want) || !slices.Equal(wrong, bad) {
		t.Errorf("%s ends with %d and finds %v, want %d and %v:\n%s", p.name, got, wrong, want, bad, p.out.String())
	}
	return findings
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	fresh := wantFindings(t, c.start("doctor", "--json"), exitOK)
	if !slices.ContainsFunc(fresh, func(f queue.Finding) bool { return strings.HasPrefix(f.Found, "nothing is set up yet") }) {
		t.Errorf("of a fresh server doctor says %+v", fresh)
	}
	c.run("setup", "--task-bytes", "8MiB")
	findings := wantFindings(t, c.start("doctor", "--json", "--task-bytes", "8MiB", "-o", "data"), exitOK)
	if last := findings[len(findings)-1]; last.Check != "output" {
		t.Errorf("got %+v last, want that of the output", last)
	}
	wantFindings(t, c.start("doctor", "--json"), exitError, "FLIPMILL_TASKS")
	check(t, os.WriteFile(filepath.Join(c.dir, "file"), nil, 0o644))
	wantFindings(t, c.start("doctor", "--json", "--task-bytes", "8MiB", "-o", "file"), exitError, "output")

	p := c.start("doctor") // for people
	if p.exit(); !strings.Contains(p.out.String(), "\nBAD  FLIPMILL_TASKS    max-bytes is 8388608, not 268435456\n                       -> run flipmill setup") {
		t.Errorf("doctor prints\n%s", p.out.String())
	}
	c.broker.kill()
	wantFindings(t, c.start("doctor", "--json", "-o", "file"), exitBroker, "connect", "output")
}
