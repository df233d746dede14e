package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
)

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what keeps flipmill from working with a NATS server",
		Long: `Looks at the NATS server, and changes nothing there: version, encryption, for
which role the permissions of these credentials are enough, clock, size of
messages, JetStream, whether streams, lanes and bucket are what flipmill setup
with the same options would make, and whether an aggregator serves each open job.
With --output it also tries a commit there. For each finding it says what to do.

It ends with 1 if there are findings, and with 4 if the server cannot be reached
or denies a look.`,
		Example: `  flipmill doctor
  flipmill doctor --nats-url nats://broker:4222 --json
  flipmill doctor --output datasets
  flipmill doctor --output s3://bucket/datasets`,
		Args: wantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			findings := lookAtSecrets(c.Credentials, c.TLSKey)
			ofBroker, broken := lookAtBroker(cmd.Context(), c, cmd.ErrOrStderr())
			findings = append(findings, ofBroker...)
			if c.Origin("output").Source != config.Default {
				findings = append(findings, lookAtOutput(c.Output))
			}
			if err := printFindings(cmd.OutOrStdout(), findings, c.JSON); err != nil {
				return fmt.Errorf("write the findings: %w", err)
			}
			if broken != nil {
				return broken
			}
			return sumUp(findings)
		},
	}
	config.Flags(cmd)
	return cmd
}

// sumUp makes an error of the findings that are not OK.
func sumUp(findings []queue.Finding) error {
	bad := 0
	for _, f := range findings {
		if !f.OK {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return errors.New(view.Times(bad, "finding", "findings"))
}

// lookAtBroker returns an error, too, if it could not look at all.
func lookAtBroker(ctx context.Context, c *config.Config, stderr io.Writer) ([]queue.Finding, error) {
	conn, err := connect(ctx, c, "doctor", daemon.NewLogger(stderr, c.LogFormat, c.LogLevel))
	if err != nil {
		advice := "start the server, or say with --nats-url where it is"
		switch {
		case errors.Is(err, queue.ErrDenied):
			advice = "name a file of credentials that the server knows with --credentials"
		case errors.Is(err, queue.ErrOptions):
			advice = "change the options that say how to connect"
		}
		return []queue.Finding{{Check: "connect", Found: err.Error(), Advice: advice}}, err
	}
	defer conn.Close()
	findings, err := conn.Examine(ctx, limits(c))
	if err != nil {
		return findings, err
	}
	jobs, err := conn.Standings(ctx)
	switch {
	case errors.Is(err, queue.ErrNotFound): // there is no bucket, and that is a finding
		return findings, nil
	case err != nil:
		return findings, err
	}
	return append(findings, lookAtJobs(jobs, time.Now())...), nil
}

// lookAtJobs looks for open jobs that no aggregator serves.
func lookAtJobs(jobs []*queue.Standing, now time.Time) []queue.Finding {
	open := 0
	unserved := map[string][]string{} // jobs by output
	for _, s := range jobs {
		if s.Ended() {
			continue
		}
		open++
		if v := view.NewStatus(s, now); v.Unserved() {
			unserved[v.Output] = append(unserved[v.Output], v.Job)
		}
	}
	if len(unserved) == 0 {
		return []queue.Finding{{Check: "jobs", OK: true, Found: fmt.Sprintf("%d open, none without its aggregator", open)}}
	}
	var findings []queue.Finding
	for _, output := range slices.Sorted(maps.Keys(unserved)) {
		f := queue.Finding{Check: "jobs", Found: strings.Join(unserved[output], ", ") + ": no aggregator serves them", Advice: "start flipmill aggregator"}
		if output != "" {
			f.Found += fmt.Sprintf(", and they belong to output %s", output)
			f.Advice = fmt.Sprintf("start flipmill aggregator with the folder in which .output-id says %s; if that is lost, write it into .output-id of another folder, and submit the jobs again", output)
		}
		findings = append(findings, f)
	}
	return findings
}

// lookAtSecrets looks for files with secrets that everybody on this host can read.
func lookAtSecrets(files ...string) (findings []queue.Finding) {
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			continue // none is named, or connecting tells
		}
		f := queue.Finding{Check: "secret", OK: true, Found: name + " is not for everybody"}
		if info.Mode().Perm()&0o007 != 0 {
			f = queue.Finding{Check: "secret", Found: name + " can be used by everybody on this host", Advice: "chmod o= " + name}
		}
		findings = append(findings, f)
	}
	return findings
}

func lookAtOutput(folder string) queue.Finding {
	advice := "choose a folder that this user may write, on a file system with room, hard links and fsync"
	if object.Is(folder) {
		advice = "choose a bucket that these credentials may list, read, write and delete in, of a server that knows If-None-Match"
	}
	free, err := dataset.Probe(folder)
	if err != nil {
		return queue.Finding{Check: "output", Found: fmt.Sprintf("%s: %v", folder, err),
			Advice: advice}
	}
	identity, err := dataset.Identity(folder)
	if err != nil {
		return queue.Finding{Check: "output", Found: err.Error(), Advice: "restore the file, or remove it and lose the jobs that belong to the folder"}
	}
	found := folder + " takes commits"
	if free >= 0 {
		found += fmt.Sprintf(", %d MiB free", free>>20)
	}
	if identity != "" {
		found += "; it is output " + identity
	}
	return queue.Finding{Check: "output", OK: true, Found: found}
}

func printFindings(w io.Writer, findings []queue.Finding, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(findings)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		mark := "ok"
		if !f.OK {
			mark = "BAD"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", mark, f.Check, f.Found)
		if f.Advice != "" {
			fmt.Fprintf(table, "\t\t-> %s\n", f.Advice)
		}
	}
	return table.Flush()
}
