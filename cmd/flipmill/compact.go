package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
)

func newCompact() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compact DATASET",
		Short: "Merge the parts of a dataset into fewer and larger ones",
		Long: `Puts the dataset that the same job leaves with a larger --part-chunks, byte for
byte, into the place of a finished one (the folder job=ID). Row groups are copied as
they are. As many whole parts become one as --part-chunks has room for; where that
is one, nothing is done.

Readers find the old dataset until the new one takes its place in one step (on
Linux). Whoever is killed in between leaves one of the two; the same command again
finishes and removes what is left besides. Until then there is room needed for both.`,
		Example: `  flipmill compact out/job=boards-5x5
  flipmill compact out/job=boards-5x5 --part-chunks 512`,
		Args: wantArgs(1, 1, "one DATASET folder, such as out/job=boards-5x5"),

		ValidArgsFunction: completeDatasets,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			was, is, err := compact(cmd.ErrOrStderr(), c.Progress, args[0], c.Spec.PartChunks)
			if err != nil {
				return err
			}
			text, err := compactText(args[0], was, is, c.JSON)
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(text); err != nil {
				return fmt.Errorf("write the outcome: %w", err)
			}
			return nil
		},
	}
	config.Flags(cmd)
	return cmd
}

// compact compacts a dataset, and shows how far it has come.
func compact(progress io.Writer, mode, path string, partChunks int) (was, is *dataset.Manifest, err error) {
	m, tell := newToldMeter("compact", "records")
	defer m.show(progress, mode)()
	return dataset.Compact(path, partChunks, tell)
}

// compactText says what became of a dataset's parts.
func compactText(path string, was, is *dataset.Manifest, asJSON bool) ([]byte, error) {
	if asJSON {
		return document(struct {
			Dataset    string `json:"dataset"`
			PartsWere  int    `json:"parts_were"`
			Parts      int    `json:"parts"`
			PartChunks int    `json:"part_chunks"`
		}{path, len(was.Parts), len(is.Parts), is.Spec.PartChunks})
	}
	if len(was.Parts) == len(is.Parts) {
		return fmt.Appendf(nil, "%s stays as it is: no two of its parts fit into one (%d parts, %d chunks each)\n", path, len(is.Parts), is.Spec.PartChunks), nil
	}
	return fmt.Appendf(nil, "%s: parts of %d chunks were %d, parts of %d are %d\n",
		path, was.Spec.PartChunks, len(was.Parts), is.Spec.PartChunks, len(is.Parts)), nil
}
