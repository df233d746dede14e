package corpus_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/flipmill/flipmill/pkg/corpus"
)

// TestKeptNowhere: fields that no file can have are an error where the format is told
// from the files, as soon as all formats are known.
func TestKeptNowhere(t *testing.T) {
	const lines, csv = "01/10\n11/11\n", "level,board\n3,01/10\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string // the error; empty where some file has fields
	}{
		"lines":         {map[string]string{"a.txt": lines}, "keep level, author: the boards are lines, which has no named fields"},
		"all lines":     {map[string]string{"a.txt": lines, "b.txt": lines, "c": lines}, "keep level, author: the boards are lines, which"},
		"blocks, numpy": {map[string]string{"a.npy": made(t, "int32.npy"), "b": "01\n10\n"}, "the boards are npy and blocks, which has"},
		"csv":           {map[string]string{"a": csv}, `no column "author"`}, // which is csv's own error
		"mixed":         {map[string]string{"a.txt": lines, "b.jsonl": `{"board":"01/10","level":4}` + "\n"}, ""},
	} {
		folder := t.TempDir()
		for file, text := range test.files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := corpus.Open(t.Context(), []string{folder}, corpus.Options{Keep: []string{"level", "author"}}, nil)
		if err == nil {
			var rec corpus.Record
			for err == nil {
				err = c.Next(&rec)
			}
			err = errors.Join(err, c.Close())
		}
		if test.want == "" && err.Error() != "EOF" || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestUTF16: a text in UTF-16 is told from one that has no boards.
func TestUTF16(t *testing.T) {
	for name, order := range map[string][2]int{"little": {0, 8}, "big": {8, 0}} {
		var text []byte
		for _, unit := range utf16.Encode([]rune("\ufeff01/10\n")) {
			text = append(text, byte(unit>>order[0]), byte(unit>>order[1]))
		}
		for _, format := range []string{corpus.Auto, corpus.Lines, corpus.CSV, corpus.JSONL} {
			_, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: format}, strings.NewReader(string(text)))
			if err == nil || !strings.Contains(err.Error(), "it is text in UTF-16, want UTF-8") {
				t.Errorf("%s, %s: %v", name, format, err)
			}
		}
	}
}
