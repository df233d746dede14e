package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// configFlag names the file. It is no key: a file cannot name itself.
const configFlag = "config"

// fileName returns the file's name, and what said it where that is not seen in the
// command; both may be empty.
func fileName(flags *pflag.FlagSet) (name, by string) {
	if f := flags.Lookup(configFlag); f != nil && f.Changed {
		return f.Value.String(), ""
	}
	const variable = variablePrefix + "CONFIG"
	return os.Getenv(variable), " (from " + variable + ")"
}

// file holds the keys of a YAML file as they are written there.
type file struct {
	name  string
	texts map[string]any // key to string; any because viper wants it
	lines map[string]int // key to 1-based line
}

// readFile reads a file, or nothing where the name is empty; an error that it cannot be
// read says what has named it. It takes the texts
// from the YAML tree instead of decoding them, because decoding loses what was
// written: on becomes true, 010 becomes 8, and the line is gone.
func readFile(name, by string, keys []Key) (file, []error) {
	f := file{name, map[string]any{}, map[string]int{}}
	if name == "" {
		return f, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err // the name is said already
		}
		return f, []error{fmt.Errorf("read configuration %s%s: %w", name, by, err)}
	}
	root, err := parseYAML(data)
	if err != nil {
		return f, []error{notYAML(name, err)}
	}
	var errs []error
	for i := 0; root != nil && i < len(root.Content); i += 2 {
		key, value := root.Content[i].Value, root.Content[i+1]
		line := root.Content[i].Line
		if err := f.add(key, value, line, keys); err != nil {
			errs = append(errs, &Error{key, f.origin(line), err})
		}
	}
	return f, errs
}

// notYAML says where a file is not as files should be.
func notYAML(name string, err error) error {
	where, text := name, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if line, said, ok := strings.Cut(rest, ": "); ok {
			where, text = name+":"+line, said
		}
	}
	return fmt.Errorf("%s: %s: want one YAML document with lines of the form key: value", where, text)
}

// parseYAML returns the top mapping of a document, or nil for an empty one.
func parseYAML(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	root := document.Content[0]
	switch {
	case root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null":
		return nil, nil
	case root.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("line %d: no key", root.Line)
	}
	return root, nil
}

// originOf returns the strongest source that has a value for the key.
func (f file) originOf(k Key, flags *pflag.FlagSet) Origin {
	flag := flags.Lookup(k.Name)
	switch line, written := f.lines[k.Name]; {
	case flag != nil && flag.Changed:
		return Origin{Source: Flag, Where: "--" + k.Name}
	case k.given() != "":
		return Origin{Source: Environment, Where: k.given()}
	case written:
		return f.origin(line)
	default:
		return Origin{Source: Default, Where: "default"}
	}
}

func (f file) origin(line int) Origin {
	return Origin{File, fmt.Sprintf("%s:%d", f.name, line), line}
}

// inOrder joins errors: those of a file by its lines, and behind them all others.
func inOrder(errs []error) error {
	line := func(err error) int {
		if e, ok := errors.AsType[*Error](err); ok && e.Origin.line > 0 {
			return e.Origin.line
		}
		return math.MaxInt
	}
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(line(a), line(b)) })
	return errors.Join(errs...)
}

func (f file) add(key string, value *yaml.Node, line int, keys []Key) error {
	var known []string
	for _, k := range keys {
		known = append(known, k.Name)
		if k.Name != key {
			continue
		}
		if first, twice := f.lines[key]; twice {
			return fmt.Errorf("stands in line %d already", first)
		}
		text, err := scalarOrList(value, k)
		if err == nil {
			f.texts[key], f.lines[key] = text, line
		}
		return err
	}
	return fmt.Errorf("no such key%s", DidYouMean(key, known))
}

func scalarOrList(value *yaml.Node, k Key) (string, error) {
	switch {
	case value.Kind == yaml.ScalarNode && value.ShortTag() != "!!null":
		return value.Value, nil
	case value.Kind == yaml.SequenceNode && k.Type == "list":
		var words []string
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, listSeparator) {
				return "", fmt.Errorf("line %d: want a plain word", item.Line)
			}
			words = append(words, item.Value)
		}
		return strings.Join(words, listSeparator), nil
	default:
		return "", fmt.Errorf("no value, or not a plain one: want %s", k.Want)
	}
}

// unknownVariables reports the variables of the environment that carry our
// prefix but no key's name. Kubernetes puts the addresses of a service that is
// called flipmill, or flipmill-anything, under the same prefix; those are let be.
func unknownVariables(environment []string, keys []Key) []error {
	known := []string{"CONFIG"} // without the prefix, which says nothing of what was meant
	for _, k := range keys {
		known = append(known, strings.TrimPrefix(k.Variable(), variablePrefix))
	}
	var errs []error
	for _, entry := range environment {
		variable, text, _ := strings.Cut(entry, "=")
		name, ours := strings.CutPrefix(variable, variablePrefix)
		if text == "" || !ours || slices.Contains(known, name) || serviceLink(variable) {
			continue
		}
		meant := nearest(name, known)
		for i := range meant {
			meant[i] = variablePrefix + meant[i]
		}
		errs = append(errs, &Error{variable, Origin{Source: Environment, Where: variable}, fmt.Errorf("no such key%s", didYouMean(meant))})
	}
	return errs
}

func serviceLink(variable string) bool {
	return regexp.MustCompile(`_SERVICE_(HOST|PORT)|_PORT(_\d+_(TCP|UDP|SCTP)|$)`).MatchString(variable)
}

// Template returns a configuration file with every key commented out: what it
// means, what it takes, and its default.
func Template() []byte {
	var b bytes.Buffer
	b.WriteString("# flipmill's configuration: every key with its default. Remove the # before a key to set it.\n" +
		"# A flag --KEY is stronger than a variable " + variablePrefix + "KEY, which is stronger than this file.\n" +
		"# Used with --config FILE or " + variablePrefix + "CONFIG.\n")
	for _, k := range Keys() {
		text := k.Default
		if text == "" {
			text = `""`
		}
		fmt.Fprintf(&b, "\n# %s.\n# Takes %s.\n# %s: %s\n", sentence(k.Help), k.Want, k.Name, text)
	}
	return b.Bytes()
}

func sentence(help string) string { return strings.ToUpper(help[:1]) + help[1:] }
