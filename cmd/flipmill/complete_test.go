package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The shell is offered verbs, the values of flags, and folders where a dataset is
// wanted.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"help", "stats"}, "stats\tShow what the boards of a dataset are like\n"},
		{[]string{"run", "--rule", ""}, "\nking\n"},
		{[]string{"run", "--compression", ""}, "zstd\nsnappy\nnone\n:4\n"},
		{[]string{"stats", ""}, ":16\n"},
		{[]string{"status", "--nats-url", "nats://127.0.0.1:1", ""}, ":4\n"}, // where no server is
	} {
		out, err := command(t, t.TempDir(), append([]string{"__complete"}, c.args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%v: offered %q, want %q", c.args, out, c.want)
		}
	}
}

// TestCompletionOfJobs presses Tab in a bash that has read what flipmill completion
// prints, beside a server with a job.
func TestCompletionOfJobs(t *testing.T) {
	t.Parallel()
	c := newCluster(t, nil)
	calm(t, c.dir)
	c.start("aggregator", "-o", "far")
	c.run("submit", append(smallJob, "--window", "6")...)
	for verb, want := range map[string]string{"status": "boards\n", "cancel": "boards\n", "list": "\n", "why --nats-url nats://127.0.0.1:1": "\n"} {
		words := strings.Fields("flipmill " + verb)
		tab := exec.CommandContext(t.Context(), "bash", "-c", `set -e
_get_comp_words_by_ref() { # the package bash-completion has it
  cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
}
compopt() { :; } # works under a prompt only
source <(flipmill completion bash)
COMP_WORDS=("$@" "") COMP_CWORD=$# COMP_LINE="$* " COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
__start_flipmill
printf '%s\n' "${COMPREPLY[@]%% *}"`, "bash")
		tab.Args = append(tab.Args, words...)
		tab.Env = append(tab.Environ(), "FLIPMILL_NATS_URL="+c.url)
		out, err := tab.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: offered %q, want %q (%v)", verb, out, want, err)
		}
	}
	out, err := command(t, c.dir, "__complete", "status", "--nats-url", c.url, "").Output()
	if want := "boards\topen, 0.0%\n:4\n"; err != nil || string(out) != want {
		t.Errorf("offered %q, want %q (%v)", out, want, err)
	}
}
