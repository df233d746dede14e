package main

import (
	"strings"
	"testing"
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
