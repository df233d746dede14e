package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// releaseVersion is set by the linker: -X main.releaseVersion=v1.2.3.
var releaseVersion string

// release returns the release, or what the build knows of it.
func release() string {
	if info, ok := debug.ReadBuildInfo(); ok && releaseVersion == "" {
		return info.Main.Version
	}
	return releaseVersion
}

// version returns the release and its source.
func version() string {
	name, commit := release(), ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				commit = " " + s.Value
			}
		}
	}
	return fmt.Sprintf("flipmill %s%s %s %s/%s", name, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  flipmill version`,
		Args:    wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}
