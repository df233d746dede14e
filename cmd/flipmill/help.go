package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flipmill/flipmill/pkg/config"
)

// newHelp replaces cobra's own help, which ends with 0 where there is no such verb.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB]",
		Short:   "Tell what a verb does, with its flags and examples",
		Example: `  flipmill help run`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			for _, verb := range cmd.Root().Commands() {
				if len(args) == 0 && verb.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(verb.Name(), verb.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(args) > 0 && verb == cmd.Root() {
				return withCode(exitUsage, unknownVerb(cmd.Root(), args[0]))
			}
			switch {
			case len(rest) > 0 && verb.HasSubCommands():
				return withCode(exitUsage, unknownVerb(verb, rest[0]))
			case len(rest) > 0:
				return withCode(exitUsage, fmt.Errorf("help: %s has no verbs, such as %q", verb.Name(), rest[0]))
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}

// flagError says which flag was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := err.(*pflag.NotExistError)
	if !ok {
		return withCode(exitUsage, err)
	}
	if said := cmd.Flags().Args(); cmd.HasSubCommands() && len(said) > 0 { // the flag is of the verb that was meant
		return withCode(exitUsage, unknownVerb(cmd, said[0]))
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	name := unknown.GetSpecifiedName()
	meant := config.DidYouMean(name, names)
	if example, part := map[string]string{"count": "random,count=1000", "first": "random,count=1000,first=5000", "seed": "random,count=1000,seed=7"}[name]; part {
		switch {
		case cmd.Name() == "generate":
			meant = "; it is part of SPEC, as in " + example
		case cmd.Flags().Lookup("generate") != nil:
			meant = "; it is part of --generate, as in --generate " + example
		}
	}
	if file := fileLikeFlag(unknown); file != "" {
		meant = fmt.Sprintf("; the file is written ./%s", file)
	}
	if !cmd.HasParent() {
		return withCode(exitUsage, fmt.Errorf("%w before a verb%s; flipmill help lists the verbs", err, meant))
	}
	return withCode(exitUsage, fmt.Errorf("%w%s; flipmill help %s lists the flags", err, meant, strings.TrimPrefix(cmd.CommandPath(), "flipmill ")))
}

// fileLikeFlag returns the name of a file that was taken for a flag because of the
// dash that it begins with, or nothing.
func fileLikeFlag(unknown *pflag.NotExistError) string {
	name := "--" + unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		name = "-" + letters
	}
	if _, err := os.Lstat(name); err != nil {
		return ""
	}
	return name
}
