package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/aggregator"
	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/queue"
)

func newAggregator() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "aggregator",
		Short: "Make the datasets of all jobs on a NATS server",
		Long: `Collects the results of all jobs on a NATS server and leaves their datasets in
OUTPUT/job=JOB, until it is stopped. One aggregator serves all jobs of a server;
a second one in the same folder is refused. It may be killed and started again
at any time: the folder says what is committed, the server has the rest.`,
		Example: `  flipmill aggregator --nats-url nats://broker:4222 -o datasets --log-level info`,
		Args:    wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			return aggregate(cmd, c)
		},
	}
	config.Flags(cmd)
	return cmd
}

func aggregate(cmd *cobra.Command, c *config.Config) error {
	unlock, err := dataset.Lock(c.Output)
	if err != nil {
		return err
	}
	log := daemon.NewLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel)
	m := newMonitor(standstill)
	counts := aggregator.NewMetrics(m.registry)
	s := &service{verb: "aggregator", c: c, log: log, seen: m, run: func(drain, _ context.Context, conn *queue.Conn) error {
		if err := conn.Ensure(drain, queue.Limits{}); err != nil {
			return err
		}
		log.Info("aggregator started", "output", c.Output)
		return aggregator.Run(drain, conn, aggregator.Options{Output: c.Output, Alone: true, Memory: int64(c.Memory), Turned: m.works, Metrics: counts, Log: log})
	}}
	return errors.Join(s.serve(cmd), unlock())
}
