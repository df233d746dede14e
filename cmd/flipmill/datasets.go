package main

import (
	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
)

// newDatasetVerb completes a command about one dataset whose work is run.
func newDatasetVerb(cmd *cobra.Command, run func(cmd *cobra.Command, c *config.Config, path string) error) *cobra.Command {
	cmd.Args = wantArgs(1, 1, "one DATASET folder, such as out/job=boards-5x5")
	cmd.ValidArgsFunction = completeDatasets
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := load(cmd)
		if err != nil {
			return err
		}
		return run(cmd, c, args[0])
	}
	config.Flags(cmd)
	return cmd
}
