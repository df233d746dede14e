package config

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// YAML returns the value of every key as a configuration file that means the same.
// With origins, a comment says where each value comes from.
func (c *Config) YAML(origins bool) ([]byte, error) {
	keys := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range Keys() {
		value := &yaml.Node{Kind: yaml.ScalarNode, Value: c.Text(k.Name)}
		if !utf8.ValidString(value.Value) {
			return nil, fmt.Errorf("write the configuration: %s: %q is no UTF-8, which a file must be", k.Name, value.Value)
		}
		if value.ShortTag() == "!!null" { // an empty text, or what YAML takes for none
			value.Style = yaml.DoubleQuotedStyle
		}
		if origins {
			value.LineComment = c.Origin(k.Name).String()
		}
		keys.Content = append(keys.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: k.Name}, value)
	}
	data, err := yaml.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return data, nil
}

// Validate reads a configuration file as [Load] does, whatever flags and
// environment say, and returns the keys that it sets, in the table's order. The
// error joins one [*Error] for each thing that is wrong, in the order of lines.
func Validate(name string) (set []string, err error) {
	if name == "" {
		return nil, errors.New("read configuration: a file has no name")
	}
	keys := table(new(Config))
	f, errs := readFile(name, "", keys)
	for _, k := range keys {
		line, written := f.lines[k.Name]
		if !written {
			continue
		}
		set = append(set, k.Name)
		if err := k.set(f.texts[k.Name].(string)); err != nil {
			errs = append(errs, &Error{k.Name, f.origin(line), err})
		}
	}
	return set, inOrder(errs)
}
