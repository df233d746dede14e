package flipmill_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAlone: the packages that make race leaves out start no goroutine, but for the
// tests that it names.
func TestAlone(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) []string {
		line := regexp.MustCompile(`(?m)^` + name + ` *:= *(\S+)$`).FindSubmatch(makefile)
		if line == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return strings.Split(string(line[1]), "|")
	}
	alone, named := list("ALONE"), list("BESIDE")
	var beside []string
	fset, all := sources(t)
	for _, s := range all {
		folder, ok := strings.CutPrefix(s.folder, "pkg/")
		if name, _, _ := strings.Cut(folder, "/"); !ok || !slices.Contains(alone, name) {
			continue
		}
		for _, d := range s.file.Decls {
			if !startsGoroutine(d) {
				continue
			}
			f, ok := d.(*ast.FuncDecl)
			if !ok || !s.test() || !slices.Contains(named, f.Name.Name) {
				t.Errorf("%s: this starts a goroutine: name the test in BESIDE of the Makefile, or take the package out of ALONE", s.position(fset, d))
				continue
			}
			beside = append(beside, f.Name.Name)
		}
	}
	if slices.Sort(beside); !slices.Equal(beside, named) {
		t.Errorf("BESIDE of the Makefile is %v, goroutines are started by %v", named, beside)
	}
}

// startsGoroutine tells whether there is a go statement, or the Go of a group.
func startsGoroutine(d ast.Decl) (yes bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			yes = true
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			yes = yes || ok && f.Sel.Name == "Go"
		}
		return !yes
	})
	return yes
}
