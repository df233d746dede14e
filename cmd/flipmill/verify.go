package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/view"
)

func newVerify() *cobra.Command {
	return newDatasetVerb(&cobra.Command{
		Use:   "verify DATASET",
		Short: "Prove from its files that a dataset is complete and right",
		Long: `Reads every byte of a dataset (the folder job=ID) and recomputes what it claims:
sizes and checksums, each puzzle_index exactly once, every solution applied to
its board, the statistics, the manifest. Names the rows of whatever is missing,
doubled or altered.`,
		Example: `  flipmill verify out/job=boards-5x5`,
	}, func(cmd *cobra.Command, c *config.Config, path string) error {
		report, err := verify(cmd.ErrOrStderr(), c.Progress, path)
		if err != nil {
			return err
		}
		if err := printReport(cmd.OutOrStdout(), report, c.JSON); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if n := len(report.Problems); n > 0 {
			return withCode(exitVerifyFailed, fmt.Errorf("%s: %s", path, view.Times(n, "problem", "problems")))
		}
		return nil
	})
}

// verify verifies a dataset, and shows how far it has come.
func verify(progress io.Writer, mode, path string) (*dataset.Report, error) {
	m, tell := newToldMeter("verify", "records")
	defer m.show(progress, mode)()
	return dataset.Verify(path, tell)
}

func printReport(w io.Writer, report *dataset.Report, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	for _, p := range report.Problems {
		if _, err := fmt.Fprintln(w, p); err != nil {
			return err
		}
	}
	for _, s := range report.Skipped {
		if _, err := fmt.Fprintln(w, "not checked:", s); err != nil {
			return err
		}
	}
	if !report.OK() {
		return nil
	}
	proved := "each of them exactly one row"
	if report.Rows < report.Records { // and no problem: there are statistics only
		proved = "each of them counted or a reject"
	}
	_, err := fmt.Fprintf(w, "%s records, %s: nothing is missing, doubled or altered\n", view.Thousands(report.Records), proved)
	return err
}
