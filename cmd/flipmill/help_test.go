package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Every verb has examples, which call it.
func TestEveryVerbHasExamples(t *testing.T) {
	t.Parallel()
	for _, verb := range newRoot().Commands() {
		if verb.IsAvailableCommand() && !strings.Contains(verb.Example, "flipmill "+verb.Name()) {
			t.Errorf("flipmill help %s shows no example", verb.Name())
		}
	}
}

// What a verb does is told in lines that fit a terminal.
func TestHelpFitsTerminal(t *testing.T) {
	t.Parallel()
	var look func(verb *cobra.Command)
	look = func(verb *cobra.Command) {
		for line := range strings.Lines(verb.Long) {
			if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 88 {
				t.Errorf("%s: %d characters in %q", verb.CommandPath(), n, line)
			}
		}
		for _, below := range verb.Commands() {
			look(below)
		}
	}
	look(newRoot())
}
