// Package config turns flags, environment variables and a YAML file into one
// plain struct.
//
// Everything follows from one table of keys (see [Keys]): the flags of a verb,
// the names of environment variables, the defaults, the checks, the help and
// the commented file in configs/. A key's value is written the same way
// wherever it stands, and each source hands on the text as written: one parser
// per key judges it, so nothing is guessed, rounded or dropped on the way.
//
// Terms: a key is one setting; a verb is a subcommand of flipmill; an origin is
// the place a value comes from. The stronger origin wins:
//
//	flag > environment > file > default
//
// A preset counts as if its keys had been written where the preset is, but
// yields to a key that is written there too. A file is read only when --config
// or FLIPMILL_CONFIG names it; no directory is searched. An empty environment
// variable counts as unset. Unknown keys are errors, in the file and in the
// environment.
//
//	config.Flags(cmd)                    // when the command is built
//	c, err := config.Load(cmd.Flags())   // when it runs
//
// A Config is read once and not changed after that; it is safe for concurrent
// use by readers. Nothing else in the program knows viper.
package config

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Config holds the value of every key. The table in table.go says what each
// field means, its range and its default.
type Config struct {
	Spec        puzzle.Spec   // Columns is nil for all columns
	Preset      string        // empty for none; its values are in Spec already
	Output      string        //
	Into        string        // output of compact; empty for the place of the old dataset
	Job         string        // empty: to be named by the verb
	Workers     int           // 0: one per core
	Window      int           // parts
	Strict      bool          //
	StopTimeout time.Duration // 0: no limit
	JSON        bool          //
	CSV         bool          //
	File        string        // empty: standard output
	Index       *int64        // nil: any
	Moves       *int64        // nil: any
	Status      string        // empty: any
	Limit       int           // rows
	For         string        // a reader of datasets
	Rounds      int           // turns of a measurement
	Turn        time.Duration // of a measurement
	Progress    string        //
	HTTP        string        // empty: nowhere
	HTTPHosts   []string      // names of hosts
	ShowOrigin  bool          //
	LogLevel    slog.Level    //
	LogFormat   string        //

	NATSURL       string        // one or several, separated by commas
	Credentials   string        // name of a file, as are the next three; empty for none
	TLSCA         string        //
	TLSCert       string        //
	TLSKey        string        //
	Insecure      bool          //
	Replicas      int           //
	TaskBytes     int           //
	ResultBytes   int           //
	MaxAckPending int           // tasks
	AckWait       time.Duration //
	Memory        int           // bytes
	Lease         time.Duration //
	Wait          bool          //
	Lane          string        //
	Timeout       time.Duration // 0: no limit

	settings map[string]setting
}

// setting is a key's value as written, and where.
type setting struct {
	text   string
	origin Origin
}

// Source is the kind of place a value comes from. A larger Source wins.
type Source int

// The sources, weakest first.
const (
	Default Source = iota
	File
	Environment
	Flag
)

// Origin is the place a value comes from.
type Origin struct {
	Source Source
	Where  string // for people: "default", "flipmill.yaml:3", "FLIPMILL_JOB", "--job", "preset fridge from --preset"
	line   int    // of a file, from 1
}

// String returns Where.
func (o Origin) String() string { return o.Where }

// Error is a value that a key does not take, or a key that does not exist.
type Error struct {
	Key    string
	Origin Origin
	Err    error // what was found and what was expected
}

// Error names the place, the key where the place does not show it, and the cause.
func (e *Error) Error() string {
	switch e.Origin.Source {
	case Flag, Environment:
		return fmt.Sprintf("%s: %v", e.Origin, e.Err)
	case Default:
		return fmt.Sprintf("--%s, by default: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Origin, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Load reads the configuration. The flags are those that [Flags] defined, parsed.
// The error joins one [*Error] for each thing that is wrong.
func Load(flags *pflag.FlagSet) (*Config, error) {
	v := viper.New()
	c := &Config{settings: map[string]setting{}}
	keys := table(c)
	name, by := fileName(flags)
	file, errs := readFile(name, by, keys)
	errs = append(errs, unknownVariables(os.Environ(), keys)...)

	if err := v.MergeConfigMap(file.texts); err != nil {
		return nil, fmt.Errorf("read %s: %w", file.name, err)
	}
	for _, k := range keys {
		if err := v.BindEnv(append([]string{k.Name}, k.variables()...)...); err != nil {
			return nil, fmt.Errorf("bind %s: %w", k.Variable(), err)
		}
		v.SetDefault(k.Name, k.Default)
		// Set rather than BindPFlag, which reads an unreadable number as 0.
		if f := flags.Lookup(k.Name); f != nil && f.Changed {
			v.Set(k.Name, f.Value.String())
		}
	}
	for _, k := range keys {
		c.settings[k.Name] = setting{v.GetString(k.Name), file.originOf(k, flags)}
	}
	c.applyPreset()
	for _, k := range keys {
		s := c.settings[k.Name]
		if err := k.set(s.text); err != nil {
			errs = append(errs, &Error{k.Name, s.origin, err})
		}
	}
	if len(errs) > 0 {
		return nil, inOrder(errs)
	}
	return c, nil
}

// applyPreset writes the preset's values where the preset stands.
func (c *Config) applyPreset() {
	at := c.settings["preset"].origin
	p, err := puzzle.ParsePreset(c.settings["preset"].text)
	if err != nil {
		return // none, or an error that the key's own check reports
	}
	values := map[string]string{
		"rule":    p.Rule,
		"target":  p.Target.String(),
		"symbols": p.Symbols.String(),
		"format":  p.Format,
	}
	if p.Frame != (puzzle.Frame{}) {
		values["frame"] = p.Frame.String()
	}
	if p.Size != (puzzle.Size{}) {
		values["size"] = p.Size.String()
	}
	for key, text := range values {
		if c.settings[key].origin.Source < at.Source {
			c.settings[key] = setting{text, Origin{at.Source, fmt.Sprintf("preset %s from %s", p.Name, at), at.line}}
		}
	}
}

// Origin returns where a key's value comes from.
func (c *Config) Origin(key string) Origin { return c.setting(key).origin }

// Text returns a key's value as written.
func (c *Config) Text(key string) string { return c.setting(key).text }

func (c *Config) setting(key string) setting {
	s, ok := c.settings[key]
	if !ok {
		panic("BUG: config: no key " + key)
	}
	return s
}

// JobFlags returns the flags that say again what to solve, whatever said it, and
// those of some other keys: what differs from the defaults, but for the job's name.
func (c *Config) JobFlags(others ...string) (flags []string) {
	job := jobKeys(new(Config))
	for _, k := range Keys() {
		said := slices.ContainsFunc(job, func(j Key) bool { return j.Name == k.Name && j.Name != "job" && j.Name != "preset" })
		if said && slices.Contains(k.Verbs, "submit") || slices.Contains(others, k.Name) {
			if text := c.Text(k.Name); text != k.Default {
				flags = append(flags, "--"+k.Name+"="+text)
			}
		}
	}
	return flags
}

// Anchor makes the names of files that are read later, such as credentials,
// independent of the current folder.
func (c *Config) Anchor() error {
	for _, name := range []*string{&c.Credentials, &c.TLSCA, &c.TLSCert, &c.TLSKey} {
		if *name == "" {
			continue
		}
		var err error
		if *name, err = filepath.Abs(*name); err != nil {
			return fmt.Errorf("find %s: %w", *name, err)
		}
	}
	return nil
}

// Wrong returns the error that says that a key's value is wrong, for checks
// that only the package that uses the value can make.
func (c *Config) Wrong(key string, err error) error {
	return &Error{key, c.Origin(key), err}
}
