package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/view"
)

// completionPatience is how long the shell waits for the names of jobs.
const completionPatience = time.Second

// completeDatasets offers the shell folders.
func completeDatasets(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeJobs offers the shell the jobs of the server, with how they are. It has
// nothing to offer where there is no server, since a prompt is no place for errors.
func completeJobs(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, directive
	}
	c, err := load(cmd)
	if err != nil {
		return nil, directive
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	conn, err := connect(ctx, c, "completion", slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, directive
	}
	defer conn.Close()
	all, err := conn.Standings(ctx)
	if err != nil {
		return nil, directive
	}
	for _, s := range all {
		status := view.NewStatus(s, time.Now())
		names = append(names, cobra.CompletionWithDesc(status.Job, status.State+", "+status.Progress()))
	}
	return names, directive
}
