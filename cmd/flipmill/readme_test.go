package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestReadme: the README has the table of exit codes. TestPages runs its commands.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range exitTable {
		if want := fmt.Sprintf("| %d | %s |\n", row.code, row.meaning); !strings.Contains(string(text), want) {
			t.Errorf("the README's table of exit codes lacks %q", want)
		}
	}
}
