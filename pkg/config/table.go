package config

import (
	"log/slog"
	"regexp"
	"strings"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Key is one setting.
type Key struct {
	Name    string   // in files, and as a flag after "--"
	Short   string   // one-letter flag; empty for none
	Default string   // as written in a file
	Verbs   []string // verbs with this flag; nil for all
	Help    string   // one line, lower case
	Kind             // how the value is written
}

// Variable returns the name of the key's environment variable.
func (k Key) Variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(k.Name, "-", "_"))
}

const variablePrefix = "FLIPMILL_"

// Keys returns the table of keys, in the order in which people read them.
func Keys() []Key { return table(new(Config)) }

// table is the one place where keys are made. The kind of each row writes the
// value into the field of c that the row names. To add a key, add a field and a
// row, then run the package's tests with -update.
func table(c *Config) []Key {
	run := []string{"run"}
	puzzles := []string{"run", "solve"}
	reports := []string{"run", "solve", "verify"}
	return []Key{
		{"output", "o", "out", run, "folder in which datasets are made",
			matching(&c.Output, "dir", "a folder", regexp.MustCompile(`.`))},
		{"job", "", "", run, "the dataset's name: it is the folder job=NAME below the output; empty lets the verb choose",
			optional(matching(&c.Job, "name", "a lower-case letter, then up to 62 lower-case letters, digits or hyphens", regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)))},

		{"preset", "", "", puzzles, "a known problem: stands for its rule, target, symbols, format and size",
			optional(name(&c.Preset, presets()...))},
		{"rule", "", "plus", puzzles, "which cells a press toggles: plus, fridge, king, x or stencil:abc/def/ghi; all but fridge also end in -torus",
			parsed(&c.Spec.Rule, "rule", "plus, fridge, king, x or stencil:abc/def/ghi, all but fridge optionally with -torus", puzzle.ParseRule)},
		{"target", "", "zero", puzzles, "the board to reach; either: whichever needs fewer presses",
			choice(&c.Spec.Target, []string{"zero", "one", "either"}, puzzle.ParseTarget)},
		{"search-limit", "", "1048576", puzzles, "most candidates tried for one board; beyond it the answer is unproven",
			integer(&c.Spec.SearchLimit, 1, 1<<40)},

		{"format", "", "auto", puzzles, "how the input is written; auto: as its first record looks",
			name(&c.Spec.Format, "auto", "lines", "blocks", "grid")},
		{"size", "", "", puzzles, "size of every board, where the input does not show it",
			optional(parsed(&c.Spec.Size, "size", "ROWSxCOLS, such as 5x6", puzzle.ParseSize))},
		{"symbols", "", "1=1,0=0", puzzles, "the input's characters for 1 and 0",
			parsed(&c.Spec.Symbols, "pairs", "two pairs, such as b=1,w=0", puzzle.ParseSymbols)},
		{"max-line", "", "64KiB", puzzles, "longest line of input; a longer one is rejected",
			byteCount(&c.MaxLine, 1<<10, 16<<20)},

		{"columns", "", "all", run, "columns of the results; all: every one",
			list(&c.Spec.Columns, "all, or names separated by commas")},
		{"cells", "", "text", run, "how boards and solutions are stored",
			name(&c.Spec.Cells, "text", "bits")},
		{"compression", "", "zstd", run, "codec of the Parquet files",
			name(&c.Spec.Compression, "zstd", "snappy", "none")},
		{"part-chunks", "", "64", run, "chunks in one Parquet file",
			integer(&c.Spec.PartChunks, 1, 1024)},

		{"workers", "", "0", run, "boards are solved by that many workers; 0: one per core",
			integer(&c.Workers, 0, 1024)},
		{"window", "", "2", run, "parts in flight at once; more take more memory and disk",
			integer(&c.Window, 1, 64)},
		{"stop-timeout", "", "10s", run, "time to put down what is in flight after the first Ctrl-C or SIGTERM; 0s: no limit",
			duration(&c.StopTimeout, 0, 24*time.Hour)},
		{"strict", "", "false", run, "end with exit code 5 when a record was rejected",
			boolean(&c.Strict)},

		{"json", "", "false", reports, "print the outcome as JSON",
			boolean(&c.JSON)},
		{"progress", "", "auto", []string{"run", "verify"}, "how progress is shown; auto: a bar on a terminal, plain lines elsewhere",
			name(&c.Progress, "auto", "bar", "plain", "none")},
		{"log-level", "", "warn", nil, "least level of the messages on standard error",
			choice(&c.LogLevel, []string{"debug", "info", "warn", "error"}, parseLevel)},
		{"log-format", "", "text", nil, "how messages are written",
			name(&c.LogFormat, "text", "json")},
	}
}

func presets() []string {
	var names []string
	for _, p := range puzzle.Presets() {
		names = append(names, p.Name)
	}
	return names
}

func parseLevel(text string) (level slog.Level, err error) {
	err = level.UnmarshalText([]byte(text))
	return level, err
}
