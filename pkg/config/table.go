package config

import (
	"log/slog"
	"os"
	"slices"
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

// natsURL is the variable that the tools of NATS read. It is honoured where ours
// is not set.
const natsURL = "NATS_URL"

// variables returns the environment variables that may set the key, the
// strongest first.
func (k Key) variables() []string {
	if k.Name == "nats-url" {
		return []string{k.Variable(), natsURL}
	}
	return []string{k.Variable()}
}

// given returns the variable that sets the key, or nothing.
func (k Key) given() string {
	for _, name := range k.variables() {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

const variablePrefix = "FLIPMILL_"

// Keys returns the table of keys, in the order in which people read them.
func Keys() []Key { return table(new(Config)) }

// table is the one place where keys are made. The kind of each row writes the
// value into the field of c that the row names. To add a key, add a field and a
// row, then run the package's tests with -update.
func table(c *Config) []Key { return slices.Concat(jobKeys(c), brokerKeys(c), reportKeys(c)) }

// jobKeys are the keys that say what to solve, and what to leave where.
func jobKeys(c *Config) []Key {
	jobs := []string{"run", "submit"}
	specs := []string{"run", "submit", "check"}
	puzzles := []string{"run", "solve", "submit", "check"}
	boards := []string{"run", "solve", "submit", "check", "generate"}
	return []Key{
		{"output", "o", "out", []string{"run", "aggregator", "doctor"}, "folder in which datasets are made, on a disk or in a bucket",
			folder(&c.Output)},
		{"into", "", "", []string{"compact"}, "output in which the new dataset is made, on a disk or in a bucket; empty: in the place of the old one",
			optional(folder(&c.Into))},
		{"job", "", "", jobs, "the dataset's name: it is the folder job=NAME below the output; empty lets the verb choose",
			optional(parsed(&c.Job, "name", "a lower-case letter, then at most 62 lower-case letters, digits or '-'", func(id string) (string, error) { return id, puzzle.CheckJob(id) }))},

		{"preset", "", "", boards, "a known problem: stands for its rule, target, symbols, format and size",
			optional(name(&c.Preset, presets()...))},
		{"rule", "", "plus", boards, "which cells a press toggles: plus, fridge, king, x or stencil:abc/def/ghi; all but fridge also end in -torus",
			rule(&c.Spec.Rule)},
		{"target", "", "zero", boards, "the board to reach; either: whichever needs fewer presses",
			choice(&c.Spec.Target, []string{"zero", "one", "either"}, puzzle.ParseTarget)},
		{"search-limit", "", "1048576", boards, "most candidates tried for one board; beyond it the answer is unproven",
			integer(&c.Spec.SearchLimit, 1, 1<<40)},

		{"generate", "", "", specs, "boards to be made instead of a corpus: all, random, solvable, presses=K, moves=K, distinct or orbits, then count=N, first=N, seed=N",
			optional(spec(&c.Spec.Generate))},
		{"format", "", "auto", puzzles, "how the input is written; auto: as the names of its files or their beginning say",
			name(&c.Spec.Format, "auto", "lines", "blocks", "grid", "csv", "tsv", "jsonl", "json", "npy", "parquet")},
		{"size", "", "", boards, "size of every board, where the input does not show it",
			optional(parsed(&c.Spec.Size, "size", "ROWSxCOLS, such as 5x6", puzzle.ParseSize))},
		{"symbols", "", "1=1,0=0", puzzles, "the input's characters for 1 and 0",
			parsed(&c.Spec.Symbols, "pairs", "two pairs, such as b=1,w=0", puzzle.ParseSymbols)},
		{"max-line", "", "64KiB", puzzles, "longest line, or record of several, of the input; a longer one is rejected",
			byteCount(&c.Spec.MaxLine, 1<<10, 16<<20)},
		{"frame", "", "", puzzles, "what is around the boards of lines, blocks or grid: count, name, square, end=TEXT, or several of them",
			optional(parsed(&c.Spec.Frame, "words", "some of count, name, square and end=TEXT, separated by commas", puzzle.ParseFrame))},
		{"order", "", "row-major", puzzles, "how cells follow each other where the input does not show rows",
			choice(&c.Spec.ColumnMajor, []string{"row-major", "column-major"}, func(text string) (bool, error) { return text == "column-major", nil })},
		{"fields", "", "", puzzles, "names of fields in the input, where they are not board, id, rows and cols",
			optional(parsed(&c.Spec.Fields, "pairs", "pairs ROLE=NAME, such as board=grid,id=key", puzzle.ParseFields))},
		{"keep", "", "", specs, "fields of the input that become columns of the results; its id always does",
			optional(parsed(&c.Spec.Keep, "list", "names separated by commas", words))},

		{"columns", "", "all", specs, "columns of the results; all: all but the extra ones (docs/dataset.md), as in all,canonical,split; none: statistics without rows",
			list(&c.Spec.Columns, "all, none, or names separated by commas")},
		{"cells", "", "text", specs, "how boards and solutions are stored",
			name(&c.Spec.Cells, "text", "bits")},
		{"compression", "", "zstd", specs, "codec of the Parquet files",
			name(&c.Spec.Compression, "zstd", "snappy", "none")},
		{"part-chunks", "", "64", slices.Concat(specs, []string{"compact"}), "chunks in one Parquet file",
			integer(&c.Spec.PartChunks, 1, 1024)},
	}
}

// jobVerbs are the verbs that look at jobs or give orders to them.
func jobVerbs() []string {
	return []string{"status", "list", "watch", "wait", "why", "pause", "resume", "retry", "cancel"}
}

// brokerKeys are the keys of the verbs that share a broker.
func brokerKeys(c *Config) []Key {
	broker := slices.Concat([]string{"setup", "submit", "worker", "aggregator", "doctor"}, jobVerbs())
	setup := []string{"setup", "doctor"}
	return []Key{
		{"nats-url", "", "nats://127.0.0.1:4222", broker, "the broker, or several of its servers separated by commas; the variable " + natsURL + " is honoured too",
			matching(&c.NATSURL, "url", "the address of a NATS server, such as nats://127.0.0.1:4222", `^\S+$`)},
		{"credentials", "", "", broker, "file that says who we are: a .creds file, the seed of an nkey, or one line user:password",
			optional(path(&c.Credentials))},
		{"tls-ca", "", "", broker, "certificates (PEM) of the authorities that vouch for the broker; empty: those of the system",
			optional(path(&c.TLSCA))},
		{"tls-cert", "", "", broker, "our certificate (PEM), where the broker wants one",
			optional(path(&c.TLSCert))},
		{"tls-key", "", "", broker, "the private key (PEM) of tls-cert",
			optional(path(&c.TLSKey))},
		{"insecure", "", "false", broker, "let messages and passwords go unencrypted to another host",
			boolean(&c.Insecure)},

		{"replicas", "", "1", setup, "servers of a cluster that keep a copy of every message",
			integer(&c.Replicas, 1, 5)},
		{"task-bytes", "", "256MiB", setup, "most that the broker keeps of tasks; producers wait beyond",
			byteCount(&c.TaskBytes, 4<<20, 1<<40)},
		{"result-bytes", "", "1GiB", setup, "most that the broker keeps of results; half of it should hold a part of each job, at 1 MiB a chunk",
			byteCount(&c.ResultBytes, 4<<20, 1<<40)},
		{"max-ack-pending", "", "1024", setup, "most tasks of a lane that workers hold at once; about 4 for each core of all workers is right",
			integer(&c.MaxAckPending, 1, 1<<20)},
		{"ack-wait", "", "30s", setup, "a task goes to another worker when its own was silent for that long",
			duration(&c.AckWait, time.Second, time.Hour)},

		{"memory", "", "64MiB", []string{"aggregator"}, "results kept in memory until their part is complete; those beyond are read from the broker a second time",
			byteCount(&c.Memory, 1<<20, 1<<40)},
		{"lease", "", "15s", []string{"aggregator"}, "a job goes to another aggregator of the same output when its own was silent for that long",
			duration(&c.Lease, time.Second, time.Hour)},
		{"lane", "", "normal", []string{"submit"}, "priority: workers take tasks of a lower lane only when those above are empty",
			name(&c.Lane, "high", "normal", "low")},
		{"timeout", "", "0s", []string{"wait"}, "give up after that long; 0s: never",
			duration(&c.Timeout, 0, 1000*time.Hour)},
		{"wait", "", "false", []string{"submit", "resume", "retry"}, "wait until the dataset is complete",
			boolean(&c.Wait)},
	}
}

// reportKeys are the keys that say how to work, and what to tell of it.
func reportKeys(c *Config) []Key {
	run, show := []string{"run", "check"}, []string{"show"}
	return []Key{
		{"workers", "", "0", []string{"run", "check", "worker"}, "chunks solved at once; 0: one per core",
			integer(&c.Workers, 0, 1024)},
		{"window", "", "2", []string{"run", "submit"}, "parts in flight at once; more take more memory and disk",
			integer(&c.Window, 1, 64)},
		{"stop-timeout", "", "10s", []string{"run", "submit", "resume", "retry", "worker", "aggregator"}, "time to put down what is in flight after the first Ctrl-C or SIGTERM; 0s: no limit",
			duration(&c.StopTimeout, 0, 24*time.Hour)},
		{"strict", "", "false", run, "end with exit code 5 when a record was rejected",
			boolean(&c.Strict)},

		{"json", "", "false", slices.Concat([]string{"run", "check", "solve", "verify", "stats", "show", "compact", "bench", "submit", "doctor"}, jobVerbs()), "print the outcome as JSON (docs/json.md)",
			boolean(&c.JSON)},
		{"csv", "", "false", []string{"stats", "bench"}, "print the outcome as a table in CSV",
			boolean(&c.CSV)},
		{"file", "o", "", []string{"report"}, "file to write; empty: standard output",
			optional(path(&c.File))},
		{"index", "", "", show, "the row with this puzzle_index",
			ordinal(&c.Index)},
		{"moves", "", "", show, "rows whose min_moves is that",
			ordinal(&c.Moves)},
		{"status", "", "", show, "rows with this status; rejected: records that are no boards",
			optional(name(&c.Status, "solved", "impossible", "unproven", "rejected"))},
		{"limit", "", "5", []string{"show", "check"}, "most rows shown",
			integer(&c.Limit, 1, 1<<30)},
		{"for", "", "duckdb", []string{"query"}, "the program that is to read the dataset",
			name(&c.For, "duckdb", "polars", "pandas", "spark", "bigquery", "athena")},
		{"rounds", "", "5", []string{"bench"}, "turns of each measurement and its baseline, of which the medians count",
			integer(&c.Rounds, 1, 1000)},
		{"turn", "", "200ms", []string{"bench"}, "about how long a turn takes",
			duration(&c.Turn, time.Millisecond, time.Minute)},
		{"progress", "", "auto", []string{"run", "check", "submit", "resume", "retry", "generate", "verify", "compact", "report"}, "how progress is shown; auto: a bar on a terminal, plain lines elsewhere; json: lines for programs",
			name(&c.Progress, "auto", "bar", "plain", "json", "none")},
		{"http", "", "", []string{"run", "submit", "worker", "aggregator", "health"}, "address at which /metrics, /livez and /readyz are served, and status pages by run and aggregator, such as :9464; without a host: the loopback; empty: nowhere",
			optional(matching(&c.HTTP, "addr", "host:port or :port", `^\S*:[0-9]{1,5}$`))},
		{"http-hosts", "", "", []string{"run", "aggregator"}, "names by which browsers reach the status pages, besides localhost, the machine's own name and addresses",
			optional(parsed(&c.HTTPHosts, "list", "names of hosts separated by commas", words))},
		{"show-origin", "", "false", []string{"print"}, "say where each value comes from",
			boolean(&c.ShowOrigin)},
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
