package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
	"github.com/flipmill/flipmill/pkg/wire"
)

// jobVerb is what the verbs that look at a job or give it an order have in
// common: a connection, and the job's id as their argument. They need neither
// producer nor workers nor aggregator, because they ask the broker's records.
type jobVerb struct {
	c    *config.Config
	conn *queue.Conn
	out  io.Writer
	err  io.Writer
	log  *slog.Logger
	id   string // empty for list
}

// newJobVerb completes a command whose work is run.
func newJobVerb(cmd *cobra.Command, run func(context.Context, *jobVerb) error) *cobra.Command {
	if cmd.Args == nil {
		cmd.Args = wantArgs(1, 1, "one JOB, as flipmill list shows it")
		cmd.ValidArgsFunction = completeJobs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := load(cmd)
		if err != nil {
			return err
		}
		v := &jobVerb{
			c: c, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(),
			log: daemon.NewLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel),
		}
		if len(args) > 0 {
			v.id = args[0]
			if err := puzzle.CheckJob(v.id); err != nil {
				return withCode(exitUsage, err)
			}
		}
		if v.conn, err = connect(cmd.Context(), c, cmd.Name(), v.log); err != nil {
			return err
		}
		defer v.conn.Close()
		err = run(cmd.Context(), v)
		if errors.Is(err, queue.ErrNotFound) {
			return withCode(exitNotFound, fmt.Errorf("%w; flipmill list shows the jobs of this server", err))
		}
		return err
	}
	config.Flags(cmd)
	return cmd
}

// outcome is the error with which those end who waited for the job's end.
func outcome(v *view.Status) error {
	if v.State == wire.Done.String() {
		return nil
	}
	err := fmt.Errorf("job %s is %s", v.Job, v.State)
	if v.Reason != "" {
		err = fmt.Errorf("%w: %s", err, view.Harmless(v.Reason))
	}
	return withCode(exitJobFailed, err)
}

// print writes what a verb has found out, as text or, where that is wanted, as
// JSON: a document for people's eyes too, or one line of many.
func (v *jobVerb) print(value any, text string, oneLine bool) error {
	data := []byte(text)
	if v.c.JSON {
		var err error
		if oneLine {
			data, err = json.Marshal(value)
			data = append(data, '\n')
		} else {
			data, err = document(value)
		}
		if err != nil {
			return fmt.Errorf("write the outcome: %w", err)
		}
	}
	if _, err := v.out.Write(data); err != nil {
		return fmt.Errorf("write the outcome: %w", err)
	}
	return nil
}
