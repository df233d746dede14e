package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Dir is the dataset of one job: the folder <output>/job=<id>. Temporary files
// are in <output>/.tmp, outside of whatever readers look at.
type Dir struct {
	output, job string
	spec        puzzle.Spec
	options     Options
	layouts     map[string]*layout // by table

	trap func(step, file string) // for tests: called at each step of each file

	mu      sync.Mutex
	files   map[string]File // by name; those this Dir has written, so that Finish need not read them
	durable map[string]bool // folders whose own names this Dir has synced
}

// Open returns the dataset of a job, which need not exist yet: folders are made
// with the first part. If there are parts or a manifest of another spec, the
// error says which option differs.
func Open(output, job string, spec puzzle.Spec) (*Dir, error) {
	if err := puzzle.CheckJob(job); err != nil {
		return nil, err
	}
	if err := CheckSpec(spec); err != nil {
		return nil, err
	}
	layouts, err := newLayouts(spec)
	if err != nil {
		return nil, err
	}
	d := &Dir{output: output, job: job, spec: spec, options: optionsOf(spec), layouts: layouts, files: make(map[string]File), durable: make(map[string]bool)}
	m, err := ReadManifest(d.Path())
	switch {
	case err == nil:
		err = d.checkSpec(m.Spec)
	case errors.Is(err, fs.ErrNotExist):
		_, err = d.Committed()
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Path returns the dataset's folder.
func (d *Dir) Path() string { return filepath.Join(d.output, "job="+d.job) }

func (d *Dir) path(name string) string { return filepath.Join(d.Path(), filepath.FromSlash(name)) }

// tempName is the folder, below the output, of what readers must not see.
const tempName = ".tmp"

func (d *Dir) tempDir() string { return filepath.Join(d.output, tempName) }

func (d *Dir) checkSpec(o Options) error {
	if diff := o.difference(d.options); diff != "" {
		return fmt.Errorf("job %s exists in %s with other options: %s", d.job, d.output, diff)
	}
	return nil
}

// Clean removes what processes that died have left of this job. What a living one
// is writing stays.
func (d *Dir) Clean() error {
	left, err := filepath.Glob(filepath.Join(escape(d.tempDir()), d.job+".*.tmp"))
	if err != nil {
		return fmt.Errorf("look for temporary files: %w", err)
	}
	for _, path := range left {
		if err := removeLeft(path); err != nil {
			return fmt.Errorf("remove temporary file: %w", err)
		}
	}
	return nil
}

// escape makes a path a pattern that matches only itself.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// temp creates a temporary file. Its name has the job and never ends in .parquet.
// It must stay open until it has its name: see hold.
func (d *Dir) temp(table, name string) (*os.File, error) {
	f, err := createTemp(d.tempDir(), d.job+"."+table+"."+name+".*.tmp")
	if err != nil {
		return nil, err
	}
	d.reach(stepCreated, name)
	return f, nil
}

// createTemp creates a temporary file, which this process holds.
func createTemp(folder, pattern string) (*os.File, error) {
	for tries := 0; ; tries++ {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return nil, fmt.Errorf("create temporary folder: %w", err)
		}
		f, err := os.CreateTemp(folder, pattern)
		if errors.Is(err, fs.ErrNotExist) && tries < 100 {
			continue // somebody else has removed the empty folder; in /proc it is never there
		}
		if err != nil {
			return nil, fmt.Errorf("create temporary file: %w", err)
		}
		if hold(f) {
			return f, nil
		}
		f.Close()
		os.Remove(f.Name()) // if it is there at all
	}
}

// The steps by which a file comes to its name. At each of them a process may
// die: the next one finds the file as it must be, or not at all.
const (
	stepCreated = "created" // the temporary file, empty
	stepWritten = "written" // its content
	stepSynced  = "synced"  // its content, on the disk
	stepLinked  = "linked"  // under its name
	stepDurable = "durable" // its name, on the disk
)

// reach says that a file has come to a step.
func (d *Dir) reach(step, file string) {
	if d.trap != nil {
		d.trap(step, file)
	}
}

// Committed returns what the committed parts say about themselves, sorted by
// part. A part without its results file is not committed, whatever else of it
// may be there.
func (d *Dir) Committed() ([]Footer, error) {
	names, err := filepath.Glob(filepath.Join(escape(d.Path()), tableResults, "part-*.parquet"))
	if err != nil {
		return nil, fmt.Errorf("look for parts: %w", err)
	}
	var footers []Footer
	for _, path := range names {
		footer, err := d.readFooter(path, tableResults)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if partName(footer.Part) != filepath.Base(path) {
			return nil, fmt.Errorf("read %s: it is part %d", path, footer.Part)
		}
		footers = append(footers, footer)
	}
	slices.SortFunc(footers, func(a, b Footer) int { return a.Part - b.Part })
	return footers, nil
}

// readFooter reads what a part's file says about itself and checks it against
// the Dir and the file's rows.
func (d *Dir) readFooter(path, table string) (Footer, error) {
	in, err := os.Open(path)
	if err != nil {
		return Footer{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return Footer{}, err
	}
	f, wrong := d.layouts[table].open(in, info.Size())
	if wrong != nil {
		// Another spec has another layout: say so rather than what it breaks.
		if f, err = openLoose(in, info.Size()); err != nil {
			return Footer{}, wrong
		}
	}
	footer, err := footerOf(f)
	if err != nil {
		return Footer{}, err
	}
	if footer.Job != d.job || footer.Table != table {
		return Footer{}, fmt.Errorf("it is %s of job %s", footer.Table, footer.Job)
	}
	if err := d.checkSpec(footer.Spec); err != nil {
		return Footer{}, err
	}
	if wrong != nil {
		return Footer{}, wrong
	}
	if f.NumRows() != footer.Rows || len(f.RowGroups()) > footer.Chunks {
		return Footer{}, fmt.Errorf("%d rows in %d row groups, want %d rows in at most %d", f.NumRows(), len(f.RowGroups()), footer.Rows, footer.Chunks)
	}
	return footer, nil
}

// publish gives a finished temporary file its name, which no other file may
// have, and makes the name durable.
func (d *Dir) publish(t *tableFile) error {
	file, err := t.file()
	if err != nil {
		return err
	}
	if err := d.link(t.temp.Name(), file); err != nil {
		return err
	}
	d.mu.Lock()
	d.files[file.Name] = file
	d.mu.Unlock()
	return nil
}

// link is put-if-absent: name the temporary file, or find the same content there.
func (d *Dir) link(temp string, file File) error {
	path := d.path(file.Name)
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	if err := os.Chmod(temp, 0o644); err != nil { // CreateTemp makes files that only we may read
		return fmt.Errorf("publish %s: %w", file.Name, err)
	}
	err := os.Link(temp, path)
	if errors.Is(err, fs.ErrExist) {
		err = nil
		there, size, sumErr := sumFile(path)
		if sumErr != nil {
			return fmt.Errorf("compare with existing %s: %w", path, sumErr)
		}
		if there != file.SHA256 || size != file.Bytes {
			return fmt.Errorf("%s exists with other content", path)
		}
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", file.Name, err)
	}
	d.reach(stepLinked, file.Name)
	if err := d.syncName(folder); err != nil {
		return fmt.Errorf("publish %s: %w", file.Name, err)
	}
	d.reach(stepDurable, file.Name)
	return nil
}

// syncName makes the names in a folder durable, and the first time those of the
// folder and the ones above, which may be new.
func (d *Dir) syncName(folder string) error {
	d.mu.Lock()
	known := d.durable[folder]
	d.mu.Unlock()
	dirs := []string{folder}
	if !known {
		dirs = slices.Compact([]string{folder, d.Path(), d.output})
	}
	for _, dir := range dirs {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	d.mu.Lock()
	d.durable[folder] = true
	d.mu.Unlock()
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// sumFile returns a file's SHA-256 in hex and its size.
func sumFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	return sumOf(f)
}

// sumOf is sumFile of an open file, which it closes.
func sumOf(f io.ReadCloser) (sum string, size int64, err error) {
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
