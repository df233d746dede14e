package config

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Flags defines on a command the flags of the verb it is named after, and
// --config, in the table's order.
func Flags(cmd *cobra.Command) {
	define(cmd, func(k Key) bool { return k.Verbs == nil || slices.Contains(k.Verbs, cmd.Name()) })
}

// AllFlags defines on a command the flags of all verbs, and --config.
func AllFlags(cmd *cobra.Command) {
	define(cmd, func(Key) bool { return true })
}

func define(cmd *cobra.Command, wanted func(Key) bool) {
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, k := range Keys() {
		if !wanted(k) {
			continue
		}
		help := k.Help
		if k.Values != nil {
			help += " (" + alternatives(k.Values) + ")"
		}
		short := k.Short
		if short != "" && flags.ShorthandLookup(short) != nil { // of a verb of its own; here the first has it
			short = ""
		}
		f := flags.VarPF(&flagText{text: k.Default, kind: k.Kind}, k.Name, short, help)
		if k.Type == "bool" {
			f.NoOptDefVal = "true"
		}
		if offered := slices.Concat(k.Values, k.Usual); offered != nil {
			complete(cmd, k.Name, cobra.FixedCompletions(offered, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	flags.String(configFlag, "", "YAML `file` with values for keys that no flag sets")
}

// complete offers the shell a flag's values.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic("BUG: config: " + err.Error())
	}
}

// flagText keeps what a flag was given, for Load to judge with the rest.
type flagText struct {
	text  string
	kind  Kind
	given bool
}

func (f *flagText) String() string { return f.text }

// Type is what the help shows for the value.
func (f *flagText) Type() string { return f.kind.Type }

// Set keeps the last text; a list that is given again grows.
func (f *flagText) Set(text string) error {
	if f.given && f.kind.Type == "list" {
		text = strings.Join([]string{f.text, text}, listSeparator)
	}
	f.text, f.given = text, true
	return nil
}
