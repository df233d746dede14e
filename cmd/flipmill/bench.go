package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/bench"
	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/view"
)

func newBench() *cobra.Command {
	subjects := strings.Join(bench.Subjects(), ", ")
	cmd := &cobra.Command{
		Use:   "bench [SUBJECT...]",
		Short: "Measure how fast this machine solves, reads, encodes and carries boards",
		Long: `Measures the rooms of flipmill one by one, and flipmill run as a whole (e2e), each
against a baseline: the plain way to do it, or what nobody could do without. They
take turns, so that whatever else the machine does meets both. Figures are medians
of the turns; CPU is the CPU time for one board, row or chunk, and RATIO that of the
baseline as one: 0.01 is a hundredth of its CPU time. The boards are the same on all
machines, and the outcome names processor, Go and version, so that it can be compared.

SUBJECT is ` + subjects + `; without one, all are
measured, in one to two minutes. Files are made in a folder for temporary ones, so
TMPDIR says which disk is measured.`,
		Example: `  flipmill bench
  flipmill bench solver encode
  flipmill bench e2e --rounds 11 --json
  flipmill bench --csv > bench.csv`,
		ValidArgs: bench.Subjects(),
		Args: func(_ *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.Contains(bench.Subjects(), name) {
					return withCode(exitUsage, fmt.Errorf("bench: no subject %q: want some of %s%s", name, subjects, config.DidYouMean(name, bench.Subjects())))
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			if c.JSON && c.CSV {
				return withCode(exitUsage, errors.New("--json and --csv: want one of them"))
			}
			if len(args) == 0 {
				args = bench.Subjects()
			}
			report, err := measure(cmd.Context(), c, args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return report.print(cmd.OutOrStdout(), c)
		},
	}
	config.Flags(cmd)
	return cmd
}

// benchReport is what flipmill bench tells.
type benchReport struct {
	Version string          `json:"version"`
	Machine bench.Machine   `json:"machine"`
	Results []*bench.Result `json:"results"`
}

// measure measures the subjects and names each case as it begins.
func measure(ctx context.Context, c *config.Config, subjects []string, progress io.Writer) (report *benchReport, err error) {
	drain, _, stop := daemon.Context(ctx, 0)
	defer stop()
	dir, err := os.MkdirTemp("", "flipmill-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() {
		if end := os.RemoveAll(dir); err == nil {
			err = end
		}
	}()
	report = &benchReport{Version: release(), Machine: bench.ThisMachine()}
	for _, subject := range subjects {
		for _, one := range bench.Cases(subject) {
			fmt.Fprintf(progress, "%s %s\n", one.Subject, one.Name)
			r, err := one.Measure(drain, bench.Options{Rounds: c.Rounds, Turn: c.Turn, Dir: dir, Run: runHere})
			if signal, ok := errors.AsType[daemon.Signal](context.Cause(drain)); ok {
				return nil, withCode(code(signal.ExitCode()), signal)
			}
			if err != nil {
				return nil, err
			}
			report.Results = append(report.Results, r)
		}
	}
	return report, nil
}

// runHere is flipmill run with the given arguments in this process, without a word.
func runHere(ctx context.Context, args ...string) error {
	cmd := newRun()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	return cmd.ExecuteContext(ctx)
}

func (r *benchReport) print(w io.Writer, c *config.Config) error {
	switch {
	case c.JSON:
		text, err := document(r)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	case c.CSV:
		return r.csv(w)
	}
	return r.text(w)
}

// text is the outcome for people.
func (r *benchReport) text(to io.Writer) error {
	m := r.Machine
	fmt.Fprintf(to, "version   %s, %s, %s\nmachine   %s, %d cores, %d threads\n", r.Version, m.Go, m.System, m.CPU, m.Cores, m.Threads)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	subject := ""
	for _, x := range r.Results {
		if x.Subject != subject {
			subject = x.Subject
			fmt.Fprintf(w, "\n%s\t%sS/S\tCPU\tBYTES\tRATIO\tTO\n", strings.ToUpper(subject), strings.ToUpper(x.Unit))
		}
		bytes, ratio := "-", "-"
		if x.Bytes > 0 {
			bytes = fmt.Sprintf("%.4g", x.Bytes)
		}
		if x.Baseline != "" {
			ratio = fmt.Sprintf("%.3g", x.Ratio)
		}
		fmt.Fprintf(w, "%s\t%s\t%.4g ns\t%s\t%s\t%s\n", x.Case, view.Thousands(int64(x.Rate)), x.CPU, bytes, ratio, x.Baseline)
	}
	return w.Flush()
}

// csv has the machine in each line, so that the files of several machines can be
// put together.
func (r *benchReport) csv(to io.Writer) error {
	w := csv.NewWriter(to)
	lines := [][]string{{
		"version", "go", "system", "cpu", "cores", "threads", "subject", "case", "unit", "per_second", "cpu_ns_per_unit", "bytes_per_unit",
		"baseline", "baseline_per_second", "baseline_cpu_ns_per_unit", "cpu_ratio", "rounds",
	}}
	number := func(x float64) string {
		if x == 0 {
			return ""
		}
		return strconv.FormatFloat(x, 'g', 6, 64)
	}
	m := r.Machine
	for _, x := range r.Results {
		lines = append(lines, []string{
			r.Version, m.Go, m.System, m.CPU, strconv.Itoa(m.Cores), strconv.Itoa(m.Threads), x.Subject, x.Case, x.Unit, number(x.Rate), number(x.CPU), number(x.Bytes),
			x.Baseline, number(x.BaseRate), number(x.BaseCPU), number(x.Ratio), strconv.Itoa(x.Rounds),
		})
	}
	return w.WriteAll(lines)
}
