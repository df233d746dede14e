package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/report"
)

func newReport() *cobra.Command {
	return newDatasetVerb(&cobra.Command{
		Use:   "report DATASET",
		Short: "Write an HTML page about a dataset",
		Long: `Writes one HTML file about a finished dataset, to look at and to hand on: histograms
of the fewest presses by size, the share of boards that can be solved, how many have
one optimum, the hardest boards with their solutions, rejects by reason with examples,
and what the dataset was made from.

The file needs no other and no network. Its only scripts draw the charts; the tables
below them say the same. The same dataset gives the same bytes.`,
		Example: `  flipmill report out/job=boards-5x5 -o boards-5x5.html
  flipmill report out/job=boards-5x5 > boards-5x5.html`,
	}, func(cmd *cobra.Command, c *config.Config, path string) error {
		if c.File == "" && isTerminal(cmd.OutOrStdout()) {
			return withCode(exitUsage, fmt.Errorf("report: want -o FILE: the page is no text for a terminal"))
		}
		m, step := newToldMeter("report", "searches")
		defer m.show(cmd.ErrOrStderr(), c.Progress)()
		if c.File == "" {
			return report.Write(cmd.OutOrStdout(), path, step)
		}
		return intoFile(c.File, func(w io.Writer) error { return report.Write(w, path, step) })
	})
}

// intoFile writes a file that is there as a whole or as it was before. What is no
// regular file, such as a device, cannot be replaced, and is written into.
func intoFile(name string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // the link stays
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("write %s: it is a folder: want the name of a file", name)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write the page: %w", err)
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".flipmill-*.tmp")
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("write %s: make a file in the folder %s: %w", name, filepath.Dir(name), cause.Err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(f.Name(), name)
}
