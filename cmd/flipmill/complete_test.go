package main

import (
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
