package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// TestSolveAnswersAtOnce writes a puzzle only when the one before is answered.
func TestSolveAnswersAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ preset, puzzle, answer string }{
		{"flip-game", "bwwb\nbbwb\nbwwb\nbwww\n", "4\n"},
		{"fridge", "++++\n----\n----\n++++\n", "8\n1 1\n1 2\n1 3\n1 4\n4 1\n4 2\n4 3\n4 4\n"},
		{"fliptile", "1 2\n1 1\n", "0 1\n"},
	} {
		cmd := command(t, t.TempDir(), "solve", "--preset", c.preset)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(out)
		for range 3 {
			io.WriteString(in, c.puzzle)
			var got strings.Builder
			for got.Len() < len(c.answer) {
				line, err := answers.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString(line)
			}
			if got.String() != c.answer {
				t.Errorf("%s: got %q, want %q", c.preset, got.String(), c.answer)
			}
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", c.preset, err)
		}
	}
}

// TestSolveUnproven: what is not proved is an answer for no judge, but it can be said
// in JSON.
func TestSolveUnproven(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{"": "the fewest presses are not proved", "--json": `"status":"unproven"`} {
		cmd := command(t, t.TempDir(), "solve", "--preset", "fliptile", "--search-limit", "1")
		if form != "" {
			cmd.Args = append(cmd.Args, form)
		}
		cmd.Stdin = strings.NewReader("4 5\n1 0 0 0 1\n0 1 0 1 0\n0 1 0 1 0\n1 0 0 0 1\n5 5\n" + strings.Repeat("0 0 0 0 0\n", 5))
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || (err == nil) != (form != "") {
			t.Errorf("%q: %v\n%s", form, err, out)
		}
	}
}
