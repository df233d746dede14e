package main

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/worker"
)

func newWorker() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Solve the tasks of all jobs on a NATS server",
		Long: `Takes tasks from a NATS server, solves and checks their boards, and sends back
finished row groups, until it is stopped. Start as many as there are machines,
whenever you like: a worker keeps nothing, and may be killed at any time.

The first Ctrl-C or SIGTERM lets it finish the chunks in hand, which mostly takes
well under a second, and end with 0. The second, or --stop-timeout, drops them;
another worker has them after the server's --ack-wait.`,
		Example: `  flipmill worker --nats-url nats://broker:4222 --log-level info`,
		Args:    wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			child, err := childCommand()
			if err != nil {
				return err
			}
			log := daemon.NewLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel)
			m := newMonitor(0) // a worker without tasks has nothing to say
			counts := worker.NewMetrics(m.registry)
			s := &service{verb: "worker", c: c, log: log, seen: m, run: func(drain, abort context.Context, conn *queue.Conn) error {
				log.Info("worker started", "slots", slots(c))
				return worker.Run(drain, abort, conn, worker.Options{Slots: slots(c), Child: child, Ready: m.works, Metrics: counts, Log: log})
			}}
			return s.serve(cmd)
		},
	}
	config.Flags(cmd)
	return cmd
}

// slots returns how many chunks are solved at once.
func slots(c *config.Config) int {
	if c.Workers == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return c.Workers
}
