package deployments_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var old = flag.String("old", "", "the commit whose binary TestUpgrade runs beside the one of this; empty: the one before, where git knows it")

// site is a NATS server and a folder, with flipmill around them.
type site struct {
	t      *testing.T
	dir    string
	url    string
	broker *process
}

// newSite starts deployments/nats/server.conf at an address of its own.
func newSite(t *testing.T) *site {
	t.Helper()
	address := newHosts().address("nats")
	s := &site{t: t, dir: t.TempDir(), url: "nats://" + address + ":4222"}
	s.startBroker()
	return s
}

func (s *site) startBroker() {
	s.t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(s.url, "nats://"), ":4222")
	s.broker = start(s.t, s.dir, nil, "nats-server", "-c", absolute(s.t, "nats/server.conf"), "-a", address, "-m", "8222")
	until(s.t, func() error {
		answer, err := ask("http://" + address + ":8222/healthz")
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
}

// start starts a verb of the binary of this commit.
func (s *site) start(args ...string) *process { s.t.Helper(); return s.startOf("flipmill", args...) }

func (s *site) startOf(binary string, args ...string) *process {
	s.t.Helper()
	return start(s.t, s.dir, []string{"NATS_URL=" + s.url}, binary, args...)
}

func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.done
}

// job is what is submitted: 6 parts.
func job() []string {
	return []string{"boards.txt", "--size", "2x3", "--part-chunks", "1", "--job", "boards"}
}

// writeBoards writes job's corpus, and returns the dataset that flipmill run
// makes of it.
func (s *site) writeBoards() map[string]string {
	s.t.Helper()
	var text strings.Builder
	for k := range 6*65_536 - 10 {
		fmt.Fprintf(&text, "%06b\n", k%65_537%64)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "boards.txt"), []byte(text.String()), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.start(append([]string{"run", "-o", "calm"}, job()...)...).want(0)
	return hashes(s.t, filepath.Join(s.dir, "calm", "job=boards"))
}

// untilParts waits until a number of parts is committed.
func (s *site) untilParts(folder string, want int) {
	s.t.Helper()
	until(s.t, func() error {
		parts, err := filepath.Glob(filepath.Join(s.dir, folder, "job=boards", "results", "*.parquet"))
		if err == nil && len(parts) < want {
			err = fmt.Errorf("%d parts are committed, want %d", len(parts), want)
		}
		return err
	})
}

func (s *site) wantSame(folder string, want map[string]string) {
	s.t.Helper()
	if got := hashes(s.t, filepath.Join(s.dir, folder, "job=boards")); !maps.Equal(got, want) {
		s.t.Errorf("the dataset is\n%v\nwant\n%v", got, want)
	}
}

// TestDrill loses the broker's disk and the aggregator's in the middle of a job,
// restores the latter from a copy that was made while the job ran, and lets the
// same submit finish the job.
func TestDrill(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	want := s.writeBoards()
	s.start("setup").want(0)
	aggregator := s.start("aggregator", "-o", "datasets")
	s.start("worker", "--workers", "1")
	submit := s.start(append([]string{"submit", "--window", "1", "--wait"}, job()...)...)
	s.untilParts("datasets", 2)
	from, to := filepath.Join(s.dir, "datasets"), filepath.Join(s.dir, "backup")
	// As rsync --exclude=.tmp does.
	if out, err := exec.Command("sh", "-c", `mkdir "$1" && tar -C "$0" --exclude=./.tmp -c . | tar -C "$1" -x`, from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy: %v\n%s", err, out)
	}

	aggregator.kill()
	s.broker.kill()
	submit.kill() // it was on that machine, too
	for _, lost := range []string{"datasets", "nats-data"} {
		if err := os.RemoveAll(filepath.Join(s.dir, lost)); err != nil {
			t.Fatal(err)
		}
	}
	s.startBroker()
	if err := os.Rename(to, from); err != nil {
		t.Fatal(err)
	}
	s.start("setup").want(0)
	s.start("aggregator", "-o", "datasets")
	s.start(append([]string{"submit", "--wait"}, job()...)...).want(0)
	s.wantSame("datasets", want)
}

// TestLostBroker loses the broker's disk and, in the same moment, the submit and the
// aggregator that hold the job. After setup, resume finishes the job with those who are left:
// none of them is started again, and the other aggregator still knows the job.
func TestLostBroker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	want := s.writeBoards()
	s.start("setup").want(0)
	aggregate := func() *process { return s.start("aggregator", "-o", "datasets", "--log-level", "info") }
	first, second := aggregate(), aggregate()
	s.start("worker", "--workers", "1")
	submit := s.start(append([]string{"submit", "--window", "1", "--wait"}, job()...)...)
	s.untilParts("datasets", 2)
	if !strings.Contains(first.log(), "job taken up") {
		first, second = second, first
	}
	s.broker.kill()
	first.kill()
	submit.kill() // which would go on by itself
	if err := os.RemoveAll(filepath.Join(s.dir, "nats-data")); err != nil {
		t.Fatal(err)
	}
	s.startBroker()
	s.start("setup").want(0)
	s.start("resume", "boards", "--wait").want(0)
	s.wantSame("datasets", want)
	s.start("resume", "boards", "--wait").want(0) // which has come to its end
	second.signal(syscall.SIGTERM)
	second.want(0)
}

// TestUpgrade runs one job with binaries of two commits: an old worker beside a
// new one, an old submit that a new one finishes, and an old aggregator that hands
// over to a new one in the middle.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := buildOld(t)
	s.writeBoards()
	s.startOf(before, "setup").want(0)
	oldAggregator := s.startOf(before, "aggregator", "-o", "datasets")
	oldWorker := s.startOf(before, "worker", "--workers", "1")
	s.start("worker", "--workers", "1")
	oldSubmit := s.startOf(before, append([]string{"submit", "--window", "1"}, job()...)...)
	s.untilParts("datasets", 1)

	oldSubmit.signal(syscall.SIGTERM)
	oldSubmit.exit() // or it had come to its end
	s.start("aggregator", "-o", "datasets")
	oldAggregator.signal(syscall.SIGTERM)
	oldAggregator.want(0)
	s.start("setup").want(0)
	submit := s.start(append([]string{"submit", "--window", "2", "--wait"}, job()...)...)
	s.untilParts("datasets", 3)
	oldWorker.signal(syscall.SIGTERM)
	oldWorker.want(0)
	submit.want(0)
	s.start("verify", "datasets/job=boards").want(0)
}

// buildOld builds the binary of an older commit.
func buildOld(t *testing.T) string {
	t.Helper()
	git := func(args ...string) *exec.Cmd {
		return exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", ".."}, args...)...)
	}
	commit := *old
	if commit == "" {
		commit = "HEAD~1"
		if err := git("rev-parse", "--verify", "-q", commit).Run(); err != nil {
			t.Log("git knows no commit before this one: the new binary is upgraded to itself")
			return "flipmill"
		}
	}
	sources, dir := t.TempDir(), t.TempDir()
	archive, err := git("archive", "--format=tar", commit).Output()
	if err != nil {
		t.Fatalf("sources of %s: %v", commit, err)
	}
	tar := exec.Command("tar", "-x", "-C", sources)
	tar.Stdin = strings.NewReader(string(archive))
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("sources of %s: %v\n%s", commit, err, out)
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "./cmd/flipmill")
	build.Dir = sources
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", commit, err, out)
	}
	return filepath.Join(dir, "flipmill")
}

// TestCommandsOfPages: every flipmill command of these pages is one, with flags
// that it has.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, page := range []string{"operations.md", "runbook.md"} {
		text := strings.ReplaceAll(read(t, "../docs/"+page), "\n  --", " --")
		commands := regexp.MustCompile("(?m)^    (flipmill [^#\n]*)|`(flipmill [^`]*)`").FindAllStringSubmatch(text, -1)
		for _, c := range commands {
			args := strings.Fields(c[1] + c[2])[1:]
			seen++
			if p := start(t, t.TempDir(), nil, "flipmill", slices.Concat(args, []string{"--help"})...); p.exit() != 0 {
				t.Errorf("docs/%s: flipmill %s: %s", page, strings.Join(args, " "), p.log())
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d commands, want more", seen)
	}
}
