package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/daemon"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/view"
)

func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run CORPUS...",
		Short: "Solve a corpus into a Parquet dataset, all in this process",
		Long: `Starts an embedded NATS server, a producer, workers and the aggregator in this
process, solves every board of the corpus, and leaves a dataset in
OUTPUT/job=JOB, on a disk or in a bucket of S3. A CORPUS is a file, plain or
compressed with gzip, zstd, bzip2 or xz, a folder of such files, a pattern in quotes,
or - for standard input. Files, folders and patterns may be in a bucket, too, as
s3://BUCKET/PATH. Records that cannot be read go to the rejects table. With
--generate there is no CORPUS: the workers make the boards, as flipmill generate
would.

An interrupted run keeps what it has committed: the same command finishes it.`,
		Example: `  flipmill run examples/boards-5x5.txt --size 5x5
  flipmill run examples/fridge.txt --preset fridge -o datasets --job fridges
  cat boards.txt | flipmill run - --job piped --rule king --json
  flipmill run --generate solvable,count=100000,seed=7 --size 8x8`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			if err := wantCorpus(cmd, c, args); err != nil {
				return err
			}
			r := &runner{c: c, paths: args, stdin: cmd.InOrStdin(), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr()}
			return r.run(cmd.Context())
		},
	}
	config.Flags(cmd)
	return cmd
}

// runner carries one run from its configuration to its summary.
type runner struct {
	c              *config.Config
	paths          []string
	stdin          io.Reader
	stdout, stderr io.Writer

	job  string
	spec puzzle.Spec
	dir  *dataset.Dir
}

func (r *runner) run(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	finished, err := r.finished(ctx)
	if err != nil {
		return err
	}
	if !finished {
		if err := r.solve(ctx); err != nil {
			return err
		}
	}
	s, err := summarize(r.dir.Path())
	if err != nil {
		return err
	}
	if err := s.print(r.stdout, r.c.JSON); err != nil {
		return err
	}
	return strictly(r.c, s.Rejected)
}

// strictly makes rejects an error where --strict says so.
func strictly(c *config.Config, rejected int64) error {
	if !c.Strict || rejected == 0 {
		return nil
	}
	return withCode(exitRejects, fmt.Errorf("%s rejected", view.Times(int(rejected), "record was", "records were")))
}

// prepare names the job and opens its folder, which need not exist yet.
func (r *runner) prepare() (err error) {
	if r.spec, err = specOf(r.c); err != nil {
		return err
	}
	if err := wantFolder(r.c); err != nil {
		return err
	}
	r.job = jobOf(r.c, r.paths)
	if m, err := dataset.ReadManifest(dataset.Path(r.c.Output, r.job)); err == nil {
		r.spec.PartChunks = m.Spec.PartChunks // it may have been compacted: the same records in larger parts
	}
	r.dir, err = dataset.Open(r.c.Output, r.job, r.spec)
	return err
}

// wantFolder makes an output an error that is a file, or below one.
func wantFolder(c *config.Config) error {
	if object.Is(c.Output) {
		return nil
	}
	for path := filepath.Clean(c.Output); ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			return withCode(exitConfig, c.Wrong("output", fmt.Errorf("%s is a file: want a folder, or a name for one", path)))
		case err == nil || path == filepath.Dir(path):
			return nil
		}
	}
}

// specOf says what is asked for.
func specOf(c *config.Config) (puzzle.Spec, error) {
	spec := c.Spec
	known := slices.Concat([]string{"all"}, dataset.Columns(), dataset.Extras())
	for _, name := range spec.Columns {
		if !slices.Contains(known, name) {
			return spec, withCode(exitConfig, c.Wrong("columns", fmt.Errorf("no column %q: want none, all, or some of %s%s", name, strings.Join(known[1:], ", "), config.DidYouMean(name, known))))
		}
	}
	spec.Columns = selectColumns(spec.Columns)
	spec.Keep = slices.DeleteFunc(slices.Clone(spec.Keep), func(name string) bool { return name == spec.Fields.Named().ID }) // it is the column id
	if spec.Size != (puzzle.Size{}) {
		if err := spec.Rule.CheckSize(spec.Size); err != nil {
			return spec, withCode(exitConfig, c.Wrong("size", err))
		}
	}
	if err := checkNamed(c, spec.Format); err != nil {
		return spec, withCode(exitConfig, err)
	}
	if framed := corpus.Framed(); spec.Frame != (puzzle.Frame{}) && !slices.Contains(framed, spec.Format) {
		return spec, withCode(exitConfig, c.Wrong("frame", fmt.Errorf("boards of the format %s have no frame: want --format %s, %s or %s with it", spec.Format, framed[0], framed[1], framed[2])))
	}
	if spec.Generate.Kind != "" {
		var err error
		if spec, err = generatedSpec(c, spec); err != nil {
			return spec, withCode(exitConfig, err)
		}
	}
	return spec, withCode(exitConfig, dataset.CheckSpec(spec))
}

// checkNamed makes flags an error that say what fields are called in a format that
// has none, because they have no effect.
func checkNamed(c *config.Config, format string) error {
	fielded := append(corpus.Fielded(), corpus.Auto, "") // none where the boards are generated
	if slices.Contains(fielded, format) {
		return nil
	}
	for _, key := range []string{"fields", "keep"} {
		if o := c.Origin(key); o.Source == config.Flag && o.Where == "--"+key {
			return c.Wrong(key, fmt.Errorf("boards of the format %s have no named fields: want no such flag, or csv, tsv, jsonl, json or parquet", format))
		}
	}
	return nil
}

// jobOf returns the job's name, as given or after the corpus.
func jobOf(c *config.Config, paths []string) string {
	if c.Job != "" {
		return c.Job
	}
	if c.Spec.Generate.Kind != "" {
		paths = []string{c.Spec.Generate.String() + " " + c.Spec.Size.String()}
	}
	return jobName(paths)
}

// selectColumns brings the chosen columns, nil for all but the extra ones, into schema
// order and adds the row key if there are any.
func selectColumns(chosen []string) []string {
	usual := dataset.Columns()
	switch {
	case chosen == nil:
		return usual
	case len(chosen) == 0:
		return nil
	}
	names := slices.Clone(chosen)
	if i := slices.Index(names, "all"); i >= 0 {
		names = slices.Replace(names, i, i+1, usual...)
	}
	return slices.DeleteFunc(append(usual, dataset.Extras()...), func(name string) bool {
		return name != usual[0] && !slices.Contains(names, name)
	})
}

// finished reports whether the dataset is there already. A finished dataset of
// another corpus or other options is an error.
func (r *runner) finished(ctx context.Context) (bool, error) {
	finished, err := dataset.Finished(r.dir.Path())
	if err != nil || !finished {
		return false, err
	}
	manifest, err := dataset.ReadManifest(r.dir.Path())
	if err != nil {
		return false, err
	}
	got, err := fingerprint(ctx, r.spec, r.paths, r.stdin)
	if err != nil {
		return false, err
	}
	if got != manifest.Input.CorpusSHA256 {
		return false, fmt.Errorf("%s holds the dataset of another corpus (sha256 %.12s, now %.12s); name another --job or remove it", r.dir.Path(), manifest.Input.CorpusSHA256, got)
	}
	missing, err := manifest.Missing(r.dir.Path())
	switch {
	case err != nil:
		return false, err
	case len(missing) == 0:
		parts := ""
		if n := manifest.Spec.PartChunks; n != r.c.Spec.PartChunks {
			parts = fmt.Sprintf(", in parts of %d chunks", n)
		}
		fmt.Fprintf(r.stderr, "%s is complete already%s\n", r.dir.Path(), parts)
		return true, nil
	case slices.Contains(r.paths, corpus.Stdin):
		return false, fmt.Errorf("%s was complete but lacks %s, and standard input was read to compare it; remove _SUCCESS and run again", r.dir.Path(), firstOf(missing))
	}
	fmt.Fprintf(r.stderr, "%s was complete but lacks %s; making again what is missing\n", r.dir.Path(), firstOf(missing))
	return false, nil
}

// firstOf is the first of some names, and how many more there are.
func firstOf(names []string) string {
	if n := len(names) - 1; n > 0 {
		return fmt.Sprintf("%s and %d more", names[0], n)
	}
	return names[0]
}

// solve runs the pipeline until the dataset is complete.
func (r *runner) solve(ctx context.Context) error {
	if object.Is(r.c.Output) { // that it takes nothing is better known before anything is solved
		if _, err := dataset.Identify(r.c.Output); err != nil {
			return err
		}
	}
	drain, abort, stop := daemon.Context(ctx, r.c.StopTimeout)
	defer stop()
	puzzles, err := openCorpus(drain, r.spec, r.paths, r.stdin)
	if drain.Err() != nil {
		return stopped(drain)
	}
	if err != nil {
		return err
	}
	p := &pipeline{
		output:  r.c.Output,
		job:     r.job,
		spec:    r.spec,
		dir:     r.dir,
		workers: r.c.Workers,
		window:  r.c.Window,
		puzzles: puzzles,
		http:    r.c.HTTP,
		hosts:   r.c.HTTPHosts,
		seen:    newMonitor(standstill),
		log:     daemon.NewLogger(r.stderr, r.c.LogFormat, r.c.LogLevel),
	}
	if p.workers == 0 {
		p.workers = runtime.GOMAXPROCS(0)
	}
	err = p.run(drain, abort, r.stderr, r.c.Progress)
	if signal, ok := errors.AsType[daemon.Signal](err); ok {
		return withCode(code(signal.ExitCode()), fmt.Errorf("%w: committed parts are kept in %s; the same command finishes the rest", signal, r.dir.Path()))
	}
	return err
}

// openCorpus opens the corpus of a spec.
func openCorpus(ctx context.Context, spec puzzle.Spec, paths []string, stdin io.Reader) (*corpus.Corpus, error) {
	if spec.Generate.Kind == "" {
		return corpus.Open(ctx, paths, corpusOptions(spec), stdin)
	}
	g, err := generatorOf(spec)
	if err != nil {
		return nil, err
	}
	return corpus.Generated(g), nil
}

// generatorOf returns what makes the boards of a spec.
func generatorOf(spec puzzle.Spec) (*generate.Generator, error) {
	return generate.New(spec, solver.NewSet(spec.Rule, solver.Options{SearchLimit: spec.SearchLimit}))
}

// fingerprint returns what Corpus.Sum would say at the end.
func fingerprint(ctx context.Context, spec puzzle.Spec, paths []string, stdin io.Reader) (string, error) {
	if spec.Generate.Kind != "" {
		puzzles, err := openCorpus(ctx, spec, nil, nil)
		if err != nil {
			return "", err
		}
		return puzzles.Sum(), nil
	}
	sources, err := corpus.Fingerprint(ctx, paths, stdin)
	return corpus.Sum(sources), err
}

// corpusOptions says how the corpus is written.
func corpusOptions(spec puzzle.Spec) corpus.Options {
	return corpus.Options{
		Format: spec.Format, Rule: spec.Rule, Size: spec.Size, Symbols: spec.Symbols, MaxLine: spec.MaxLine,
		Frame: spec.Frame, ColumnMajor: spec.ColumnMajor, Fields: spec.Fields, Keep: spec.Keep,
	}
}

// jobName names a job after its corpus: the same files always give the same name.
func jobName(paths []string) string {
	name := filepath.Base(paths[0])
	if paths[0] == corpus.Stdin {
		name = "stdin"
	}
	name, _, _ = strings.Cut(name, ".")
	other := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }
	name = strings.Join(strings.FieldsFunc(strings.ToLower(name), other), "-")
	if name == "" || name[0] < 'a' {
		name = "job-" + name
	}
	if n := len(paths) - 1; n > 0 {
		name = fmt.Sprintf("%.40s-and-%d-more", name, n)
	}
	return strings.Trim(name[:min(len(name), 63)], "-")
}
