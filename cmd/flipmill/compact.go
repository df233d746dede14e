package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/view"
)

func newCompact() *cobra.Command {
	return newDatasetVerb(&cobra.Command{
		Use:   "compact DATASET",
		Short: "Merge the parts of a dataset into fewer and larger ones",
		Long: `Puts the dataset that the same job leaves with a larger --part-chunks, byte for
byte, into the place of a finished one (the folder job=ID). Row groups are copied as
they are. As many whole parts become one as --part-chunks has room for; where that
is one, nothing is done.

Readers find the old dataset until the new one takes its place in one step (on
Linux). Whoever is killed in between leaves one of the two; the same command again
finishes and removes what is left besides. Until then there is room needed for both.

With --into, the new dataset is made in another output, also where there is nothing to
merge, and the old one stays. Either may be in a bucket. As with run, the dataset is
finished when its manifest is there, and the same command goes on where one was
killed.`,
		Example: `  flipmill compact out/job=boards-5x5
  flipmill compact out/job=boards-5x5 --part-chunks 512
  flipmill compact out/job=boards-5x5 --into s3://bucket/compact`,
	}, func(cmd *cobra.Command, c *config.Config, path string) error {
		was, is, err := compact(cmd.ErrOrStderr(), c, path)
		if err != nil {
			return err
		}
		if c.Into != "" {
			path = dataset.Path(c.Into, is.Job)
		}
		text, err := compactText(path, was, is, c)
		if err != nil {
			return err
		}
		if _, err := cmd.OutOrStdout().Write(text); err != nil {
			return fmt.Errorf("write the outcome: %w", err)
		}
		return nil
	})
}

// compact compacts a dataset, and shows how far it has come.
func compact(progress io.Writer, c *config.Config, path string) (was, is *dataset.Manifest, err error) {
	m, tell := newToldMeter("compact", "records")
	defer m.show(progress, c.Progress)()
	if c.Into != "" {
		return dataset.CompactInto(c.Into, path, c.Spec.PartChunks, tell)
	}
	return dataset.Compact(path, c.Spec.PartChunks, tell)
}

// compacted is what flipmill compact tells.
type compacted struct {
	Dataset    string `json:"dataset"`
	PartsWere  int    `json:"parts_were"`
	Parts      int    `json:"parts"`
	PartChunks int    `json:"part_chunks"`
}

// compactText says what became of a dataset's parts.
func compactText(path string, was, is *dataset.Manifest, c *config.Config) ([]byte, error) {
	if c.JSON {
		return document(compacted{path, len(was.Parts), len(is.Parts), is.Spec.PartChunks})
	}
	if len(was.Parts) == len(is.Parts) && c.Into == "" {
		return fmt.Appendf(nil, "%s stays as it is: no two of its parts fit into one (%s of at most %s)\n", path,
			view.Times(len(is.Parts), "part", "parts"), view.Times(is.Spec.PartChunks, "chunk", "chunks")), nil
	}
	return fmt.Appendf(nil, "%s has %s of at most %s; it was %s of %d\n", path,
		view.Times(len(is.Parts), "part", "parts"), view.Times(is.Spec.PartChunks, "chunk", "chunks"),
		view.Times(len(was.Parts), "part", "parts"), was.Spec.PartChunks), nil
}
