package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Dir is the dataset of one job: the folder <output>/job=<id>, on a disk or in a
// bucket. Temporary files are outside of whatever readers look at, on a disk in
// <output>/.tmp.
type Dir struct {
	output, job string
	store       store
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
	if d.store, err = openStore(output); err != nil {
		return nil, err
	}
	m, err := readManifest(d.store, d.name(manifestName))
	switch {
	case err == nil:
		err = d.checkSpec(m.Spec)
	case errors.Is(err, fs.ErrNotExist):
		_, err = d.Committed()
	default:
		err = fmt.Errorf("read manifest of %s: %w", d.Path(), err)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Path returns the dataset's folder.
func (d *Dir) Path() string { return Path(d.output, d.job) }

// path returns what the file of the dataset is called outside, name in the store.
func (d *Dir) path(name string) string { return inside(d.Path(), name) }
func (d *Dir) name(name string) string { return folderOf(d.job) + "/" + name }

// tempName is the folder, below the output, of what readers must not see.
const tempName = ".tmp"

func (d *Dir) tempDir() string { return filepath.Join(d.output, tempName) }

func (d *Dir) checkSpec(o Options) error {
	if diff := o.difference(d.options); diff != "" {
		return fmt.Errorf("job %s exists in %s with other options: %s; name another --job or remove it", d.job, d.output, diff)
	}
	return nil
}

// Clean removes what processes that died have left of this job. What a living one
// is writing stays.
func (d *Dir) Clean() error {
	if err := d.store.clean(d.job); err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	return nil
}

// temp creates a temporary file. Its name has the job and never ends in .parquet.
// It must stay open until it has its name: see hold.
func (d *Dir) temp(table, name string) (*os.File, error) {
	f, err := d.store.create(d.job + "." + table + "." + name + ".*.tmp")
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
	entries, err := listParts(d.store, d.name(tableResults))
	if err != nil {
		return nil, fmt.Errorf("look for parts of %s: %w", d.Path(), err)
	}
	var footers []Footer
	for _, e := range entries {
		name := tableResults + "/" + e.Name()
		footer, err := d.readFooter(name, tableResults)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", d.path(name), err)
		}
		if partName(footer.Part) != e.Name() {
			return nil, fmt.Errorf("read %s: it is part %d", d.path(name), footer.Part)
		}
		footers = append(footers, footer)
	}
	slices.SortFunc(footers, func(a, b Footer) int { return a.Part - b.Part })
	return footers, nil
}

// readFooter reads what a part's file says about itself and checks it against
// the Dir and the file's rows.
func (d *Dir) readFooter(name, table string) (Footer, error) {
	in, _, err := openFile(d.store, d.name(name))
	if err != nil {
		return Footer{}, err
	}
	defer in.Close()
	return d.footerOf(in, table)
}

// footerOf is readFooter of an open file, which may yet have no name.
func (d *Dir) footerOf(in file, table string) (Footer, error) {
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
	if err := d.link(t.temp, file); err != nil {
		return err
	}
	d.mu.Lock()
	d.files[file.Name] = file
	d.mu.Unlock()
	return nil
}

// link is put-if-absent: name the temporary file, or find the same content there.
func (d *Dir) link(temp *os.File, file File) error {
	err := d.store.put(temp, d.name(file.Name))
	if errors.Is(err, fs.ErrExist) {
		err = nil
		there, size, sumErr := sumFile(d.store, d.name(file.Name))
		if sumErr != nil {
			return fmt.Errorf("compare with existing %s: %w", d.path(file.Name), sumErr)
		}
		if there != file.SHA256 || size != file.Bytes {
			return fmt.Errorf("%s exists with other content", d.path(file.Name))
		}
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", file.Name, err)
	}
	d.reach(stepLinked, file.Name)
	if err := d.syncName(path.Dir(d.name(file.Name))); err != nil {
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
	folders := []string{folder}
	if !known {
		folders = slices.Compact([]string{folder, folderOf(d.job), "."})
	}
	if err := d.store.sync(folders...); err != nil {
		return err
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

// sumOf is sumFile of an open file, which it closes.
func sumOf(f io.ReadCloser) (sum string, size int64, err error) {
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}
