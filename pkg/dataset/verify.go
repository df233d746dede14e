package dataset

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/generate"
	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/solver"
	"github.com/flipmill/flipmill/pkg/tally"
)

// Report is the outcome of Verify.
type Report struct {
	Job      string    `json:"job"`
	Records  int64     `json:"records"` // that the manifest promises
	Rows     int64     `json:"rows"`    // read and found in order, results and rejects together
	Checked  []string  `json:"checked"` // what was checked, for people
	Skipped  []string  `json:"skipped"` // what could not be checked, and why
	Problems []Problem `json:"problems"`
}

// OK reports whether nothing was found wrong.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// Problem is something wrong with a dataset.
type Problem struct {
	File       string `json:"file"`        // relative to the dataset
	FirstIndex *int64 `json:"first_index"` // the records concerned, both inclusive; null if none in particular
	LastIndex  *int64 `json:"last_index"`
	Message    string `json:"message"`
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.FirstIndex == nil {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s: rows %d–%d %s", p.File, *p.FirstIndex, *p.LastIndex, p.Message)
}

// maxProblems is the most problems that a report lists: a dataset that broken is
// better made again.
const maxProblems = 1000

// Verify proves the dataset at path complete and consistent, from its files
// alone: every file as the manifest says and none besides, every record exactly
// one row, every solution pressed on its board, all statistics counted again,
// and generated boards made again.
// The error is for what keeps Verify from judging; it is fs.ErrNotExist where
// there is no manifest, so no finished dataset.
//
// It calls seen, unless that is nil, with the number of records that it is done
// with, and how many there are.
func Verify(path string, seen func(records, of int64)) (*Report, error) {
	v := &verifier{path: path, seen: seen, report: &Report{Checked: []string{}, Skipped: []string{}, Problems: []Problem{}}}
	var err error
	if v.files, err = below(path); err != nil {
		return nil, err
	}
	m, err := ReadManifest(path)
	if isMissing(err) {
		if _, err := fs.Stat(v.files, successName); err == nil {
			v.problem(manifestName, "missing: %s says that the dataset is finished", successName)
			return v.report, nil
		}
		return nil, err
	}
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return nil, err // which says nothing about what it holds
	}
	if err == nil {
		v.spec, err = m.Spec.ParseSpec()
	}
	if err == nil {
		v.layouts, err = newLayouts(v.spec)
	}
	if err == nil {
		v.solvers = solver.NewSet(v.spec.Rule, solver.Options{SearchLimit: v.spec.SearchLimit})
		v.extras = newExtras(checkable(v.spec), v.layouts[tableResults], v.solvers)
	}
	if err == nil && v.spec.Generate.Kind != "" {
		v.generator, err = generate.New(v.spec, v.solvers)
	}
	if err != nil {
		v.problem(manifestName, "%v", err)
		return v.report, nil
	}
	v.manifest, v.report.Job, v.report.Records = m, m.Job, m.Input.Records
	if err := v.run(); err != nil {
		return nil, fmt.Errorf("verify %s: %w", path, err)
	}
	return v.report, nil
}

// isMissing reports whether an error says that there is no such file, nor could be one.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// noDataset says that path is no finished dataset, and what it may be instead.
func noDataset(path string, err error) error {
	files, readErr := below(path)
	if readErr != nil {
		return err
	}
	entries, readErr := fs.ReadDir(files, ".")
	if cause, ok := errors.AsType[*fs.PathError](readErr); ok { // of the path ".", which nobody gave
		readErr = cause.Err
	}
	if readErr != nil {
		return fmt.Errorf("no dataset in %s: %w; want the folder of one, such as out/job=boards", path, readErr)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "job=") {
			return fmt.Errorf("no dataset in %s itself: %w; datasets are the folders in it, such as %s", path, err, inside(path, e.Name()))
		}
	}
	return fmt.Errorf("no finished dataset in %s: %w", path, err)
}

// verifier holds one verification.
type verifier struct {
	path     string
	files    fs.FS // below it
	manifest *Manifest
	spec     puzzle.Spec
	report   *Report
	layouts  map[string]*layout
	total    tally.Tally // counted from the rows, or without them from the parts
	complete bool        // all rows were read
	seen     func(records, of int64)

	generator *generate.Generator // of the boards; nil where they were read
	solvers   *solver.Set
	extras    *extras // to be compared with those of the rows; nil where there are none
}

func (v *verifier) problem(file, format string, args ...any) {
	v.add(Problem{File: file, Message: fmt.Sprintf(format, args...)})
}

// rows reports the records first to last, both inclusive.
func (v *verifier) rows(file string, first, last int64, format string, args ...any) {
	v.add(Problem{File: file, FirstIndex: &first, LastIndex: &last, Message: fmt.Sprintf(format, args...)})
}

func (v *verifier) add(p Problem) {
	if len(v.report.Problems) < maxProblems {
		v.report.Problems = append(v.report.Problems, p)
	}
}

func (v *verifier) checked(format string, args ...any) {
	v.report.Checked = append(v.report.Checked, fmt.Sprintf(format, args...))
}

func (v *verifier) skipped(format string, args ...any) {
	v.report.Skipped = append(v.report.Skipped, fmt.Sprintf(format, args...))
}

func (v *verifier) run() error {
	if err := v.checkForm(); err != nil {
		return err
	}
	v.checkManifest()
	if err := v.checkListing(); err != nil {
		return err
	}
	v.complete = true
	for i := range v.manifest.Parts {
		p := &v.manifest.Parts[i]
		if err := v.checkPart(p); err != nil {
			return err
		}
		v.passed(p.FirstIndex + p.Records)
	}
	if rowless(v.spec) {
		v.checked("parts: %d, size, SHA-256, footer, every reject, records = boards counted + rejects", len(v.manifest.Parts))
		v.skipped("answers: the dataset has no rows of them")
		return v.checkStats()
	}
	v.checked("parts: %d, size, SHA-256, footer, every row, each puzzle_index exactly once", len(v.manifest.Parts))
	for _, s := range rowChecks(v.spec) {
		if s.missing == "" {
			v.checked("%s", s.what)
		} else {
			v.skipped("%s: no column %s", s.what, s.missing)
		}
	}
	return v.checkStats()
}

// passed tells that verification is done with so many records.
func (v *verifier) passed(records int64) {
	if v.seen != nil {
		v.seen(records, v.manifest.Input.Records)
	}
}

// checkForm checks that manifest and _SUCCESS are, byte for byte, as Finish
// writes them: then every changed byte is a changed value.
func (v *verifier) checkForm() error {
	data, err := fs.ReadFile(v.files, manifestName)
	if err != nil {
		return err
	}
	if text, err := v.manifest.text(); err != nil || !bytes.Equal(text, data) {
		v.problem(manifestName, "altered: it is not written as flipmill writes it")
	}
	switch info, err := fs.Stat(v.files, successName); {
	case errors.Is(err, fs.ErrNotExist):
		v.problem(successName, "missing")
	case err != nil:
		return err
	case info.Size() != 0:
		v.problem(successName, "altered: %d bytes, want 0", info.Size())
	}
	return nil
}

// checkManifest checks the manifest against itself.
func (v *verifier) checkManifest() {
	m := v.manifest
	path := v.path
	if abs, err := filepath.Abs(path); err == nil && !object.Is(path) {
		path = abs // "." has a name, too
	}
	if name := filepath.Base(path); name != "job="+m.Job {
		v.problem(manifestName, "it is of job %s, the folder is %s", m.Job, name)
	}
	var chunks, records int64
	for i, p := range m.Parts {
		if p.Part != i || p.FirstChunk != chunks || p.FirstIndex != records && p.Records > 0 || p.Results.Name != tableResults+"/"+partName(i) {
			v.problem(manifestName, "entry %d of the parts is part %d, chunk %d, record %d; want chunk %d, record %d", i, p.Part, p.FirstChunk, p.FirstIndex, chunks, records)
		}
		rejects := int64(0)
		if p.Rejects != nil {
			rejects = p.Rejects.Rows
			if p.Rejects.Name != tableRejects+"/"+partName(i) {
				v.problem(manifestName, "part %d has its rejects in %s", i, p.Rejects.Name)
			}
		}
		if rowless(v.spec) && (p.Results.Rows != 0 || rejects > p.Records) || !rowless(v.spec) && p.Results.Rows+rejects != p.Records {
			v.problem(manifestName, "part %d: %d results and %d rejects of %d records", i, p.Results.Rows, rejects, p.Records)
		}
		chunks += int64(p.Chunks)
		records += p.Records
	}
	if chunks != m.Input.Chunks || records != m.Input.Records {
		v.problem(manifestName, "its parts have %d records in %d chunks, the input %d in %d", records, chunks, m.Input.Records, m.Input.Chunks)
	}
	v.checkGenerated()
	if m.Stats.Name != statsName {
		v.problem(manifestName, "the statistics are in %s, want %s", m.Stats.Name, statsName)
	}
	if rowless(v.spec) {
		v.checked("manifest: parts follow each other")
	} else {
		v.checked("manifest: parts follow each other, records = results + rejects")
	}
}

// checkGenerated checks that the input is what the spec's generator makes.
func (v *verifier) checkGenerated() {
	if v.generator == nil {
		return
	}
	sum := v.generator.Sum()
	in := Input{
		Records: v.generator.Count(), Chunks: v.manifest.Input.Chunks, Sources: []Source{},
		CorpusSHA256: hex.EncodeToString(sum[:]),
	}
	if diff := firstDifference(v.manifest.Input, in); diff != "" {
		v.problem(manifestName, "its input is not what %s makes: %s", v.spec.Generate, diff)
	}
}

// listed returns what the manifest lists, by name.
func (v *verifier) listed() map[string]File {
	files := map[string]File{v.manifest.Stats.Name: v.manifest.Stats}
	for _, p := range v.manifest.Parts {
		files[p.Results.Name] = p.Results
		if p.Rejects != nil {
			files[p.Rejects.Name] = *p.Rejects
		}
	}
	return files
}

// checkListing reports files that should not be there.
func (v *verifier) checkListing() error {
	files := v.listed()
	err := fs.WalkDir(v.files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, listed := files[name]; !listed && name != manifestName && name != successName {
			v.extra(name)
		}
		return nil
	})
	v.checked("files: all that the manifest lists and no others")
	return err
}

// extra reports a file that the manifest does not list, with what it holds.
func (v *verifier) extra(name string) {
	f, done, err := v.open(name, openLoose)
	if err == nil {
		defer done()
		if footer, err := footerOf(f); err == nil && footer.Records > 0 {
			v.rows(name, footer.FirstIndex, footer.FirstIndex+footer.Records-1, "are there twice: the file is not in the manifest; it holds part %d of job %s", footer.Part, footer.Job)
			return
		}
	}
	v.problem(name, "not in the manifest")
}

// opener opens a Parquet file.
type opener func(r io.ReaderAt, size int64) (*parquet.File, error)

// open opens a file of the dataset with one of the openers of Parquet files.
func (v *verifier) open(name string, open opener) (f *parquet.File, done func(), err error) {
	in, size, err := openFile(v.files, name)
	if err != nil {
		return nil, nil, err
	}
	if f, err = open(in, size); err != nil {
		in.Close()
		return nil, nil, err
	}
	return f, func() { in.Close() }, nil
}

// whole reports whether a file is there as the manifest says; if not, it says
// what became of the records first to last, which it should hold.
func (v *verifier) whole(file File, first, last int64) bool {
	var sum string
	var size int64
	f, err := v.files.Open(file.Name)
	if err == nil {
		sum, size, err = sumOf(f)
	}
	lost := func(format string, args ...any) {
		if last < first {
			v.problem(file.Name, format, args...)
			return
		}
		v.rows(file.Name, first, last, format, args...)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		lost("missing: there is no such file")
	case err != nil:
		lost("unreadable: %v", err)
	case sum != file.SHA256 || size != file.Bytes:
		if p := v.impostor(file.Name); p != "" {
			lost("missing: the file holds %s", p)
		} else if size != file.Bytes {
			lost("altered: %d bytes, want %d", size, file.Bytes)
		} else {
			lost("altered: SHA-256 %s, want %s", sum, file.SHA256)
		}
	default:
		return true
	}
	return false
}

// impostor describes another part in a part's place; it is empty if the file is
// not that.
func (v *verifier) impostor(name string) string {
	f, done, err := v.open(name, openLoose)
	if err != nil {
		return ""
	}
	defer done()
	footer, err := footerOf(f)
	if err != nil || footer.Job == v.manifest.Job && footer.Table+"/"+partName(footer.Part) == name {
		return ""
	}
	return fmt.Sprintf("%s of part %d of job %s (rows %d–%d)", footer.Table, footer.Part, footer.Job, footer.FirstIndex, footer.FirstIndex+footer.Records-1)
}

// checkPart checks a part's files, and their rows if they are whole.
func (v *verifier) checkPart(p *Files) error {
	first, last := p.FirstIndex, p.FirstIndex+p.Records-1
	ok := v.whole(p.Results, first, last)
	if p.Rejects != nil {
		last := last
		if p.Rejects.Rows == 0 {
			last = first - 1 // no record is lost with it
		}
		ok = v.whole(*p.Rejects, first, last) && ok
	}
	if !ok {
		v.complete = false
		return nil
	}
	rows := newPartRows(v, p)
	if !rows.read(p.Results, tableResults) || p.Rejects != nil && !rows.read(*p.Rejects, tableRejects) {
		v.complete = false
		return nil
	}
	rows.finish()
	v.total.Merge(&rows.tally)
	return nil
}

// checkFooter compares what a part's file says with what the manifest says.
func (v *verifier) checkFooter(f *parquet.File, p *Files, file File, table string) (Footer, error) {
	footer, err := footerOf(f)
	if err != nil {
		return footer, err
	}
	if diff := footer.Spec.difference(v.manifest.Spec); diff != "" {
		return footer, fmt.Errorf("made with other options than the manifest says: %s", diff)
	}
	want := Footer{
		SchemaVersion: v.manifest.SchemaVersion, Job: v.manifest.Job, Table: table, Part: p.Part,
		FirstChunk: p.FirstChunk, Chunks: p.Chunks, FirstIndex: p.FirstIndex, Records: p.Records, Rows: file.Rows,
		InputSHA256: p.InputSHA256, Digests: footer.Digests, Tally: footer.Tally, Spec: footer.Spec,
	}
	got, _ := json.Marshal(footer)
	wanted, _ := json.Marshal(want)
	if string(got) != string(wanted) {
		return footer, fmt.Errorf("its footer is not what the manifest says: %s", firstDifference(footer, want))
	}
	if f.NumRows() != file.Rows {
		return footer, fmt.Errorf("%d rows, want %d", f.NumRows(), file.Rows)
	}
	return footer, nil
}

// firstDifference names the first field, by its JSON name, in which two values
// of one struct type differ.
func firstDifference(got, want any) string {
	a, b := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("%s is %v, not %v", a.Type().Field(i).Tag.Get("json"), x, y)
		}
	}
	return ""
}

// checkStats compares the statistics with those counted from the rows.
func (v *verifier) checkStats() error {
	m := v.manifest
	if !v.whole(m.Stats, 0, -1) {
		v.skipped("statistics: their file is not whole")
		return nil
	}
	stored, err := v.readStats()
	if err != nil {
		v.problem(m.Stats.Name, "%v", err)
		return nil
	}
	if got, want := m.Counts, CountsOf(stored); !reflect.DeepEqual(got, want) {
		v.problem(manifestName, "its counts are not those of the statistics: %s", firstDifference(got, want))
	}
	switch {
	case !v.complete:
		v.skipped("statistics against rows: not all rows could be read")
	case !canCount(v.spec) && !rowless(v.spec):
		v.skipped("statistics against rows: not all of their columns are there")
	case !stored.Equal(&v.total):
		v.problem(m.Stats.Name, "not what the %s add up to: %s", v.counted(), difference(stored, &v.total))
	default:
		v.checked("statistics: counted again from all %s", v.counted())
	}
	return nil
}

// counted says what the statistics were counted from.
func (v *verifier) counted() string {
	if rowless(v.spec) {
		return "parts"
	}
	return "rows"
}
