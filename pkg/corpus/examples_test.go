package corpus_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// TestExamples reads the example corpora and finds what their README says.
func TestExamples(t *testing.T) {
	preset := func(name string) corpus.Options {
		p, err := puzzle.ParsePreset(name)
		if err != nil {
			t.Fatal(err)
		}
		return corpus.Options{Format: p.Format, Size: p.Size, Symbols: p.Symbols}
	}
	for _, test := range []struct {
		file    string
		opts    corpus.Options
		format  string
		boards  int
		rejects map[puzzle.Reason]string // the lines
	}{
		{"boards-5x5.txt", corpus.Options{}, corpus.Lines, 10_000, nil},
		{"flip-game.txt", preset("flip-game"), corpus.Blocks, 30, nil},
		{"fridge.txt", preset("fridge"), corpus.Blocks, 30, nil},
		{"fliptile.txt", preset("fliptile"), corpus.Grid, 30, nil},
		{"fliptile.txt", corpus.Options{}, corpus.Grid, 30, nil},
		{"mixed-sizes.txt", corpus.Options{}, corpus.Blocks, 38, nil},
		{"faulty.txt", corpus.Options{}, corpus.Lines, 12, map[puzzle.Reason]string{
			puzzle.UnknownSymbol: " 3 5 15 18 21", puzzle.RaggedRow: " 7", puzzle.BadSize: " 10 19", puzzle.TooLarge: " 13", puzzle.Truncated: " 23",
		}},
	} {
		c, err := corpus.Open(t.Context(), []string{examples(test.file)}, test.opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.Format() != test.format {
			t.Errorf("%s: format %s, want %s", test.file, c.Format(), test.format)
		}
		boards, rejects := 0, map[puzzle.Reason]string{}
		var rec corpus.Record
		for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
			if checkRecord(t, &rec); rec.Rejected() {
				rejects[rec.Reject.Reason] += fmt.Sprint(" ", rec.Line)
			} else {
				boards++
			}
		}
		if boards != test.boards || !maps.Equal(rejects, test.rejects) {
			t.Errorf("%s: %d boards, rejects %v, then %v", test.file, boards, rejects, err)
		}
	}
}

func examples(file string) string { return filepath.Join("..", "..", "examples", file) }

// TestExampleBoards makes boards-5x5.txt again as its README says.
func TestExampleBoards(t *testing.T) {
	var want strings.Builder
	x := 1
	for range 10_000 {
		for k := range 25 {
			if k > 0 && k%5 == 0 {
				want.WriteByte('/')
			}
			x = x * 16807 % (1<<31 - 1)
			if x > 1<<30-1 {
				want.WriteByte('1')
			} else {
				want.WriteByte('0')
			}
		}
		want.WriteByte('\n')
	}
	got, err := os.ReadFile(examples("boards-5x5.txt"))
	if err != nil || !bytes.Equal(got, []byte(want.String())) {
		t.Errorf("examples/boards-5x5.txt is not what its README says, %v", err)
	}
}
