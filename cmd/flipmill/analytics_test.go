//go:build cluster

package main

import (
	"os"
	"strings"
	"testing"
)

// TestAnalytics makes the datasets of docs/analytics.md and puts its questions:
// each block of SQL has the answer of DuckDB below it.
func TestAnalytics(t *testing.T) {
	t.Parallel()
	const page = "../../docs/analytics.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	linkExamples(t, dir)
	var told strings.Builder // the page with the answers that we get
	asked, sql := 0, ""
	for i, block := range strings.Split(string(text), "```") {
		kind, body, _ := strings.Cut(block, "\n")
		switch {
		case i%2 == 0: // prose
		case kind == "sh":
			for line := range strings.Lines(body) {
				flipmill(t, dir, strings.Fields(strings.TrimPrefix(line, "flipmill "))...)
			}
		case kind == "sql":
			asked, sql = asked+1, body
		case kind == "csv":
			answer, err := query(dir, sql)
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			if answer != body && !*update {
				t.Errorf("%s finds\n%s\nthe page says\n%s", sql, answer, body)
			}
			block, sql = kind+"\n"+answer, ""
		default:
			t.Errorf("the page has a block of %q, which nothing checks", kind)
		}
		if i > 0 {
			told.WriteString("```")
		}
		told.WriteString(block)
	}
	if asked < 12 || sql != "" {
		t.Errorf("%d questions, want 12 at least; without an answer: %q", asked, sql)
	}
	if *update {
		if err := os.WriteFile(page, []byte(told.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
