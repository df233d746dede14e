// Package corpus reads corpora: files of boards in one of several formats, plain
// or compressed, become a sequence of records.
//
// A corpus is one or more sources (files, or standard input) read one after the
// other as a single sequence. A record is one board, or one reject: text that
// should have been a board, with the reason why it is none. A bad record costs
// its own lines only; the reader finds the next one. What cannot be read at all
// (a missing file, damaged compression, a format that cannot be told) is an
// error instead.
//
//	c, err := corpus.Open(ctx, paths, corpus.Options{}, os.Stdin)
//	...
//	defer c.Close()
//	var rec corpus.Record
//	for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
//		...
//	}
//	if err != io.EOF { ... }
//
// Invariants: every line that is not blank belongs to exactly one record; what
// the records are is a function of the bytes and the options, never of how the
// bytes arrive; memory is bounded whatever the input; a board needs no
// allocation.
//
// The boards of a corpus may also be generated instead of read: see Generated.
//
// A Corpus belongs to one goroutine, except that Progress may be called from any.
package corpus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// The formats.
const (
	Auto   = "auto"   // told from each file's name or beginning
	Lines  = "lines"  // one board a line
	Blocks = "blocks" // one row a line, a blank line between boards
	Grid   = "grid"   // a line "ROWS COLS", then one row a line
	CSV    = "csv"    // a header, then a record a line, fields separated by commas
	TSV    = "tsv"    // the same with tabs
	JSONL  = "jsonl"  // a JSON value a line
	JSON   = "json"   // one JSON array of such values
	NPY    = "npy"    // an array of NumPy

	Parquet = "parquet" // a row of a Parquet file
)

// Formats returns the names that Options.Format may have.
func Formats() []string {
	return []string{Auto, Lines, Blocks, Grid, CSV, TSV, JSONL, JSON, NPY, Parquet}
}

// Options says how a corpus is written.
type Options struct {
	Format  string         // one of Formats; empty means Auto
	Rule    puzzle.Rule    // what the boards are for: it may limit their size; may be zero
	Size    puzzle.Size    // size of every board; zero where the corpus shows it
	Symbols puzzle.Symbols // characters of the cells; zero means puzzle.Digits
	MaxLine int            // bytes of the longest line, or record of several, that is read; 0 means 64 KiB

	Frame       puzzle.Frame  // what is around the boards of lines, blocks and grid
	ColumnMajor bool          // cells that are not in rows are column by column
	Fields      puzzle.Fields // names in formats with named fields
	Keep        []string      // of these fields, those that become labels besides the id
}

// Record is a board or a reject. Its Board, Reject.Raw and Labels use memory that
// the next call of Next with the same Record takes back.
type Record struct {
	Source string        // name of the file, see Source.Name; "-" is standard input
	Line   int64         // 1-based line where the record starts
	Board  puzzle.Run    // one board, unless Rejected
	Reject puzzle.Reject // why there is no board, if Rejected; the Index is left to the caller

	// Labels is the record's own id, then its values of Options.Keep. It is empty
	// where the format has no place for them.
	Labels puzzle.Labels
}

// Rejected reports whether the record is a reject.
func (r *Record) Rejected() bool { return r.Reject.Reason != "" }

// begin makes r an empty record that starts at the given line.
func (r *Record) begin(line int64) {
	r.Line = line
	r.Labels.Reset()
	r.Reject = puzzle.Reject{Raw: r.Reject.Raw[:0]}
}

// keep adds a line to the record's raw text. Records of several lines keep them
// all: that the record is bad may show only in its last one.
func (r *Record) keep(line []byte) {
	raw := r.Reject.Raw
	if len(raw) > 0 {
		raw = append(raw, '\n')
	}
	raw = append(raw, line[:min(len(line), puzzle.MaxRaw)]...)
	r.Reject.Raw = raw[:min(len(raw), puzzle.MaxRaw)]
}

// reject gives the record its reason. The first reason counts: what is wrong
// further on is often its consequence.
func (r *Record) reject(reason puzzle.Reason, format string, args ...any) {
	if !r.Rejected() {
		r.Reject.Reason, r.Reject.Detail = reason, fmt.Sprintf(format, args...)
	}
}

// reader is a format. It is told of each source that has it, and then reads that
// source record by record. It returns io.EOF where only blank lines are left,
// and any other error where the corpus as a whole cannot be read. A record never
// reaches beyond its source.
type reader interface {
	begin(src *source, in *scanner) error
	next(in *scanner, rec *Record) error
}

func newReader(format string, opts Options) reader {
	s := newSheet(opts)
	switch format {
	case Lines:
		return opts.framed(s, &lines{sheet: s, size: opts.Size})
	case Blocks:
		return opts.framed(s, &blocks{sheet: s, size: opts.Size, named: opts.Frame.Name})
	case Grid:
		return opts.framed(s, &grid{sheet: s, size: opts.Size, square: opts.Frame.Square})
	case CSV:
		return &delimited{named: newNamed(s, opts), separator: ',', max: opts.MaxLine}
	case TSV:
		return &delimited{named: newNamed(s, opts), separator: '\t', max: opts.MaxLine}
	case JSONL:
		return &jsonLines{values{newNamed(s, opts)}}
	case JSON:
		return &jsonArray{values: values{newNamed(s, opts)}, max: opts.MaxLine}
	case Parquet:
		return &parquetRows{named: newNamed(s, opts)}
	case NPY:
		return &npy{sheet: s, want: opts.Size}
	}
	panic("BUG: corpus: no reader of format " + format)
}

// framed puts the frame around a reader, if there is one.
func (o Options) framed(s *sheet, r reader) reader {
	if o.Frame == (puzzle.Frame{}) {
		return r
	}
	return &framed{reader: r, frame: o.Frame, sheet: s, size: o.Size}
}

// Corpus is an open corpus.
type Corpus struct {
	opts  Options
	stdin io.Reader
	shelf shelf
	files []entry // still to be opened
	total int64   // raw bytes of all sources; 0 where one of them does not say
	read  atomic.Int64

	readers map[string]reader // by format, made when they are needed
	told    string            // the format that the beginning of a file has told; it holds for those behind
	found   []string          // the formats of the files so far

	src    *source
	format reader   // of src; nil where src has no record
	in     *scanner // reads src
	line   int64    // of the last record of src
	done   []Source

	made *made // nil unless it is generated

	first    Record // read by Open, given out by the first Next
	firstErr error
	ahead    bool // first is still to be given out
}

// Open opens the corpus that consists of what paths stand for, see Expand, in this
// order; "-" is stdin. It finds out whether every file can be opened and reads as far as the
// first record, so that what cannot be read at all fails here. Reading
// from a bucket ends with the context, whatever it waits for.
func Open(ctx context.Context, paths []string, opts Options, stdin io.Reader) (*Corpus, error) {
	if opts.Format == "" {
		opts.Format = Auto
	}
	if opts.Symbols == (puzzle.Symbols{}) {
		opts.Symbols = puzzle.Digits()
	}
	if opts.MaxLine == 0 {
		opts.MaxLine = 64 << 10
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	c := &Corpus{opts: opts, stdin: stdin, shelf: shelf{ctx: ctx}, ahead: true, readers: map[string]reader{}}
	var err error
	if c.files, err = c.shelf.expand(paths); err != nil {
		return nil, err
	}
	if c.total, err = checkSources(c.files); err != nil {
		return nil, err
	}
	if c.firstErr = c.readRecord(&c.first); c.firstErr != nil && c.firstErr != io.EOF {
		return nil, errors.Join(c.firstErr, c.Close())
	}
	return c, nil
}

// Fielded returns the formats that have named fields.
func Fielded() []string { return []string{CSV, TSV, JSONL, JSON, Parquet} }

// checkKept reports fields to keep that no file can have: none so far, nor any that is
// still to come. It is known once the first file is open, unless names differ.
func (c *Corpus) checkKept() error {
	if len(c.opts.Keep) == 0 || c.opts.Format != Auto {
		return nil
	}
	formats := slices.Clone(c.found)
	for _, f := range c.files {
		formats = append(formats, cmp.Or(formatOfName(f.path), c.told))
	}
	if slices.ContainsFunc(formats, func(format string) bool { return format == "" || slices.Contains(Fielded(), format) }) {
		return nil
	}
	return fmt.Errorf("keep %s: the boards are %s, which has no named fields", strings.Join(c.opts.Keep, ", "), strings.Join(c.found, " and "))
}

// Framed returns the formats that may have a frame.
func Framed() []string { return []string{Lines, Blocks, Grid} }

func (o Options) validate() error {
	known := false
	for _, f := range Formats() {
		known = known || o.Format == f
	}
	switch {
	case !known:
		return fmt.Errorf("corpus format %q: want %s", o.Format, strings.Join(Formats(), ", "))
	case o.Frame != puzzle.Frame{} && !slices.Contains(Framed(), o.Format):
		return fmt.Errorf("corpus format %s has no frame: want %s, %s or %s with it", o.Format, Lines, Blocks, Grid)
	case o.Frame.Square && o.Format != Grid:
		return fmt.Errorf("frame %s: only the format %s has headers to be square", o.Frame, Grid)
	case o.MaxLine < 0:
		return fmt.Errorf("longest corpus line of %d bytes: want at least 1", o.MaxLine)
	case o.Size != puzzle.Size{}:
		return o.Rule.CheckSize(o.Size)
	}
	return nil
}

// Format returns the format of the files read so far. It is Options.Format where
// none of them has a record; several formats have a plus sign between them.
func (c *Corpus) Format() string {
	if c.made != nil {
		return formatGenerated
	}
	if len(c.found) == 0 {
		return c.opts.Format
	}
	return strings.Join(c.found, "+")
}

// Next reads the next record. It returns io.EOF after the last one; after any
// other error, which names file and line, the corpus cannot be read further.
func (c *Corpus) Next(rec *Record) error {
	if c.made != nil {
		return c.made.next(rec)
	}
	if c.ahead {
		c.ahead = false
		*rec, c.first = c.first, *rec
		return c.firstErr
	}
	return c.readRecord(rec)
}

func (c *Corpus) readRecord(rec *Record) error {
	for {
		if c.src == nil {
			switch err := c.openNext(); {
			case errors.Is(err, errOverExpanded):
				c.overExpanded(rec)
				return nil
			case err != nil:
				return err
			}
		}
		err := io.EOF
		if c.format != nil {
			err = c.format.next(c.in, rec)
		}
		if err == nil {
			rec.Source, c.line = c.src.name, rec.Line
			if rec.Rejected() {
				rec.Reject.Raw = bytes.TrimSuffix(rec.Reject.Raw, []byte{'\r'})
			}
			return nil
		}
		if errors.Is(err, errOverExpanded) {
			c.overExpanded(rec)
			return nil
		}
		if err != io.EOF {
			return c.located(err)
		}
		if err := c.finishSource(); err != nil {
			return err
		}
	}
}

// overExpanded makes the rest of the source one bad record.
func (c *Corpus) overExpanded(rec *Record) {
	rec.begin(max(c.in.line, c.line) + 1)
	rec.Source = c.src.name
	rec.reject(puzzle.OverExpanded, "%v", errOverExpanded)
	c.format = nil
}

// openNext opens the next source and finds its format. It returns io.EOF after
// the last source.
func (c *Corpus) openNext() error {
	if len(c.files) == 0 {
		return io.EOF
	}
	src, err := c.shelf.openSource(c.files[0].path, c.stdin, &c.read)
	if err != nil {
		return err
	}
	c.src, c.format, c.line, c.files = src, nil, 0, c.files[1:]
	if c.in, err = newScanner(src.text, c.opts.MaxLine); err != nil {
		return fmt.Errorf("read %s: %w", src.name, err)
	}
	format, err := c.formatOf(src)
	if err != nil || format == "" {
		return err
	}
	if !slices.Contains(c.found, format) {
		c.found = append(c.found, format)
		if err := c.checkKept(); err != nil {
			return fmt.Errorf("read %s: %w", src.name, err)
		}
	}
	if c.readers[format] == nil {
		c.readers[format] = newReader(format, c.opts)
	}
	c.format = c.readers[format]
	if err := c.format.begin(src, c.in); err != nil {
		return c.located(err)
	}
	return nil
}

// located says where an error is.
func (c *Corpus) located(err error) error {
	if c.in.line == 0 { // not read by lines, or not yet
		return fmt.Errorf("read %s: %w", c.src.name, err)
	}
	return fmt.Errorf("read %s, line %d: %w", c.src.name, c.in.line, err)
}

// formatOf returns the format of the source that is open: as it is given, as
// the file is called, or else as the first file without such a name begins. It
// is empty where the source has no record to tell it.
func (c *Corpus) formatOf(src *source) (string, error) {
	if c.opts.Format != Auto {
		return c.opts.Format, nil
	}
	if format := formatOfName(src.name); format != "" {
		return format, nil
	}
	if c.told != "" {
		return c.told, nil
	}
	view, err := c.in.peekRecord()
	if err == io.EOF {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", src.name, err)
	}
	if c.told, err = detect(view, c.opts); err != nil {
		return "", fmt.Errorf("tell the format of %s from line %d: %w", src.name, c.in.line+1, err)
	}
	return c.told, nil
}

func (c *Corpus) finishSource() error {
	src := c.src
	c.src, c.in = nil, nil
	sum, err := src.finish()
	if err != nil {
		return err
	}
	c.done = append(c.done, sum)
	return nil
}

// Close closes the file that is open, if any. It is needed where a corpus is
// not read to its end, and harmless elsewhere.
func (c *Corpus) Close() error {
	if c.src == nil {
		return nil
	}
	src := c.src
	c.src, c.files = nil, nil
	return src.close()
}

// Progress returns how many bytes of the files were read so far and how many
// there are, both as stored; total is 0 where it is unknown, as for a pipe. Of a
// generated corpus it counts boards.
func (c *Corpus) Progress() (read, total int64) {
	if c.made != nil {
		return c.made.taken.Load(), c.made.generator.Count()
	}
	return c.read.Load(), c.total
}

// Sources returns what was read: after io.EOF, every source in order.
func (c *Corpus) Sources() []Source { return c.done }
