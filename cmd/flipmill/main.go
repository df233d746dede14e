// Command flipmill solves huge corpora of tile-flipping puzzles and leaves
// Parquet datasets. Each verb has a file of its own that builds the parts from
// the configuration and wires them together; this file maps errors to exit
// codes, and nobody else ends the process.
package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
)

func main() {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	for _, verb := range root.Commands() {
		if verb.Name() == "completion" { // is cobra's, and takes a shell that it does not know for no error
			verb.Args, verb.RunE, verb.SuggestionsMinimumDistance = onlyVerbs, showHelp, 2
		}
	}
	help := &keeper{to: os.Stdout}
	tell := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.SetOut(help)
		tell(cmd, args)
	})
	err := root.Execute()
	if err == nil && help.err != nil {
		err = fmt.Errorf("write the help: %w", help.err)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "flipmill: %v\n", err)
	}
	os.Exit(int(exitCode(err)))
}

// keeper keeps the first error of a Writer: cobra, which writes the help, has no use
// for it.
type keeper struct {
	to  io.Writer
	err error
}

func (k *keeper) Write(data []byte) (int, error) {
	n, err := k.to.Write(data)
	k.err = cmp.Or(k.err, err)
	return n, err
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
		Args:          onlyVerbs,
		RunE:          showHelp,
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(strings.NewReplacer("Available Commands", "Verbs", "[command]", "VERB", "a command", "a verb").Replace(root.UsageTemplate()))
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(
		newRun(), newSolve(), newGenerate(), newCheck(), // one machine
		newVerify(), newStats(), newReport(), newShow(), newQuery(), newCompact(), // a dataset
		newSetup(), newDoctor(), newHealth(), newSubmit(), newWorker(), newAggregator(), // a NATS server
		newStatus(), newList(), newWatch(), newWait(), newWhy(), newPause(), newResume(), newRetry(), newCancel(), // its jobs
		newBench(), newConfig(), newVersion(), newChild(),
	)
	return root
}

// onlyVerbs are the arguments of a command that has nothing but verbs, and showHelp is
// what it does without one.
func onlyVerbs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return withCode(exitUsage, unknownVerb(cmd, args[0]))
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// unknownVerb says which verb was probably meant.
func unknownVerb(root *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown verb %q", name)
	if near := root.SuggestionsFor(name); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s; %s lists the verbs", text, strings.Replace(root.CommandPath(), "flipmill", "flipmill help", 1))
}

// load reads a verb's configuration; whatever is wrong with it has an exit code
// of its own.
func load(cmd *cobra.Command) (*config.Config, error) {
	c, err := config.Load(cmd.Flags())
	return c, withCode(exitConfig, err)
}

// wantArgs makes a wrong number of arguments an error of usage that says what
// is expected. So is an empty one, which a variable of a script that is not set
// makes: no verb may take it for the working folder.
func wantArgs(least, most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most || slices.Contains(args, "") {
			return withCode(exitUsage, fmt.Errorf("%s: want %s", cmd.Name(), want))
		}
		return nil
	}
}
