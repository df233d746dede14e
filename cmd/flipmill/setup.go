package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/queue"
)

func newSetup() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the streams on a NATS server, or change their limits",
		Long: `Creates what flipmill keeps on a NATS server with JetStream: a stream of tasks
with its consumers, a stream of results and a bucket of jobs. Where they exist,
their limits become those given here; nothing is lost by that.

submit and aggregator create what is missing, with the defaults, and leave what
exists as it is. So setup is for other limits, for a cluster, and for servers
where only an administrator may create streams.`,
		Example: `  flipmill setup
  flipmill setup --nats-url nats://a:4222,nats://b:4222 --replicas 3`,
		Args: wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			log := daemon.NewLogger(cmd.ErrOrStderr(), c.LogFormat, c.LogLevel)
			conn, err := connect(cmd.Context(), c, "setup", log)
			if err != nil {
				return err
			}
			defer conn.Close()
			if err := conn.Setup(cmd.Context(), limits(c)); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "ready at %s\n", redact(c.NATSURL)); err != nil {
				return fmt.Errorf("write the outcome: %w", err)
			}
			return nil
		},
	}
	config.Flags(cmd)
	return cmd
}

// limits says what the broker may keep.
func limits(c *config.Config) queue.Limits {
	return queue.Limits{
		TaskBytes:     int64(c.TaskBytes),
		ResultBytes:   int64(c.ResultBytes),
		MaxAckPending: c.MaxAckPending,
		AckWait:       c.AckWait,
		Replicas:      c.Replicas,
	}
}
