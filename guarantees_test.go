package flipmill_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesAreTested: docs/guarantees.md names at least one test for each
// promise, and every test that it names is there.
func TestGuaranteesAreTested(t *testing.T) {
	text, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	_, all := sources(t)
	there := map[string]bool{} // folder and name of each test
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test() {
				there[s.folder+" "+f.Name.Name] = true
			}
		}
	}
	// Names, then their folder, or none.
	groups := regexp.MustCompile("((?:`Test\\w+`(?:, )?)+)(?: in `([\\w/]+)`)?")
	names := regexp.MustCompile(`Test\w+`)
	promises := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "---") || cells[2] == " proved by " {
			continue
		}
		promises++
		found := groups.FindAllStringSubmatch(cells[2], -1)
		if found == nil {
			t.Errorf("no test proves, in the case of%s: %q", cells[0], cells[1])
		}
		for _, group := range found {
			folder := "cmd/flipmill"
			if group[2] != "" {
				folder = group[2]
			}
			for _, name := range names.FindAllString(group[1], -1) {
				if !there[folder+" "+name] {
					t.Errorf("%s has no %s, which is to prove %q", folder, name, cells[1])
				}
			}
		}
	}
	if promises == 0 {
		t.Error("the page has no promises")
	}
}
