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

// TestUTF16: a text in UTF-16, with a byte order mark or without, is told from one that
// has no boards.
func TestUTF16(t *testing.T) {
	for name, order := range map[string][2]int{"UTF-16LE": {0, 8}, "UTF-16BE": {8, 0}} {
		for _, text := range []string{"\ufeff01/10\n", "01/10\n", "\r\n\r\n01/10\r\n", "board\n01/10\n", "[[0]]\n", "1\n"} {
			var stored []byte
			for _, unit := range utf16.Encode([]rune(text)) {
				stored = append(stored, byte(unit>>order[0]), byte(unit>>order[1]))
			}
			for _, format := range []string{corpus.Auto, corpus.Lines, corpus.Blocks, corpus.Grid, corpus.CSV, corpus.JSONL, corpus.JSON} {
				_, err := corpus.Open(t.Context(), []string{corpus.Stdin}, corpus.Options{Format: format}, strings.NewReader(string(stored)))
				told := name
				if text[0] >= 0x80 { // the byte order mark tells which it is
					told = "UTF-16"
				}
				if err == nil || !strings.Contains(err.Error(), "it is text in UTF-16, want UTF-8: iconv -f "+told+" -t") {
					t.Errorf("%s, %q, %s: %v", name, text, format, err)
				}
			}
		}
	}
}

// TestNotUTF16: bytes that are no text cost their lines, as any others.
func TestNotUTF16(t *testing.T) {
	for _, line := range []string{"\x00\x00\x00\x00", "\x01\x00\x02\x00", "0\x001", "0\x00\x00\x00", "\x00\x000\x00"} {
		shown, _, err := readAll(t, strings.NewReader(line+"\n01/10\n"), corpus.Options{Format: corpus.Lines})
		if err != nil || len(shown) != 2 || !strings.Contains(shown[0], "unknown_symbol") || shown[1] != "2 2x2 0110" {
			t.Errorf("%q: %q, %v", line, shown, err)
		}
	}
}
