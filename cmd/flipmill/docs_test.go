package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandsInDocs: whatever page names a command of ours names a verb, and flags
// that it has. TestPages runs those that a page shows the outcome of.
func TestCommandsInDocs(t *testing.T) {
	t.Parallel()
	// A line of a block, or a span of code, from the verb to the end of the command.
	named := regexp.MustCompile("(?m)(?:^(?:    |\\$ )?(?:\\$ )?|`(?:… \\| )?|[|;&] )flipmill ([a-z]+ [^`\n|;&>#·]*)")
	found := 0
	for _, page := range allPages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := strings.ReplaceAll(string(text), "\\\n", " ")
		for _, match := range named.FindAllStringSubmatch(prose, -1) {
			found++
			words := strings.Fields(match[1])
			if err := parses(words); err != nil {
				t.Errorf("%s: flipmill %s: %v", page, strings.TrimSpace(match[1]), err)
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d commands", found)
	}
}

// parses looks whether there is such a verb with such flags.
func parses(words []string) error {
	for i, word := range words {
		words[i] = strings.Trim(word, `'"`)
	}
	cmd, rest, err := newRoot().Find(words)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	return err
}

// allPages are the pages that people read, of the whole repository.
func allPages(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestLinks: every link to a file or folder of ours, or to a heading, leads somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range allPages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range pageLink.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			name, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			there, err := os.ReadFile(target)
			if info, failed := os.Stat(target); failed != nil || err != nil && !info.IsDir() {
				t.Errorf("%s: no file for %s", page, match[1])
			} else if anchor != "" && !slices.Contains(anchors(string(there)), anchor) {
				t.Errorf("%s: no heading for %s", page, match[1])
			}
		}
	}
}

// anchors are what the headings of a page are called in links, as GitHub has it.
func anchors(text string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := strings.ToLower(strings.TrimSpace(match[1]))
		name = regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(name, "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}
