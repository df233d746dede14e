package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/aggregator"
	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/pages"
	"github.com/flipmill/flipmill/pkg/queue"
)

func newAggregator() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "aggregator",
		Short: "Make the datasets of all jobs on a NATS server",
		Long: `Collects the results of jobs on a NATS server and leaves their datasets in
OUTPUT/job=JOB, a folder or one in a bucket (s3://BUCKET/FOLDER), until it is
stopped. It may be killed and started again at any time: the output says what is
committed, the server has the rest.

Any number of aggregators may serve one server. Those that share an OUTPUT, on
whatever machines, share its jobs: a new job goes to one that has few, and when
one is stopped the others go on with its jobs at once, or after --lease if it
was killed. A job belongs to the OUTPUT whose aggregator took it first; those of
other OUTPUTs leave it alone.`,
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
	if err := wantFolder(c); err != nil {
		return err
	}
	identity, err := dataset.Identify(c.Output)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find out the name of this machine: %w", err)
	}
	log := daemon.NewLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel)
	m := newMonitor(standstill)
	counts := aggregator.NewMetrics(m.registry)
	s := &service{verb: "aggregator", c: c, log: log, seen: m, run: func(drain, _ context.Context, conn *queue.Conn) error {
		if err := conn.Ensure(drain, queue.Limits{}); err != nil {
			return err
		}
		log.Info("aggregator started", "output", c.Output, "identity", identity)
		return aggregator.Run(drain, conn, aggregator.Options{
			Output: c.Output, Identity: identity, Name: host, Lease: c.Lease, Memory: int64(c.Memory),
			Turned: m.works, Metrics: counts, Log: log,
		})
	}, site: func(conn *queue.Conn) *pages.Site {
		return pages.New(pages.Options{Conn: conn, Output: c.Output, Identity: identity, Hosts: c.HTTPHosts, Log: log})
	}}
	return s.serve(cmd)
}
