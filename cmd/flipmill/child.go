package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/worker"
)

const childVerb = "solve-chunk"

// newChild is no verb for people: a worker starts it for a chunk that may have
// killed another worker.
func newChild() *cobra.Command {
	return &cobra.Command{
		Use:    childVerb,
		Short:  "Solve one chunk for a worker",
		Hidden: true,
		Args:   wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return worker.Child(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// childCommand returns the command line of newChild.
func childCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program's own file: %w", err)
	}
	return []string{self, childVerb}, nil
}
