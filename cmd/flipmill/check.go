package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/corpus"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/flipmill/flipmill/producer"
)

func newCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check CORPUS...",
		Short: "Read a corpus and say what a run would make of it, without running",
		Long: `Reads a corpus to its end as flipmill run would, with the same flags, and says what
it finds: the format, the first records drawn as boards, boards by size, and rejects
by reason with the first places. It writes no dataset.

It also solves up to 16 chunks, chosen at random, for 5 seconds or a little more,
and says what a run would send, leave and take, judging by them: ranges, because
they are estimates. The time is that on this machine when nothing else keeps it busy.

The exit code is 1 if the corpus cannot be read, or has not a single board.`,
		Example: `  flipmill check examples/mixed
  flipmill check boards.txt --size 5x5 --rule king --json
  flipmill check --generate all --size 5x5`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := load(cmd)
			if err != nil {
				return err
			}
			if err := wantCorpus(cmd, c, args); err != nil {
				return err
			}
			return checkCorpus(cmd, c, args)
		},
	}
	config.Flags(cmd)
	return cmd
}

// checkCorpus reads, measures and reports.
func checkCorpus(cmd *cobra.Command, c *config.Config, paths []string) error {
	spec, err := specOf(c)
	if err != nil {
		return err
	}
	puzzles, err := openCorpus(cmd.Context(), spec, paths, cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer puzzles.Close()
	k := &checker{job: jobOf(c, paths), spec: spec, sample: newSample(), sizes: map[puzzle.Size]int64{}, reasons: map[puzzle.Reason]*rejected{}}
	k.found = firstRecords{limit: c.Limit, keep: spec.Keep, rows: []dataset.Row{}}
	before := cpuSeconds()
	if err := k.readShown(puzzles, cmd.ErrOrStderr(), c.Progress); err != nil {
		return err
	}
	read := cpuSeconds() - before
	measured, err := k.sample.measure(k.job, spec)
	if err != nil {
		return fmt.Errorf("solve some chunks: %w", err)
	}
	workers := cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	r := k.report(puzzles)
	r.Forecast = forecastOf(measured, spec, k.sample.seen, r.Records, read, workers)
	if err := r.print(cmd.OutOrStdout(), c.JSON, spec); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if r.Boards == 0 {
		return fmt.Errorf("not one of %d records is a board", r.Records)
	}
	return strictly(c, r.Rejected)
}

// checker goes through a corpus.
type checker struct {
	job     string
	spec    puzzle.Spec
	sample  *sample
	found   firstRecords
	records int64
	sizes   map[puzzle.Size]int64
	reasons map[puzzle.Reason]*rejected
}

// readShown reads, and shows how far it has come.
func (k *checker) readShown(puzzles *corpus.Corpus, progress io.Writer, mode string) error {
	m := newMeter("check", "records", nil)
	m.total = reading(k.spec, &m.done, puzzles.Progress)
	defer m.show(progress, mode)()
	return k.read(puzzles, &m.done)
}

// read takes in the whole corpus; of generated boards the first are enough.
func (k *checker) read(puzzles *corpus.Corpus, done *atomic.Int64) error {
	if k.spec.Generate.Kind != "" {
		return k.generated(puzzles)
	}
	for chunk, err := range producer.Chunks(k.spec, puzzles) {
		if err != nil {
			return err
		}
		k.sample.add(&wire.Task{ID: idOf(k.job, k.spec, k.sample.seen), Chunk: *chunk})
		k.found.add(chunk)
		for _, run := range chunk.Runs {
			k.sizes[run.Size] += int64(run.Count)
		}
		for r := range rejectsOf(chunk) {
			if k.reasons[puzzle.Reason(*r.Reason)] == nil {
				k.reasons[puzzle.Reason(*r.Reason)] = new(rejected)
			}
			k.reasons[puzzle.Reason(*r.Reason)].add(r)
		}
		k.records += int64(chunk.Records())
		done.Store(k.records)
	}
	return nil
}

func (k *checker) generated(puzzles *corpus.Corpus) error {
	_, k.records = puzzles.Progress()
	k.sizes[k.spec.Size] = k.records
	k.sample.addRanges(k.job, k.spec, k.records)
	var rec corpus.Record
	for !k.found.full() {
		err := puzzles.Next(&rec)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		k.found.rows = append(k.found.rows, rowOfBoard(int64(len(k.found.rows)), rec.Board, 0))
	}
	return nil
}

// checked is what flipmill check tells.
type checked struct {
	Format   string        `json:"format"`
	Files    int           `json:"files"`
	Bytes    int64         `json:"bytes"` // as stored
	Records  int64         `json:"records"`
	Boards   int64         `json:"boards"`
	Rejected int64         `json:"rejected"`
	Sizes    []sizeCount   `json:"sizes"`   // by rows, then columns
	Reasons  []*rejected   `json:"reasons"` // the most frequent first
	First    []dataset.Row `json:"first_records"`
	Forecast forecast      `json:"forecast"`
}

// sizeCount is the number of boards of one size.
type sizeCount struct {
	Rows   int   `json:"rows"`
	Cols   int   `json:"cols"`
	Boards int64 `json:"boards"`
}

// rejected is about the rejects with one reason.
type rejected struct {
	Reason  puzzle.Reason `json:"reason"`
	Records int64         `json:"records"`
	First   []dataset.Row `json:"first"`
}

// mostExamples is how many rejects of each reason are told.
const mostExamples = 3

func (r *rejected) add(row dataset.Row) {
	r.Reason = puzzle.Reason(*row.Reason)
	if r.Records++; len(r.First) < mostExamples {
		r.First = append(r.First, row)
	}
}

func (k *checker) report(puzzles *corpus.Corpus) *checked {
	r := &checked{Format: puzzles.Format(), Records: k.records, Sizes: []sizeCount{}, Reasons: []*rejected{}, First: k.found.rows}
	for _, s := range puzzles.Sources() {
		r.Files++
		r.Bytes += s.Bytes
	}
	bySize := func(a, b puzzle.Size) int { return cmp.Or(cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Cols, b.Cols)) }
	for _, size := range slices.SortedFunc(maps.Keys(k.sizes), bySize) {
		r.Sizes = append(r.Sizes, sizeCount{size.Rows, size.Cols, k.sizes[size]})
		r.Boards += k.sizes[size]
	}
	byCount := func(a, b *rejected) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Reason, b.Reason))
	}
	r.Reasons = append(r.Reasons, slices.SortedFunc(maps.Values(k.reasons), byCount)...)
	for _, reason := range r.Reasons {
		r.Rejected += reason.Records
	}
	return r
}

func (r *checked) print(w io.Writer, asJSON bool, spec puzzle.Spec) error {
	text := r.text(spec, glyphsFor(w))
	if asJSON {
		var err error
		if text, err = document(r); err != nil {
			return err
		}
	}
	_, err := w.Write(text)
	return err
}
