package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/config"
)

// What is printed means the same when it is read, wherever it came from and
// whatever a text looks like.
func TestPrintedFileMeansTheSame(t *testing.T) {
	write(t, "keep: [level, author]", `job: "true"`, "symbols: '#=1,.=0'")
	t.Setenv("FLIPMILL_FRAME", "name,end=END")
	for _, origins := range []bool{false, true} {
		said, err := load(t, "run", "--config=flipmill.yaml", "--preset=fridge", "--generate=", "--output=~/a: b # c", "--workers=010")
		if err != nil {
			t.Fatal(err)
		}
		text, err := said.YAML(origins)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("printed.yaml", text, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("FLIPMILL_FRAME", "")
		again, err := load(t, "run", "--config=printed.yaml")
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		for _, k := range config.Keys() {
			if again.Text(k.Name) != said.Text(k.Name) {
				t.Errorf("%s is %q, was %q", k.Name, again.Text(k.Name), said.Text(k.Name))
			}
			if line := "\n" + k.Name + ": "; !strings.Contains("\n"+string(text), line) {
				t.Errorf("%s is not printed", k.Name)
			}
		}
		t.Setenv("FLIPMILL_FRAME", "name,end=END")
		if said := strings.Contains(string(text), "\nrule: fridge # preset fridge from --preset\n"); said != origins {
			t.Errorf("with origins %v, printed\n%s", origins, text)
		}
	}
}

// Whatever a name looks like, it is read again as it was: also where YAML takes the
// same letters for something else. Bytes that no file can hold are an error.
func TestPrintedNames(t *testing.T) {
	write(t)
	for _, name := range []string{"~", "null", "Null", "NULL", "true", "no", "010", "1e3", "0x1F", "- dash", "*x", "&x", "!x", "%x", "@x", "`x", "a: b # c", "'q'", `"q"`, `\\x`, " blank ", "tab\tx", "two\nlines", "\u2028x", "\a", "ü", "<<", "=", "2026-11-30", "[a", "{a", "|", ">", "? x", ".inf"} {
		said, err := load(t, "run", "--output="+name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := said.YAML(true)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("printed.yaml", text, 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := load(t, "run", "--config=printed.yaml")
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got := again.Output; got != name {
			t.Errorf("%q is read as %q", name, got)
		}
	}
	said, err := load(t, "run", "--output=\xff")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := said.YAML(false); err == nil || !strings.Contains(err.Error(), `output: "\xff" is no UTF-8`) {
		t.Errorf("printed\n%s, %v", text, err)
	}
}

// A file is judged by itself, and all that is wrong with it is told.
func TestValidate(t *testing.T) {
	write(t, "workers: 2", "rule: plsu", "jbo: x", "size: 5x5", "window: 0")
	t.Setenv("FLIPMILL_WORKERS", "many")
	set, err := config.Validate("flipmill.yaml")
	want := []string{
		`flipmill.yaml:2: rule: `,
		`flipmill.yaml:3: jbo: no such key; did you mean job?`,
		`flipmill.yaml:5: window: "0": want a whole number from 1 to 64`,
	}
	if err == nil {
		t.Fatal("the file is taken for good")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %v", err)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("got %s, want %s", line, want[i])
		}
	}
	if got := strings.Join(set, " "); got != "rule size workers window" {
		t.Errorf("set: %s", got)
	}
	if _, err := config.Validate(""); err == nil {
		t.Error("no file is taken for good")
	}
}
