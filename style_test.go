package flipmill_test

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestPackageComments: exactly one per package, in the file that is named after
// the package, or in the first file of a package that has none.
func TestPackageComments(t *testing.T) {
	_, all := sources(t)
	comments := map[string][]string{}
	for _, s := range all {
		if s.file.Doc != nil && strings.HasPrefix(s.file.Doc.Text(), "Package ") || s.file.Doc != nil && s.file.Name.Name == "main" {
			comments[s.folder] = append(comments[s.folder], s.name)
		}
	}
	for _, s := range all {
		if n := len(comments[s.folder]); n != 1 {
			t.Errorf("package %s has %d package comments, want 1: %v", s.folder, n, comments[s.folder])
			comments[s.folder] = []string{""} // said once
		}
	}
}

// TestExportedIsDocumented: what other packages can name has a comment, alone
// or as the member of a group that has one.
func TestExportedIsDocumented(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		if s.test() || ast.IsGenerated(s.file) {
			continue
		}
		for _, d := range s.file.Decls {
			if name := undocumented(d); name != "" {
				t.Errorf("%s: %s has no comment", s.position(fset, d), name)
			}
		}
	}
}

// undocumented returns the first exported name of a declaration that lacks a
// comment, or nothing.
func undocumented(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
			return d.Name.Name
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return ""
		}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Doc == nil && s.Name.IsExported() {
					return s.Name.Name
				}
			case *ast.ValueSpec:
				if s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
					return s.Names[0].Name
				}
			}
		}
	}
	return ""
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// TestHabits: no hidden start-up code, no test that waits by the clock or
// skips, panics only for the impossible, files that fit a head.
func TestHabits(t *testing.T) {
	const maxLines = 500
	fset, all := sources(t)
	for _, s := range all {
		if ast.IsGenerated(s.file) {
			continue
		}
		if n := fset.Position(s.file.FileEnd).Line; n > maxLines {
			t.Errorf("%s/%s has %d lines, want at most %d: split it", s.folder, s.name, n, maxLines)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := badHabit(n, s.test()); what != "" {
				t.Errorf("%s: %s", s.position(fset, n), what)
			}
			return true
		})
	}
}

func badHabit(n ast.Node, test bool) string {
	if f, ok := n.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
		return "func init: let the caller construct it"
	}
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name == "panic" && !test && !strings.HasPrefix(firstText(call), "BUG: ") {
			return `panic: only for the impossible, with a text that starts "BUG: "`
		}
	case *ast.SelectorExpr:
		x, _ := f.X.(*ast.Ident)
		switch {
		case x == nil || !test:
		case x.Name == "time" && f.Sel.Name == "Sleep":
			return "time.Sleep: wait for what must happen, or use testing/synctest"
		case f.Sel.Name == "Skip" || f.Sel.Name == "SkipNow" || f.Sel.Name == "Skipf":
			return f.Sel.Name + ": a test that skips says nothing"
		}
	}
	return ""
}

// firstText returns the first string literal within a call.
func firstText(call *ast.CallExpr) (text string) {
	ast.Inspect(call, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && text == "" && lit.Kind == token.STRING {
			text, _ = strconv.Unquote(lit.Value)
		}
		return text == ""
	})
	return text
}
