// Command flipmill solves huge corpora of tile-flipping puzzles and leaves
// Parquet datasets. Each verb has a file of its own that builds the parts from
// the configuration and wires them together; this file maps errors to exit
// codes, and nobody else ends the process.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	err := newRoot().Execute()
	if err != nil {
		fmt.Fprintf(os.Stderr, "flipmill: %v\n", err)
	}
	os.Exit(int(exitCode(err)))
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "flipmill",
		Short: "Solve tile-flipping puzzles by the billion, into Parquet",
		Long: `flipmill solves corpora of tile-flipping puzzles (Lights Out, Flip Game, Fliptile,
the Pilots Brothers' refrigerator and their family). Every answer has the fewest
presses, proved, and is the least of all such answers; the outcome is a Parquet
dataset that can be proved complete.

` + exitHelp(),
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withCode(exitUsage, err) })
	root.AddCommand(newRun(), newSolve(), newVerify(), newVersion())
	return root
}
