package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/view"
)

func newSolve() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "solve [FILE...]",
		Short: "Solve puzzles from standard input or files and print the answers",
		Long: `Reads one puzzle, or several one after the other, and prints each answer at once.

With --preset, input and output are those of the well-known problem, byte for
byte. Without, the answer is its numbers and the least solution, or a JSON
object a line with --json.

A puzzle that cannot be read is told on standard error with its line; the others
are solved, and the exit code is 1.`,
		Example: `  flipmill solve --preset flip-game < board.txt
  flipmill solve --preset fliptile tiles.txt
  printf '110\n101\n011\n' | flipmill solve --rule king --target one`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				args = []string{"-"}
			}
			return solve(cmd.Context(), c, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	config.Flags(cmd)
	return cmd
}

func solve(ctx context.Context, c *config.Config, paths []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	out := bufio.NewWriter(stdout)
	puzzles, err := corpus.Open(ctx, paths, corpusOptions(c.Spec), flushing{stdin, out})
	if err != nil {
		return err
	}
	defer puzzles.Close()
	defer func() {
		if flushErr := out.Flush(); err == nil { // else it may be the same once more
			err = flushErr
		}
	}()

	var (
		solvers  = solver.NewSet(c.Spec.Rule, solver.Options{SearchLimit: c.Spec.SearchLimit})
		print    = answerOutput(c)
		rec      corpus.Record
		answers  puzzle.Answers
		pressed  puzzle.Run
		buf      []byte
		source   string
		number   int // of the record in its source
		unsolved int
	)
	for {
		switch err := puzzles.Next(&rec); {
		case err == io.EOF:
			if unsolved > 0 {
				return fmt.Errorf("%s no answer", view.Times(unsolved, "of the puzzles has", "of the puzzles have"))
			}
			return nil
		case err != nil:
			return err
		}
		if number++; rec.Source != source {
			source, number = rec.Source, 1
		}
		if rec.Rejected() {
			unsolved++
			fmt.Fprintf(stderr, "%s:%d: %s: %s\n", rec.Source, rec.Line, rec.Reject.Reason, rec.Reject.Detail)
			continue
		}
		s, err := solvers.For(rec.Board.Size)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", rec.Source, rec.Line, err)
		}
		s.Solve(&answers, rec.Board, c.Spec.Target)
		if err := s.Check(&pressed, rec.Board, &answers); err != nil {
			return fmt.Errorf("%s:%d: %w", rec.Source, rec.Line, err)
		}
		if answers.Status[0] == puzzle.Unproven && c.Preset != "" && !c.JSON { // no judge takes it
			unsolved++
			fmt.Fprintf(stderr, "%s:%d: the fewest presses are not proved within --search-limit %d\n", rec.Source, rec.Line, c.Spec.SearchLimit)
			continue
		}
		answer := answered{Answers: &answers, number: number}
		if rec.Labels.Len() > 0 {
			answer.id = rec.Labels.At(0)
		}
		if buf = print(buf[:0], answer); len(buf) == 0 {
			unsolved++
			fmt.Fprintf(stderr, "%s:%d: no presses solve it, for which %s has no answer\n", rec.Source, rec.Line, c.Preset)
			continue
		}
		if _, err := out.Write(buf); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
}

// flushing is a Reader before whose reads, which may wait for somebody, all
// answers are written.
type flushing struct {
	io.Reader
	out *bufio.Writer
}

func (f flushing) Read(p []byte) (int, error) {
	_ = f.out.Flush() // the writer keeps its error for the next answer
	return f.Reader.Read(p)
}

// answerOutput chooses how answers are printed.
func answerOutput(c *config.Config) judgeOutput {
	if c.JSON {
		return appendJSON
	}
	if judge, ok := judgeOutputs()[c.Preset]; ok {
		return judge
	}
	return appendAnswer
}

// appendAnswer writes an answer for people.
func appendAnswer(dst []byte, a answered) []byte {
	switch a.Status[0] {
	case puzzle.Impossible:
		return append(dst, "impossible\n"...)
	case puzzle.Unproven:
		dst = fmt.Appendf(dst, "unproven: %d presses reach %s, but fewer may do\n", a.MinMoves[0], a.Reached[0])
	default:
		dst = fmt.Appendf(dst, "min_moves=%d optimal_count=%d nullity=%d reached=%s\n", a.MinMoves[0], a.OptimalCount[0], a.Nullity, a.Reached[0])
	}
	return appendMatrix(dst, a.Solutions, "")
}

// answerRow is an answer with the names and nulls of the dataset's columns.
type answerRow struct {
	ID           *string `json:"id,omitempty"`
	Status       string  `json:"status"`
	Rows         int     `json:"rows"`
	Cols         int     `json:"cols"`
	MinMoves     *int32  `json:"min_moves"`
	OptimalCount *int64  `json:"optimal_count"`
	Nullity      int     `json:"nullity"`
	Reached      *string `json:"reached"`
	Solution     *string `json:"solution"`
}

// appendJSON writes an answer as a line of JSON.
func appendJSON(dst []byte, a answered) []byte {
	row := answerRow{Status: a.Status[0].String(), Rows: a.Solutions.Rows, Cols: a.Solutions.Cols, Nullity: a.Nullity}
	if id := string(a.id); id != "" {
		row.ID = &id
	}
	if a.Status[0] != puzzle.Impossible {
		solution, reached := string(a.Solutions.AppendText(nil, 0)), a.Reached[0].String()
		row.Solution, row.Reached = &solution, &reached
	}
	if a.Status[0] == puzzle.Solved {
		row.MinMoves, row.OptimalCount = &a.MinMoves[0], &a.OptimalCount[0]
	}
	line, err := json.Marshal(row)
	if err != nil {
		panic("BUG: solve: " + err.Error())
	}
	return append(append(dst, line...), '\n')
}
