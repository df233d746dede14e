package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/config"
)

var update = flag.Bool("update", false, "write configs/flipmill.yaml anew")

const shipped = "../../configs/flipmill.yaml"

func TestShippedFileIsUpToDate(t *testing.T) {
	if *update {
		if err := os.WriteFile(shipped, config.Template(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, config.Template()) {
		t.Errorf("%s differs from the table of keys: go test ./pkg/config -update", shipped)
	}
}

func TestShippedFilesLoad(t *testing.T) {
	files, err := filepath.Glob("../../configs/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
	for _, name := range files {
		if _, err := load(t, "run", "--config", name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTemplateSaysTheDefaults uncomments every key: the file must load and
// change nothing.
func TestTemplateSaysTheDefaults(t *testing.T) {
	text := regexp.MustCompile(`(?m)^# ([a-z-]+: )`).ReplaceAll(config.Template(), []byte("$1"))
	t.Chdir(t.TempDir())
	if err := os.WriteFile("all.yaml", text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, "run", "--config=all.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range config.Keys() {
		if c.Text(k.Name) != k.Default || c.Origin(k.Name).Source != config.File {
			t.Errorf("%s is %q from %v, want its default %q from the file", k.Name, c.Text(k.Name), c.Origin(k.Name), k.Default)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, test := range []struct {
		name string
		text string
		err  string // what it contains; empty for none
	}{
		{"empty", "", ""},
		{"comments only", "# nothing\n", ""},
		{"explicit null", "~\n", ""},
		{"byte order mark and CRLF", "\ufeffworkers: 3\r\njob: a\r\n", ""},
		{"quoted number", "workers: \"3\"\n", ""},
		{"not a mapping", "- workers\n", "flipmill.yaml:1: no key: want one YAML document with lines of the form key: value"},
		{"not YAML", "workers: [\n", "flipmill.yaml:1: did not find expected node content: want"},
		{"two documents", "workers: 1\n---\nworkers: 2\n", "want one YAML document"},
		{"no value", "workers:\n", "flipmill.yaml:1: workers: no value, or not a plain one: want a whole number"},
		{"nested", "workers:\n  count: 2\n", "flipmill.yaml:1: workers: no value, or not a plain one"},
		{"sequence for a plain key", "job: [a]\n", "flipmill.yaml:1: job: no value, or not a plain one"},
		{"comma in a sequence", "columns:\n- board\n- a,b\n", "flipmill.yaml:1: columns: line 3: want a plain word"},
		{"the same key twice", "workers: 1\nwindow: 2\nworkers: 1\n", "flipmill.yaml:3: workers: stands in line 1 already"},
		{"merge key", "<<: {workers: 1}\n", "flipmill.yaml:1: <<: no such key"},
		{"octal is no number of ours", "workers: 0o10\n", `flipmill.yaml:1: workers: "0o10": want`},
		{"YAML's other booleans", "strict: yes\n", `flipmill.yaml:1: strict: "yes": want true or false`},
		{"fraction", "workers: 1e1\n", `flipmill.yaml:1: workers: "1e1": want`},
		{"its own name", "config: other.yaml\n", "flipmill.yaml:1: config: no such key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, strings.TrimSuffix(test.text, "\n"))
			_, err := load(t, "run", "--config=flipmill.yaml")
			switch {
			case test.err == "" && err != nil:
				t.Errorf("got %v", err)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

// TestTextsAreKept has values that YAML or viper would turn into something else.
func TestTextsAreKept(t *testing.T) {
	write(t, "output: NO", "job: e1", "symbols: X=1,x=0")
	c, err := load(t, "run", "--config=flipmill.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Output != "NO" || c.Job != "e1" || c.Spec.Symbols.On != 'X' || c.Spec.Symbols.Off != 'x' {
		t.Errorf("output %q, job %q, symbols %v", c.Output, c.Job, c.Spec.Symbols)
	}
}

// TestListsMeanTheSameEverywhere: viper splits a list from the environment at
// blanks, from a flag at commas.
func TestListsMeanTheSameEverywhere(t *testing.T) {
	want := []string{"puzzle_index", "board"}
	expect := func(args ...string) {
		t.Helper()
		c, err := load(t, "run", args...)
		if err != nil || !slices.Equal(c.Spec.Columns, want) {
			t.Errorf("columns are %q, error %v, want %q", c.Spec.Columns, err, want)
		}
	}
	expect("--columns=puzzle_index,board")
	expect("--columns=puzzle_index", "--columns", "board")
	for _, text := range []string{"columns: puzzle_index,board", "columns: [puzzle_index, board]", "columns:\n- puzzle_index\n- board"} {
		write(t, text)
		expect("--config=flipmill.yaml")
	}
	t.Setenv("FLIPMILL_COLUMNS", "puzzle_index, board")
	expect()
	t.Setenv("FLIPMILL_COLUMNS", "puzzle_index board")
	want = []string{"puzzle_index board"} // no separator: one word, which is no column
	expect()
}

func TestFileFromTheEnvironment(t *testing.T) {
	write(t, "workers: 4")
	t.Setenv("FLIPMILL_CONFIG", "flipmill.yaml")
	c, err := load(t, "run")
	if err != nil || c.Workers != 4 {
		t.Errorf("got %+v, error %v", c, err)
	}
	if _, err := load(t, "run", "--config=other.yaml"); err == nil || !strings.Contains(err.Error(), "other.yaml") {
		t.Errorf("got %v, want the flag's file to be read instead", err)
	}
}

// TestNoFileIsSearched: a file that happens to lie in the working directory
// must not change what a command does.
func TestNoFileIsSearched(t *testing.T) {
	write(t, "nonsense: 4")
	if _, err := load(t, "run"); err != nil {
		t.Error(err)
	}
}

func TestServiceLinksAreLetBe(t *testing.T) {
	for _, name := range []string{
		"FLIPMILL_PORT", "FLIPMILL_SERVICE_HOST", "FLIPMILL_SERVICE_PORT_HTTP",
		"FLIPMILL_AGGREGATOR_PORT_8080_TCP_ADDR", "FLIPMILL_AGGREGATOR_SERVICE_PORT",
	} {
		t.Setenv(name, "tcp://10.0.0.1:80")
	}
	if _, err := load(t, "run"); err != nil {
		t.Error(err)
	}
}

func TestValues(t *testing.T) {
	for _, test := range []struct {
		key  string
		good []string
		bad  []string
	}{
		{"workers", []string{"0", "1024"}, []string{"-1", "1025", "abc", "0x10", " 1", "1 ", "1_0", "", "99999999999999999999"}},
		{"search-limit", []string{"1", "1099511627776"}, []string{"0", "1099511627777"}},
		{"stop-timeout", []string{"0s", "1h30m", "250ms"}, []string{"30", "-1s", "25h", "1 s", ""}},
		{"max-line", []string{"1024", "1KiB", "16MiB"}, []string{"1023", "1GiB", "64KB", "1.5MiB", "KiB", "9999999999999999999", "2147483647GiB"}},
		{"strict", []string{"true", "false"}, []string{"1", "yes", "TRUE", ""}},
		{"job", []string{"", "a", "a-0", "a" + strings.Repeat("b", 62)}, []string{"A", "0a", "a_b", "a.b", "a/b", "a\n", "a" + strings.Repeat("b", 63)}},
		{"output", []string{".", "a:b", "s3://bucket/x/"}, []string{"", "s3://", "s3:///x", "gs://bucket/x"}},
		{"rule", []string{"plus", "king-torus", "stencil:010/111/010"}, []string{"", "Plus", "fridge-torus", "stencil:000/000/000"}},
		{"size", []string{"", "1x1", "256x64", "64x256"}, []string{"0x1", "65x65", "5", "5x6x7", "5 x 6"}},
		{"symbols", []string{"b=1,w=0", "0=1,1=0"}, []string{"", "b=1", "b=1,b=0"}},
		{"columns", []string{"all", "none", "board"}, []string{"", "a,,b", "a,a", "a, a"}},
		{"http", []string{"", ":9464", "0.0.0.0:0", "[::1]:9464", "metrics.local:80"}, []string{"9464", ":", ":http", "a b:1"}},
		{"log-level", []string{"debug", "warn"}, []string{"INFO", "info+1", ""}},
		{"preset", []string{"", "fliptile"}, []string{"flip"}},
	} {
		for _, text := range test.good {
			if _, err := load(t, "run", "--"+test.key+"="+text); err != nil {
				t.Errorf("%s %q: %v", test.key, text, err)
			}
		}
		for _, text := range test.bad {
			if _, err := load(t, "run", "--"+test.key+"="+text); err == nil || !strings.HasPrefix(err.Error(), "--"+test.key+": ") {
				t.Errorf("%s %q: got %v, want an error that names the flag", test.key, text, err)
			}
		}
	}
}

// FuzzFile: no file crashes the reader, and one that loads means the same when
// its lines are given as flags.
func FuzzFile(f *testing.F) {
	f.Add([]byte("workers: 3\ncolumns: [a, b]\npreset: fridge\n"))
	f.Add([]byte("rule: &r king-torus\njob: *r\n"))
	f.Add([]byte("? {a: b}\n: c\n"))
	f.Add(config.Template())
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "flipmill.yaml")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := load(t, "run", "--config", name)
		if err != nil {
			return
		}
		var args []string
		for _, k := range config.Keys() {
			if o := c.Origin(k.Name); o.Source == config.File && !strings.HasPrefix(o.Where, "preset ") {
				args = append(args, "--"+k.Name+"="+c.Text(k.Name))
			}
		}
		d, err := load(t, "run", args...)
		if err != nil || fieldsDiffer(c, d) {
			t.Errorf("the file\n%s\nmeans %+v, the flags %q mean %+v, error %v", data, c, args, d, err)
		}
	})
}
