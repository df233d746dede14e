package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/view"
)

func newShow() *cobra.Command {
	return newDatasetVerb(&cobra.Command{
		Use:   "show DATASET",
		Short: "Draw boards of a dataset with their solutions",
		Long: `Draws the boards of a dataset that meet all of the conditions given, in corpus
order, each beside the presses that solve it. A record that was rejected is found
by its --index or with --status rejected, and shown with the reason.

Elsewhere than on a terminal, or where NO_COLOR is set, the drawing is plain ASCII:
# is a 1, and o a press. --json prints a line for each record, with the columns
of the results.`,
		Example: `  flipmill show out/job=boards-5x5 --index 17
  flipmill show out/job=boards-5x5 --moves 15
  flipmill show out/job=boards-5x5 --status impossible --limit 3`,
	}, func(cmd *cobra.Command, c *config.Config, path string) error {
		m, err := dataset.ReadManifest(path)
		if err != nil {
			return err
		}
		out := &drawing{out: cmd.OutOrStdout(), spec: m.Spec, json: c.JSON, glyphs: glyphsFor(cmd.OutOrStdout())}
		return show(path, c, out)
	})
}

func show(path string, c *config.Config, out *drawing) error {
	shown := 0
	for row, err := range dataset.Find(path, dataset.Filter{Index: c.Index, Moves: c.Moves, Status: c.Status}) {
		if err != nil {
			return err
		}
		if err := out.print(row, shown > 0); err != nil {
			return fmt.Errorf("write the boards: %w", err)
		}
		if shown++; shown == c.Limit {
			break
		}
	}
	if shown == 0 {
		return withCode(exitNotFound, fmt.Errorf("%s has no such row", path))
	}
	return nil
}

// glyphs are how cells are drawn, each of them one column wide.
type glyphs struct{ on, off, press, rest string }

// glyphsFor returns colours only for those who can see them.
func glyphsFor(w io.Writer) glyphs {
	if isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" {
		return glyphs{on: "\x1b[33m■\x1b[0m", off: "\x1b[2m·\x1b[0m", press: "\x1b[1;36m●\x1b[0m", rest: "\x1b[2m·\x1b[0m"}
	}
	return glyphs{on: "#", off: ".", press: "o", rest: "."}
}

// drawing prints rows.
type drawing struct {
	out    io.Writer
	spec   dataset.Options
	glyphs glyphs
	json   bool
}

// print writes a row, with a blank line before it if it is not the first.
func (d *drawing) print(row dataset.Row, more bool) error {
	var b bytes.Buffer
	if d.json {
		if err := json.NewEncoder(&b).Encode(row); err != nil {
			return err
		}
	} else {
		if more {
			b.WriteByte('\n')
		}
		d.draw(&b, row)
	}
	_, err := d.out.Write(b.Bytes())
	return err
}

func (d *drawing) draw(b *bytes.Buffer, row dataset.Row) {
	fmt.Fprintf(b, "puzzle_index %d", row.Index)
	if row.Source != nil && row.Line != nil {
		fmt.Fprintf(b, ", %s:%d", view.Harmless(*row.Source), *row.Line)
	}
	if row.ID != nil {
		fmt.Fprintf(b, ", id %s", view.Harmless(*row.ID))
	}
	for _, name := range slices.Sorted(maps.Keys(row.Kept)) {
		fmt.Fprintf(b, ", %s %s", view.Harmless(name), view.Harmless(row.Kept[name]))
	}
	b.WriteByte('\n')
	if row.Reason != nil {
		fmt.Fprintf(b, "rejected: %s: %s\n  %s\n", *row.Reason, view.Harmless(*row.Detail), view.Harmless(*row.Raw))
		return
	}
	d.describe(b, row)
	switch {
	case row.Board == nil && row.Solution == nil:
		b.WriteString("  the dataset has no cells of it\n")
	case row.Rows == nil || row.Cols == nil:
		for _, cells := range [...]*string{row.Board, row.Solution} {
			if cells != nil {
				fmt.Fprintf(b, "  %s\n", *cells)
			}
		}
	default:
		d.cells(b, row)
	}
}

// describe writes a line about what is known of a result.
func (d *drawing) describe(b *bytes.Buffer, row dataset.Row) {
	if row.Rows != nil && row.Cols != nil {
		fmt.Fprintf(b, "%dx%d, ", *row.Rows, *row.Cols)
	}
	fmt.Fprintf(b, "rule %s, target %s", d.spec.Rule, d.spec.Target)
	if row.Status != nil {
		fmt.Fprintf(b, ": %s", *row.Status)
	}
	if row.MinMoves != nil {
		fmt.Fprintf(b, ", min_moves %d", *row.MinMoves)
	}
	if row.OptimalCount != nil {
		fmt.Fprintf(b, ", optimal_count %d", *row.OptimalCount)
	}
	if row.Reached != nil {
		fmt.Fprintf(b, ", reached %s", *row.Reached)
	}
	b.WriteByte('\n')
}

// maxBeside is the most columns of a board that has its presses beside it; two
// wider ones would not fit a terminal.
const maxBeside = 16

// cells draws a board and its presses.
func (d *drawing) cells(b *bytes.Buffer, row dataset.Row) {
	var grids [][]string
	if row.Board != nil {
		grids = append(grids, grid(*row.Board, int(*row.Cols), d.glyphs.on, d.glyphs.off))
	}
	if row.Solution != nil {
		grids = append(grids, grid(*row.Solution, int(*row.Cols), d.glyphs.press, d.glyphs.rest))
	}
	if len(grids) == 2 && *row.Cols > maxBeside {
		grids = [][]string{append(append(grids[0], ""), grids[1]...)}
	}
	for i, line := range grids[0] {
		if len(grids) == 2 {
			line += "    " + grids[1][i]
		}
		b.WriteString(strings.TrimRight("  "+line, " "))
		b.WriteByte('\n')
	}
}

// grid draws cells, a line for each row, blanks between the columns.
func grid(cells string, cols int, one, zero string) (lines []string) {
	for len(cells) > 0 {
		row := strings.NewReplacer("1", one+" ", "0", zero+" ").Replace(cells[:cols])
		lines, cells = append(lines, strings.TrimSuffix(row, " ")), cells[cols:]
	}
	return lines
}
