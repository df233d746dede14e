package config_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestMain forgets what the developer's own environment says about flipmill.
func TestMain(m *testing.M) {
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "FLIPMILL_") || name == "NATS_URL" {
			os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}

// load parses arguments as the verb would, and loads.
func load(t *testing.T, verb string, args ...string) (*config.Config, error) {
	t.Helper()
	cmd := &cobra.Command{Use: verb}
	config.Flags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return config.Load(cmd.Flags())
}

// write makes a configuration file and moves into its folder, so that messages
// name it flipmill.yaml.
func write(t *testing.T, lines ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("flipmill.yaml", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rule(t *testing.T, name string) puzzle.Rule {
	t.Helper()
	r, err := puzzle.ParseRule(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDefaults(t *testing.T) {
	c, err := load(t, "run")
	if err != nil {
		t.Fatal(err)
	}
	want := puzzle.Spec{
		Rule: rule(t, "plus"), Target: puzzle.Zero, SearchLimit: 1 << 20,
		Cells: "text", Compression: "zstd", PartChunks: 64,
		Format: "auto", Symbols: puzzle.Symbols{On: '1', Off: '0'}, MaxLine: 64 << 10,
	}
	if !reflect.DeepEqual(c.Spec, want) {
		t.Errorf("spec is %+v, want %+v", c.Spec, want)
	}
	if c.Output != "out" || c.Job != "" || c.Workers != 0 || c.Window != 2 || c.Strict ||
		c.JSON || c.Progress != "auto" || c.LogLevel != slog.LevelWarn || c.LogFormat != "text" || c.StopTimeout != 10*time.Second {
		t.Errorf("got %+v", c)
	}
	for _, k := range config.Keys() {
		if c.Origin(k.Name).Source != config.Default || c.Text(k.Name) != k.Default {
			t.Errorf("%s is %q from %v, want its default %q", k.Name, c.Text(k.Name), c.Origin(k.Name), k.Default)
		}
	}
}

// TestPrecedence gives one key to every subset of the four origins; the
// strongest member must win.
func TestPrecedence(t *testing.T) {
	for given := range 8 {
		var args []string
		want, origin := 0, "default"
		if given&1 != 0 {
			write(t, "# first line", "workers: 1")
			args = append(args, "--config=flipmill.yaml")
			want, origin = 1, "flipmill.yaml:2"
		}
		if given&2 != 0 {
			t.Setenv("FLIPMILL_WORKERS", "2")
			want, origin = 2, "FLIPMILL_WORKERS"
		} else {
			t.Setenv("FLIPMILL_WORKERS", "") // empty is unset
		}
		if given&4 != 0 {
			args = append(args, "--workers=3")
			want, origin = 3, "--workers"
		}
		c, err := load(t, "run", args...)
		if err != nil {
			t.Fatal(err)
		}
		if c.Workers != want || c.Origin("workers").String() != origin {
			t.Errorf("given %03b: workers is %d from %v, want %d from %s", given, c.Workers, c.Origin("workers"), want, origin)
		}
	}
}

// TestEveryKeyFromEverySource sets each key to a value other than its default:
// viper ignores environment variables of keys that it was not told of.
func TestEveryKeyFromEverySource(t *testing.T) {
	values := map[string]string{
		"output": "Data/Sets", "into": "Data/Other", "job": "j-1", "preset": "fridge", "rule": "stencil:010/111/011-torus", "target": "either",
		"search-limit": "7", "format": "grid", "size": "5x6", "symbols": "#=1,.=0", "max-line": "2MiB",
		"columns": "puzzle_index,board", "cells": "bits", "compression": "none", "part-chunks": "3",
		"workers": "9", "window": "5", "stop-timeout": "1m30s", "strict": "true",
		"json": "true", "csv": "true", "file": "Page.html", "index": "0", "moves": "3", "status": "impossible", "limit": "6", "for": "spark", "rounds": "7", "turn": "90ms", "progress": "plain", "http": ":9464", "http-hosts": "flipmill.example,b", "show-origin": "true", "log-level": "debug", "log-format": "json",
		"nats-url": "nats://a:1,nats://b:2", "replicas": "3", "task-bytes": "8MiB", "result-bytes": "16MiB",
		"credentials": "me.creds", "tls-ca": "CA.pem", "tls-cert": "me.crt", "tls-key": "me.key", "insecure": "true",
		"max-ack-pending": "12", "ack-wait": "5s", "memory": "2MiB", "lease": "7s", "wait": "true",
		"lane": "high", "timeout": "1m30s", "frame": "name,end=END", "order": "column-major", "fields": "board=b,id=key", "keep": "level,author",
		"generate": "solvable,count=9,seed=7",
	}
	plain, err := load(t, "run")
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, k config.Key, source config.Source, args ...string) {
		t.Helper()
		verb := "run"
		if k.Verbs != nil {
			verb = k.Verbs[0]
		}
		c, err := load(t, verb, args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Text(k.Name); got != values[k.Name] || c.Origin(k.Name).Source != source {
			t.Errorf("%s is %q from %v, want %q", k.Name, got, c.Origin(k.Name), values[k.Name])
		}
		if !fieldsDiffer(c, plain) {
			t.Errorf("setting %s changes no field", k.Name)
		}
	}
	for _, k := range config.Keys() {
		value, ok := values[k.Name]
		if !ok {
			t.Errorf("the test has no value for %s", k.Name)
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			check(t, k, config.Flag, "--"+k.Name+"="+value)
			write(t, k.Name+": \""+value+"\"")
			check(t, k, config.File, "--config", "flipmill.yaml")
			t.Setenv("FLIPMILL_"+strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_")), value)
			check(t, k, config.Environment)
		})
	}
}

// fieldsDiffer compares the exported fields.
func fieldsDiffer(a, b *config.Config) bool {
	x, y := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range x.NumField() {
		if x.Type().Field(i).IsExported() && !reflect.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			return true
		}
	}
	return false
}

// TestVariableOfNATS: the variable that NATS's own tools read yields to ours.
func TestVariableOfNATS(t *testing.T) {
	t.Setenv("NATS_URL", "nats://theirs:1")
	c, err := load(t, "worker")
	if err != nil || c.NATSURL != "nats://theirs:1" || c.Origin("nats-url").String() != "NATS_URL" {
		t.Errorf("%q from %v, error %v", c.NATSURL, c.Origin("nats-url"), err)
	}
	t.Setenv("FLIPMILL_NATS_URL", "nats://ours:1")
	c, err = load(t, "worker")
	if err != nil || c.NATSURL != "nats://ours:1" || c.Origin("nats-url").String() != "FLIPMILL_NATS_URL" {
		t.Errorf("%q from %v, error %v", c.NATSURL, c.Origin("nats-url"), err)
	}
}

func TestPresets(t *testing.T) {
	for _, test := range []struct {
		name   string
		file   []string
		env    [2]string
		args   []string
		key    string
		want   string
		origin string
	}{
		{name: "sets the rule", args: []string{"--preset=fridge"},
			key: "rule", want: "fridge", origin: "preset fridge from --preset"},
		{name: "sets the symbols", args: []string{"--preset=fridge"},
			key: "symbols", want: "+=1,-=0", origin: "preset fridge from --preset"},
		{name: "sets the size", args: []string{"--preset=flip-game"},
			key: "size", want: "4x4", origin: "preset flip-game from --preset"},
		{name: "leaves a size that the input shows", args: []string{"--preset=fliptile", "--config=flipmill.yaml"}, file: []string{"size: 3x3"},
			key: "size", want: "3x3", origin: "flipmill.yaml:1"},
		{name: "yields to a flag beside it", args: []string{"--preset=flip-game", "--target=one"},
			key: "target", want: "one", origin: "--target"},
		{name: "beats a weaker source", args: []string{"--preset=fridge", "--config=flipmill.yaml"}, file: []string{"rule: king"},
			key: "rule", want: "fridge", origin: "preset fridge from --preset"},
		{name: "yields to a stronger source", args: []string{"--config=flipmill.yaml"}, file: []string{"preset: fridge"}, env: [2]string{"FLIPMILL_RULE", "x"},
			key: "rule", want: "x", origin: "FLIPMILL_RULE"},
		{name: "from a file", args: []string{"--config=flipmill.yaml"}, file: []string{"", "preset: fliptile"},
			key: "format", want: "grid", origin: "preset fliptile from flipmill.yaml:2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, test.file...)
			if test.env[0] != "" {
				t.Setenv(test.env[0], test.env[1])
			}
			c, err := load(t, "run", test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if c.Text(test.key) != test.want || c.Origin(test.key).String() != test.origin {
				t.Errorf("%s is %q from %q, want %q from %q", test.key, c.Text(test.key), c.Origin(test.key), test.want, test.origin)
			}
		})
	}
}

// TestMessages pins what people read: the place, the key, what was found, what
// was expected, and everything that is wrong at once.
// The flags of a job say all that was said of it, wherever that was.
func TestJobFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("preset: flip-game\nsize: 4x5\ncolumns: [board, min_moves]\nworkers: 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FLIPMILL_SEARCH_LIMIT", "77")
	said, err := load(t, "submit", "--config="+file, "--rule=king", "--max-line=1MiB", "--job=j", "--lane=low", "--window=3", "--wait")
	if err != nil {
		t.Fatal(err)
	}
	flags := said.JobFlags("lane", "window")
	t.Setenv("FLIPMILL_SEARCH_LIMIT", "")
	again, err := load(t, "submit", flags...)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Spec, said.Spec) || again.Lane != "low" || again.Window != 3 || again.Job != "" || again.Wait {
		t.Errorf("%v give %+v, want %+v", flags, again.Spec, said.Spec)
	}
	if nothing, err := load(t, "submit"); err != nil || nothing.JobFlags("lane", "window") != nil {
		t.Errorf("defaults give flags (%v)", err)
	}
}

func TestMessages(t *testing.T) {
	write(t,
		"workers: many",
		"Job: upper",
		"",
		"compresion: zstd",
		"target: eiter",
		"job: 2024-run",
		"stop-timeout: 30",
	)
	t.Setenv("FLIPMILL_WINDOW", "2.5")
	t.Setenv("FLIPMILL_WORKER", "2")
	_, err := load(t, "run", "--config=flipmill.yaml", "--size=5by6", "--max-line=64kb")
	want := []string{
		`flipmill.yaml:1: workers: "many": want a whole number from 0 to 1024`,
		`flipmill.yaml:2: Job: no such key; did you mean job?`,
		`flipmill.yaml:4: compresion: no such key; did you mean compression?`,
		`flipmill.yaml:5: target: "eiter": want zero, one or either; did you mean either?`,
		`flipmill.yaml:6: job: job id "2024-run": want a lower-case letter, then at most 62 lower-case letters, digits or '-'`,
		`flipmill.yaml:7: stop-timeout: "30": want a time with its unit, such as 90s or 5m, from 0s to 24h0m0s`,
		`FLIPMILL_WORKER: no such key; did you mean FLIPMILL_WORKERS?`,
		`--size: size "5by6": want ROWSxCOLS, such as 5x6`,
		`--max-line: "64kb": want a number of bytes, such as 65536 or 64KiB, from 1024 to 16777216`,
		`FLIPMILL_WINDOW: "2.5": want a whole number from 1 to 64`,
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
	if e, ok := errors.AsType[*config.Error](err); !ok || e.Key != "workers" || e.Origin.Source != config.File {
		t.Errorf("the first error is %+v, want key workers from a file", e)
	}
}

func TestWrong(t *testing.T) {
	c, err := load(t, "run", "--columns=board,bord")
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New(`no column "bord"`)
	err = c.Wrong("columns", cause)
	if err.Error() != `--columns: no column "bord"` || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestFlagsFollowTheTable(t *testing.T) {
	for _, verb := range []string{"run", "solve", "verify", "version", "setup", "submit", "worker", "aggregator", "status", "wait", "cancel"} {
		cmd := &cobra.Command{Use: verb + " ARGUMENT..."}
		config.Flags(cmd)
		for _, k := range config.Keys() {
			f := cmd.Flags().Lookup(k.Name)
			wanted := k.Verbs == nil
			for _, v := range k.Verbs {
				wanted = wanted || v == verb
			}
			switch {
			case (f != nil) != wanted:
				t.Errorf("%s --%s: flag defined is %v, the table says %v", verb, k.Name, f != nil, wanted)
			case f != nil && (f.DefValue != k.Default || f.Shorthand != k.Short):
				t.Errorf("%s --%s: default %q, short %q, want %q, %q", verb, k.Name, f.DefValue, f.Shorthand, k.Default, k.Short)
			}
		}
		if cmd.Flags().Lookup("config") == nil {
			t.Errorf("%s has no --config", verb)
		}
	}
}

func TestHelp(t *testing.T) {
	cmd := &cobra.Command{Use: "run"}
	config.Flags(cmd)
	help := cmd.Flags().FlagUsages()
	for _, want := range []string{
		"  -o, --output dir ",
		"folder in which datasets are made, on a disk or in a bucket (default out)\n",
		"      --strict            ", // no "[=true]"
		"how boards and solutions are stored (text or bits) (default text)\n",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("the help has no %q:\n%s", want, help)
		}
	}
}

func TestBooleanFlagNeedsNoValue(t *testing.T) {
	c, err := load(t, "run", "--strict", "--json=false")
	if err != nil || !c.Strict || c.JSON {
		t.Errorf("strict %v, json %v, error %v", c.Strict, c.JSON, err)
	}
}

// TestTable checks what the rest relies on.
func TestTable(t *testing.T) {
	seen := map[string]bool{"config": true}
	for _, k := range config.Keys() {
		if seen[k.Name] {
			t.Errorf("%s stands twice", k.Name)
		}
		seen[k.Name] = true
		for _, verb := range k.Verbs {
			if k.Short != "" && seen[verb+" -"+k.Short] {
				t.Errorf("-%s of %s stands twice", k.Short, verb)
			}
			seen[verb+" -"+k.Short] = true
		}
		if k.Name != strings.ToLower(k.Name) || k.Help == "" || k.Type == "" || k.Want == "" || strings.HasSuffix(k.Help, ".") {
			t.Errorf("incomplete row: %+v", k)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	_, err := load(t, "run", "--config", filepath.Join(t.TempDir(), "missing.yaml"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "missing.yaml") {
		t.Errorf("got %v", err)
	}
}
