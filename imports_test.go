// Package flipmill_test checks what holds for the repository as a whole: which
// package may import which, and the habits that no tool checks. It reads the
// sources with go/parser, not with go list: go test remembers results, and
// knows of files that a test reads but not of commands that it runs.
package flipmill_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/flipmill/flipmill/"

// arrows lists every package with what it imports beyond the standard library:
// packages of ours by folder, modules of others by path, which includes the
// packages below. Arrows point down the list of docs/architecture.md; the roles
// (producer, worker, aggregator) never import each other, because they must be
// able to run, and to be replaced, apart.
func arrows() map[string]arrow {
	return map[string]arrow{
		".":                    {},
		"pkg/puzzle":           {},
		"pkg/daemon":           {},
		"pkg/draw":             {},
		"pkg/solver":           {imports: "pkg/puzzle"},
		"pkg/tally":            {imports: "pkg/puzzle"},
		"pkg/generate":         {imports: "pkg/puzzle pkg/solver"},
		"pkg/object":           {imports: "github.com/aws/aws-sdk-go-v2 github.com/aws/smithy-go", tests: s3},
		"pkg/corpus":           {imports: "pkg/puzzle pkg/generate pkg/object github.com/klauspost/compress github.com/therootcompany/xz github.com/parquet-go/parquet-go github.com/andybalholm/brotli github.com/pierrec/lz4/v4", tests: duckdb + " " + s3},
		"pkg/config":           {imports: "pkg/puzzle github.com/spf13/cobra github.com/spf13/pflag github.com/spf13/viper go.yaml.in/yaml/v3"},
		"pkg/protocol":         {imports: "pkg/wire", tests: "github.com/cockroachdb/datadriven"},
		"pkg/wire":             {imports: "pkg/puzzle pkg/tally pkg/wire/internal/pb google.golang.org/protobuf"},
		"pkg/wire/internal/pb": {imports: "google.golang.org/protobuf"},
		"pkg/dataset":          {imports: "pkg/puzzle pkg/generate pkg/solver pkg/tally pkg/object github.com/parquet-go/parquet-go github.com/klauspost/compress golang.org/x/sys", tests: sync + " " + duckdb + " " + s3},
		"pkg/queue":            {imports: "pkg/puzzle pkg/wire github.com/nats-io " + sync},

		"pkg/report": {imports: "pkg/puzzle pkg/dataset pkg/draw pkg/view"},
		"pkg/view":   {imports: "pkg/puzzle pkg/solver pkg/tally pkg/wire pkg/queue"},
		"pkg/bench":  {imports: "pkg/puzzle pkg/generate pkg/solver pkg/tally pkg/corpus pkg/wire pkg/dataset pkg/queue " + sync},

		"pkg/pages": {imports: "pkg/puzzle pkg/tally pkg/dataset pkg/queue pkg/view pkg/draw", tests: "pkg/wire"},

		"producer":   {imports: "pkg/puzzle pkg/corpus pkg/wire pkg/protocol pkg/dataset pkg/queue " + sync + " " + prometheus},
		"worker":     {imports: "pkg/puzzle pkg/generate pkg/solver pkg/tally pkg/wire pkg/protocol pkg/dataset pkg/queue " + sync + " " + prometheus},
		"aggregator": {imports: "pkg/puzzle pkg/tally pkg/wire pkg/protocol pkg/dataset pkg/queue " + sync + " " + prometheus},

		"cmd/flipmill": {
			imports: "producer worker aggregator pkg/bench pkg/protocol pkg/puzzle pkg/solver pkg/tally pkg/generate pkg/corpus pkg/config pkg/daemon pkg/wire pkg/dataset pkg/object pkg/queue pkg/view pkg/pages pkg/report " +
				sync + " " + prometheus + " github.com/spf13/cobra github.com/spf13/pflag github.com/schollz/progressbar/v3 golang.org/x/term",
			tests: "pkg/draw github.com/rogpeppe/go-internal github.com/nats-io github.com/prometheus/common github.com/apache/arrow-go/v18 " + duckdb + " " + s3, // the real broker, as a process; readers that are not ours
		},
		"deployments":       {tests: "github.com/compose-spec/compose-go/v2 github.com/prometheus k8s.io/api k8s.io/apimachinery sigs.k8s.io/kustomize sigs.k8s.io/yaml"},
		"deployments/image": {imports: "github.com/google/go-containerregistry golang.org/x/crypto/x509roots"},
	}
}

type arrow struct {
	imports string // of its files and its tests
	tests   string // of its tests alone
}

// Modules that stand for themselves in several places.
const (
	sync   = "golang.org/x/sync"
	goleak = "go.uber.org/goleak" // in the tests of any package
	duckdb = "github.com/duckdb/duckdb-go/v2"
	s3     = "github.com/johannesboyne/gofakes3" // a server, in the test's own process

	// Each role counts for itself, in the terms of the one who reads the counts.
	prometheus = "github.com/prometheus/client_golang"
)

// ban keeps an import out of all files but tests.
type ban struct {
	path  string
	among string // the folders in which it holds; empty for all
	but   string // the folders in which it does not
	why   string
}

func bans() []ban {
	const pure = "pkg/puzzle pkg/generate pkg/solver pkg/tally pkg/wire pkg/protocol"
	return []ban{
		{path: "github.com/parquet-go/parquet-go", but: "pkg/dataset pkg/corpus", why: "one package knows our files, another reads those of other people"},
		{path: "github.com/nats-io", but: "pkg/queue", why: "one package knows the broker"},
		{path: "github.com/aws", but: "pkg/object", why: "one package knows how objects are reached"},
		{path: s3, why: "it is a server that tests speak to"},
		{path: "github.com/spf13", but: "pkg/config cmd/flipmill", why: "only commands have flags"},
		{path: "github.com/spf13/viper", but: "pkg/config", why: "one package knows where values come from"},
		{path: duckdb, why: "it is a reader that tests compare with; the binary stays static"},
		{path: "os/signal", but: "pkg/daemon", why: "a signal has one owner"},
		{path: "log", why: "messages go to a *slog.Logger that the caller passes"},
		{path: "log/slog", among: pure, why: "pure packages return what they know; their callers log"},
		{path: "time", among: pure + " pkg/dataset", why: "data files are a function of corpus and options: no clock"},
		{path: "os", among: pure, why: "pure packages touch no file and no environment"},
		{path: "math/rand", why: "math/rand/v2 has generators whose seed is always visible"},
		{path: "testing", why: "test helpers belong into tests"},
	}
}

// source is one parsed Go file.
type source struct {
	folder string // slash-separated, "." for the root
	name   string
	file   *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// position names a place for people.
func (s source) position(fset *token.FileSet, n ast.Node) string {
	return path.Join(s.folder, s.name) + ":" + strconv.Itoa(fset.Position(n.Pos()).Line)
}

// sources parses every Go file of the repository, whatever its build tags.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	fset := token.NewFileSet()
	var all []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		all = append(all, source{filepath.ToSlash(filepath.Dir(name)), d.Name(), file})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fset, all
}

// under reports whether an import is one of the listed packages or below one.
// Folders of ours stand for themselves alone: what is below has its own row.
func under(imported, listed string) bool {
	return slices.ContainsFunc(strings.Fields(listed), func(l string) bool {
		return imported == l || strings.HasPrefix(imported, l+"/") && external(l)
	})
}

// external reports whether a path belongs to a module other than ours and the
// standard library: it starts with a domain.
func external(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

func TestImports(t *testing.T) {
	fset, all := sources(t)
	rows := arrows()
	for _, s := range all {
		row, known := rows[s.folder]
		if !known {
			t.Errorf("%s: package %s has no row in arrows: say what it may import", s.name, s.folder)
			continue
		}
		for _, i := range s.file.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			ours, isOurs := strings.CutPrefix(imported, module)
			allowed := under(ours, row.imports) || s.test() && (under(ours, row.tests+" "+goleak) || ours == s.folder)
			if (isOurs || external(imported)) && !allowed {
				t.Errorf("%s: imports %s, which the row of %s in arrows does not list", s.position(fset, i), ours, s.folder)
			}
			for _, b := range bans() {
				held := (b.among == "" || under(s.folder, b.among)) && !under(s.folder, b.but)
				exact := imported == b.path || external(b.path) && under(imported, b.path)
				if !s.test() && held && exact {
					t.Errorf("%s: imports %s: %s", s.position(fset, i), imported, b.why)
				}
			}
		}
	}
	for folder := range rows {
		if !slices.ContainsFunc(all, func(s source) bool { return s.folder == folder }) {
			t.Errorf("arrows has a row for %s, which has no Go file", folder)
		}
	}
}

// TestRolesStayApart says the most important arrow by itself, so that no edit of
// the table can lose it.
func TestRolesStayApart(t *testing.T) {
	roles := []string{"producer", "worker", "aggregator"}
	for _, role := range roles {
		for _, other := range roles {
			if row := arrows()[role]; under(other, row.imports+" "+row.tests) {
				t.Errorf("arrows lets %s import %s", role, other)
			}
		}
	}
}
