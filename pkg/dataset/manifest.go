package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

const (
	manifestName  = "manifest.json"
	successName   = "_SUCCESS"
	cancelledName = "_CANCELLED"
	statsName     = tableStats + "/stats.parquet"
)

// Manifest is what manifest.json says: all of a dataset, and where it came from.
// It is written last. Every value of it can be checked against the data files.
type Manifest struct {
	SchemaVersion int     `json:"schema_version"`
	Job           string  `json:"job"`
	Spec          Options `json:"spec"`
	Input         Input   `json:"input"`
	Counts        Counts  `json:"counts"`
	Parts         []Files `json:"parts"`
	Stats         File    `json:"stats"`
}

// text returns the manifest as its file has it.
func (m *Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// Input is the corpus that a dataset was made from.
type Input struct {
	Records      int64    `json:"records"`
	Chunks       int64    `json:"chunks"`
	Sources      []Source `json:"sources"` // in corpus order
	CorpusSHA256 string   `json:"corpus_sha256"`
}

// Source is a file, or the like, of a corpus.
type Source struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hex; of the bytes as read, before decompression
}

// Counts is a dataset's statistics in short.
type Counts struct {
	Solved     int64                   `json:"solved"`
	Impossible int64                   `json:"impossible"`
	Unproven   int64                   `json:"unproven"`
	Rejected   int64                   `json:"rejected"`
	Reasons    map[puzzle.Reason]int64 `json:"reasons"`   // of the rejects
	Histogram  []int64                 `json:"min_moves"` // element m counts the solved boards with a minimum of m presses
}

// CountsOf returns a tally in short.
func CountsOf(t *tally.Tally) Counts {
	c := Counts{
		Solved: t.With(puzzle.Solved), Impossible: t.With(puzzle.Impossible), Unproven: t.With(puzzle.Unproven),
		Rejected: t.Rejected(), Reasons: make(map[puzzle.Reason]int64), Histogram: t.Histogram(),
	}
	for _, r := range t.Rejects() {
		c.Reasons[r.Reason] = r.Records
	}
	if c.Histogram == nil {
		c.Histogram = []int64{}
	}
	return c
}

// Files is a part in the manifest.
type Files struct {
	Part        int    `json:"part"`
	FirstChunk  int64  `json:"first_chunk"`
	Chunks      int    `json:"chunks"`
	FirstIndex  int64  `json:"first_index"`
	Records     int64  `json:"records"`
	InputSHA256 string `json:"input_sha256"`
	Results     File   `json:"results"`
	Rejects     *File  `json:"rejects"` // null where the part has no rejects file
}

// File is a data file in the manifest.
type File struct {
	Name   string `json:"file"` // relative to the dataset, with slashes
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ReadManifest reads the manifest of the dataset at path. The error is
// fs.ErrNotExist where the dataset is not finished.
func ReadManifest(path string) (*Manifest, error) {
	files, err := below(path)
	if err != nil {
		return nil, fmt.Errorf("read manifest of %s: %w", path, err)
	}
	m, err := readManifest(files, manifestName)
	if isMissing(err) {
		return nil, noDataset(path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest of %s: %w", path, err)
	}
	return m, nil
}

func readManifest(files fs.FS, name string) (*Manifest, error) {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := decodeStrict(data, m); err != nil {
		return nil, err
	}
	if m.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("schema version %d, want %d", m.SchemaVersion, SchemaVersion)
	}
	return m, nil
}

// Finish checks that the committed parts are the whole corpus and writes stats,
// manifest and _SUCCESS. An empty corpus gets a part without rows. Finishing a
// finished dataset again is harmless.
func (d *Dir) Finish(in Input) (*Manifest, error) {
	m, err := d.finish(in)
	if err != nil {
		return nil, fmt.Errorf("finish job %s: %w", d.job, err)
	}
	return m, nil
}

func (d *Dir) finish(in Input) (*Manifest, error) {
	if in.Chunks == 0 {
		p, err := d.NewPart(0)
		if err != nil {
			return nil, err
		}
		if _, err := p.Commit(); err != nil {
			return nil, err
		}
	}
	footers, err := d.Committed()
	if err != nil {
		return nil, err
	}
	total, err := conserve(footers, in)
	if err != nil {
		return nil, err
	}
	if in.Sources == nil {
		in.Sources = []Source{}
	}
	m := &Manifest{SchemaVersion: SchemaVersion, Job: d.job, Spec: d.options, Input: in, Counts: CountsOf(total)}
	for _, f := range footers {
		part, err := d.describe(f)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", f.Part, err)
		}
		m.Parts = append(m.Parts, part)
	}
	if m.Stats, err = d.writeStats(total, in); err != nil {
		return nil, fmt.Errorf("write statistics: %w", err)
	}
	text, err := m.text()
	if err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	if err := d.writeBytes(manifestName, text); err != nil {
		return nil, fmt.Errorf("write manifest: %w", err)
	}
	if err := d.revive(); err != nil {
		return nil, fmt.Errorf("remove the mark of a cancelled job: %w", err)
	}
	return m, d.writeBytes(successName, nil)
}

// conserve reports parts that do not follow each other or are not the whole
// input, and returns their tally.
func conserve(footers []Footer, in Input) (*tally.Tally, error) {
	total := &tally.Tally{}
	var chunks, records int64
	for i, f := range footers {
		if f.Part != i || f.FirstChunk != chunks || f.FirstIndex != records && f.Records > 0 {
			return nil, fmt.Errorf("records from %d on are missing: the next part is %d, from record %d on", records, f.Part, f.FirstIndex)
		}
		if i < len(footers)-1 && f.Chunks != f.Spec.PartChunks {
			return nil, fmt.Errorf("part %d has %d chunks, want %d", f.Part, f.Chunks, f.Spec.PartChunks)
		}
		chunks += int64(f.Chunks)
		records += f.Records
		t, err := tally.Parse(f.Tally)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", f.Part, err)
		}
		total.Merge(t)
	}
	if chunks != in.Chunks || records != in.Records {
		return nil, fmt.Errorf("%d records in %d chunks are committed, the corpus has %d in %d", records, chunks, in.Records, in.Chunks)
	}
	return total, nil
}

// describe returns a committed part as the manifest lists it.
func (d *Dir) describe(f Footer) (Files, error) {
	part := Files{
		Part: f.Part, FirstChunk: f.FirstChunk, Chunks: f.Chunks, FirstIndex: f.FirstIndex, Records: f.Records,
		InputSHA256: f.InputSHA256,
	}
	counts, err := tally.Parse(f.Tally)
	if err != nil {
		return Files{}, err
	}
	if part.Results, err = d.describeFile(tableResults+"/"+partName(f.Part), f.Rows); err != nil {
		return Files{}, err
	}
	if counts.Rejected() == 0 && f.Part != 0 {
		return part, nil
	}
	rejects, err := d.describeFile(tableRejects+"/"+partName(f.Part), counts.Rejected())
	part.Rejects = &rejects
	return part, err
}

func (d *Dir) describeFile(name string, rows int64) (File, error) {
	d.mu.Lock()
	f, ok := d.files[name]
	d.mu.Unlock()
	if ok {
		return f, nil
	}
	sum, size, err := sumFile(d.store, d.name(name))
	return File{Name: name, Rows: rows, Bytes: size, SHA256: sum}, err
}

// writeBytes publishes a file of the given content.
func (d *Dir) writeBytes(name string, data []byte) error {
	temp, err := d.temp("file", name)
	if err != nil {
		return err
	}
	defer d.store.discard(temp)
	if _, err := temp.Write(data); err != nil {
		return err
	}
	d.reach(stepWritten, name)
	if err := temp.Sync(); err != nil {
		return err
	}
	d.reach(stepSynced, name)
	sum := sha256.Sum256(data)
	return d.link(temp, File{Name: name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])})
}

// Finished reports whether the dataset at path is finished: _SUCCESS is there.
func Finished(path string) (bool, error) {
	files, err := below(path)
	if err == nil {
		_, err = fs.Stat(files, successName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Missing returns the names of the data files that the manifest of the dataset
// at path lists but that are not there, or not of their size. It does not read
// them; Verify does. The error is for what cannot be looked at, which may be there.
func (m *Manifest) Missing(path string) ([]string, error) {
	files, err := below(path)
	if err != nil {
		return nil, err
	}
	there := map[string]int64{} // sizes
	for _, table := range []string{tableResults, tableRejects, tableStats} {
		entries, err := list(files, table)
		if err != nil {
			return nil, fmt.Errorf("look for the files of %s: %w", path, err)
		}
		for _, e := range entries {
			name := table + "/" + e.Name()
			info, err := e.Info()
			if err == nil && info.Mode()&fs.ModeSymlink != 0 {
				info, err = fs.Stat(files, name) // of what it leads to
			}
			switch {
			case err == nil:
				there[name] = info.Size()
			case !errors.Is(err, fs.ErrNotExist): // else it has just gone
				return nil, fmt.Errorf("look for the files of %s: %w", path, err)
			}
		}
	}
	wanted := []File{m.Stats}
	for _, p := range m.Parts {
		wanted = append(wanted, p.Results)
		if p.Rejects != nil {
			wanted = append(wanted, *p.Rejects)
		}
	}
	var names []string
	for _, f := range wanted {
		if size, ok := there[f.Name]; !ok || size != f.Bytes {
			names = append(names, f.Name)
		}
	}
	return names, nil
}

// statsFooter is what the statistics file says about itself, under footerKey. It
// repeats the manifest's input, so that the manifest can be checked, and has the
// whole tally, rejects by reason included.
type statsFooter struct {
	SchemaVersion int     `json:"schema_version"`
	Job           string  `json:"job"`
	Table         string  `json:"table"`
	Input         Input   `json:"input"`
	Tally         []byte  `json:"tally"`
	Spec          Options `json:"spec"`
}
