package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
)

func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a flipmill process on this host whether it can work",
		Long: `Asks /readyz at --http, where worker, aggregator, submit or run with the same
--http answers. It ends with 0 if the process can work, and with 1 and the
reason otherwise: a health check for containers, whose image has no other
program that could ask.`,
		Example: `  flipmill worker --http :9464
  flipmill health --http :9464`,
		Args: wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			if c.HTTP == "" {
				return withCode(exitConfig, c.Wrong("http", errors.New("empty: want the address that the process was given")))
			}
			if err := daemon.Ask(cmd.Context(), c.HTTP, "/readyz"); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), "ok"); err != nil {
				return fmt.Errorf("write the outcome: %w", err)
			}
			return nil
		},
	}
	config.Flags(cmd)
	return cmd
}
