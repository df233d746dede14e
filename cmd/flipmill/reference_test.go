package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
)

// TestReference: docs/reference.md says what the program does. With -update it is
// made anew.
func TestReference(t *testing.T) {
	t.Parallel()
	const name = "../../docs/reference.md"
	want := reference()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the program: make generate", name)
	}
}

// reference is the page: verbs, keys and exit codes.
func reference() string {
	var b strings.Builder
	b.WriteString("# Reference\n\nMade from the program by `make generate`: its verbs, keys and exit codes.\n\n" +
		"- [Verbs](#verbs)\n- [Keys](#keys)\n- [Exit codes](#exit-codes)\n\n## Verbs\n")
	referVerbs(&b, newRoot())
	b.WriteString("\n## Keys\n\nA key is set by the flag `--KEY`, which is stronger than the environment variable,\n" +
		"which is stronger than the file that `--config` or `FLIPMILL_CONFIG` names.\n" +
		"`flipmill config print --show-origin` tells what is in force, and why.\n\n" +
		"| key | takes | default | what it is | verbs | variable |\n|---|---|---|---|---|---|\n")
	for _, k := range config.Keys() {
		verbs := "all"
		if k.Verbs != nil {
			verbs = strings.Join(k.Verbs, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | `%s` |\n", k.Name, cell(k.Want), quoted(k.Default), cell(k.Help), verbs, k.Variable())
	}
	b.WriteString("\n## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, row := range exitTable {
		fmt.Fprintf(&b, "| %d | %s |\n", row.code, row.meaning)
	}
	return b.String()
}

func referVerbs(b *strings.Builder, parent *cobra.Command) {
	for _, verb := range parent.Commands() {
		if !verb.IsAvailableCommand() || verb.Name() == "completion" {
			continue
		}
		text := verb.Long
		if text == "" {
			text = verb.Short + "."
		}
		fmt.Fprintf(b, "\n### %s\n\n%s\n\n```\n%s\n```\n", verb.CommandPath(), text, verb.UseLine())
		fmt.Fprintf(b, "\n```console\n%s\n```\n", strings.TrimRight(verb.Example, "\n"))
		if flags := verb.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(b, "\n```\n%s```\n", flags)
		}
		referVerbs(b, verb)
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}
