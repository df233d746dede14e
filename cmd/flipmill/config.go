package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the configuration in force, and check configuration files",
		Example: `  flipmill config print --show-origin
  flipmill config validate flipmill.yaml`,
		Args: onlyVerbs,
		RunE: showHelp,
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newConfigPrint(), newConfigValidate())
	return cmd
}

func newConfigPrint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the value of every key, as a configuration file",
		Long: `Prints the value that every key has, from flags, environment, file or default, as a
configuration file that means the same. It takes the flags of all verbs, so it also
shows what they come to, such as those that a preset stands for.`,
		Example: `  flipmill config print
  flipmill config print --config flipmill.yaml --show-origin
  flipmill config print --preset fridge --show-origin
  flipmill config print --json`,
		Args: wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			var text []byte
			if c.JSON {
				text, err = configJSON(c)
			} else {
				text, err = c.YAML(c.ShowOrigin)
			}
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return err
		},
	}
	config.AllFlags(cmd)
	return cmd
}

// keySet is what flipmill config print tells of a key.
type keySet struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// configJSON is a list of keys, each with its value as written and where that was.
func configJSON(c *config.Config) ([]byte, error) {
	var keys []keySet
	for _, k := range config.Keys() {
		keys = append(keys, keySet{k.Name, c.Text(k.Name), c.Origin(k.Name).String()})
	}
	return document(keys)
}

func newConfigValidate() *cobra.Command {
	return &cobra.Command{
		Use:     "validate FILE...",
		Short:   "Check configuration files, without the environment",
		Example: `  flipmill config validate flipmill.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withCode(exitUsage, errors.New("validate: want at least one FILE, such as flipmill.yaml"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, name := range args {
				set, err := config.Validate(name)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: good, %d of %d keys are set\n", name, len(set), len(config.Keys())); err != nil {
					return fmt.Errorf("write the outcome: %w", err)
				}
			}
			return withCode(exitConfig, errors.Join(errs...))
		},
	}
}
