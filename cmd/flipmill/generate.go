package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

func newGenerate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate SPEC",
		Short: "Write a corpus made to order, one board a line",
		Long: `Writes boards to standard output, a line of 0 and 1 each. SPEC says which:

  all                every board, counted up
  random             uniform over all boards
  solvable           uniform over the boards that reach the target
  presses=K          K presses at different cells away from the target
  moves=K            uniform over the boards that need exactly K presses
  distinct           every board in a random order, none twice
  orbits             the same, but one only of all that are images of each other

and with commas behind it count=N, first=N and seed=N: N boards, from number N on,
for this seed. The same SPEC gives the same boards everywhere, and any slice of them
alone. flipmill run --generate SPEC solves them without writing them.`,
		Example: `  flipmill generate all --size 3x3
  flipmill generate solvable,count=100000,seed=7 --size 8x8 --rule king | gzip > boards.txt.gz`,
		Args: wantArgs(1, 1, "one SPEC, such as solvable,count=1000"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			spec := puzzle.Spec{Rule: c.Spec.Rule, Target: c.Spec.Target, Size: c.Spec.Size, SearchLimit: c.Spec.SearchLimit}
			if spec.Generate, err = puzzle.ParseGenerate(args[0]); err != nil {
				return withCode(exitUsage, fmt.Errorf("%w%s", err, config.MeantSpec(args[0])))
			}
			puzzles, err := openCorpus(cmd.Context(), spec, nil, nil)
			if err != nil {
				return withCode(exitConfig, err)
			}
			mode := c.Progress
			if mode == "auto" && isTerminal(cmd.OutOrStdout()) {
				mode = "none" // the boards show how far it is
			}
			m := newMeter("generate", "boards", func() (int64, bool) { _, n := puzzles.Progress(); return n, true })
			defer m.show(cmd.ErrOrStderr(), mode)()
			return writeGenerated(cmd.OutOrStdout(), puzzles, &m.done)
		},
	}
	config.Flags(cmd)
	return cmd
}

// writeGenerated writes all boards of a corpus that has no rejects.
func writeGenerated(w io.Writer, puzzles *corpus.Corpus, written *atomic.Int64) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var rec corpus.Record
	var line []byte
	var err error
	for err = puzzles.Next(&rec); err == nil; err = puzzles.Next(&rec) {
		line = append(rec.Board.AppendText(line[:0], 0), '\n')
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("write the boards: %w", err)
		}
		written.Add(1)
	}
	if err != io.EOF {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the boards: %w", err)
	}
	return nil
}

// wantCorpus makes it an error of usage to name no corpus, or two.
func wantCorpus(cmd *cobra.Command, c *config.Config, args []string) error {
	least, most, want := 1, math.MaxInt, "at least one CORPUS file, or - for standard input"
	if c.Spec.Generate.Kind != "" {
		least, most, want = 0, 0, "no CORPUS file besides the boards of "+c.Origin("generate").String()
	}
	return wantArgs(least, most, want)(cmd, args)
}

// generatedSpec returns the spec of generated boards, in which nothing says how to
// read any. A flag that does is an error, because it has no effect.
func generatedSpec(c *config.Config, spec puzzle.Spec) (puzzle.Spec, error) {
	for _, key := range []string{"format", "symbols", "max-line", "frame", "order", "fields", "keep"} {
		if o := c.Origin(key); o.Source == config.Flag && o.Where == "--"+key {
			return spec, c.Wrong(key, fmt.Errorf("the boards are generated, there is nothing to read: want no such flag"))
		}
	}
	spec.Format, spec.Symbols, spec.MaxLine, spec.Frame = "", puzzle.Symbols{}, 0, puzzle.Frame{}
	spec.ColumnMajor, spec.Fields, spec.Keep = false, puzzle.Fields{}, nil
	if _, err := generatorOf(spec); err != nil {
		return spec, c.Wrong("generate", err)
	}
	return spec, nil
}
