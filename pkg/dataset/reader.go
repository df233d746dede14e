package dataset

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sync"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// Reader reads the committed parts of a dataset, while others are being made and
// afterwards. It remembers what parts say about themselves, so that looking again
// costs as much as there is new. It is safe for concurrent use.
type Reader struct {
	dir *Dir

	mu    sync.Mutex
	parts []readPart // ascending
	total *tally.Tally
}

// readPart is a committed part that a Reader knows.
type readPart struct {
	info   fs.FileInfo // of its results
	footer Footer
	counts *tally.Tally
}

// NewReader returns a reader of a job's dataset, of which nothing need be there
// yet. One that was compacted has larger parts than the spec says.
func NewReader(output, job string, spec puzzle.Spec) (*Reader, error) {
	if m, err := ReadManifest(Path(output, job)); err == nil {
		spec.PartChunks = m.Spec.PartChunks
	}
	dir, err := Open(output, job, spec)
	if err != nil {
		return nil, err
	}
	return &Reader{dir: dir, total: new(tally.Tally)}, nil
}

// Committed returns the number of parts that are committed now, and their
// statistics, which must not be changed.
func (r *Reader) Committed() (parts int, counts *tally.Tally, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.look()
	return len(r.parts), r.total, err
}

// look finds out what has changed. A part is never changed, but a retry replaces
// all of a dataset by another, of which some parts are the same files.
func (r *Reader) look() error {
	entries, err := listParts(r.dir.store, r.dir.name(tableResults))
	if err != nil {
		return fmt.Errorf("look for parts: %w", err)
	}
	known := map[string]readPart{}
	for _, p := range r.parts {
		known[partName(p.footer.Part)] = p
	}
	var parts []readPart
	changed := false
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("look at part: %w", err)
		}
		p := known[e.Name()]
		if p.info == nil || !same(p.info, info) {
			if p, err = r.read(e.Name(), info); err != nil {
				return fmt.Errorf("read %s: %w", r.dir.path(tableResults+"/"+e.Name()), err)
			}
			changed = true
		}
		parts = append(parts, p)
	}
	if !changed && len(parts) == len(r.parts) {
		return nil
	}
	slices.SortFunc(parts, func(a, b readPart) int { return a.footer.Part - b.footer.Part })
	r.parts, r.total = parts, new(tally.Tally)
	for _, p := range parts {
		r.total.Merge(p.counts)
	}
	return nil
}

// same reports whether what was looked at twice is one file, or one version of an
// object.
func same(a, b fs.FileInfo) bool {
	if version, ok := a.Sys().(string); ok {
		return version == b.Sys()
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

func (r *Reader) read(name string, info fs.FileInfo) (p readPart, err error) {
	p.info = info
	if p.footer, err = r.dir.readFooter(tableResults+"/"+name, tableResults); err == nil {
		p.counts, err = tally.Parse(p.footer.Tally)
	}
	if err == nil && partName(p.footer.Part) != name {
		err = fmt.Errorf("it is part %d", p.footer.Part)
	}
	p.footer.Tally = nil // there are many parts
	return p, err
}

// Find is as the function Find for what is committed now. It passes by the parts
// whose statistics say that no row of theirs meets the filter, so rare rows are
// found soon. It ends, with an error, when ctx does.
func (r *Reader) Find(ctx context.Context, want Filter) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		if err := r.find(ctx, want, func(row Row) bool { return yield(row, nil) }); err != nil {
			yield(Row{}, fmt.Errorf("read rows of %s: %w", r.dir.Path(), err))
		}
	}
}

func (r *Reader) find(ctx context.Context, want Filter, yield func(Row) bool) error {
	r.mu.Lock()
	err := r.look()
	parts := r.parts
	r.mu.Unlock()
	if err != nil {
		return err
	}
	files, err := fs.Sub(r.dir.store, folderOf(r.dir.job))
	if err != nil {
		return err
	}
	f := &finder{verifier: &verifier{path: r.dir.Path(), files: files, spec: r.dir.spec, layouts: r.dir.layouts}, want: want, yield: yield}
	if err := f.check(); err != nil {
		return err
	}
	for _, p := range parts {
		if !want.amongst(p.counts) {
			continue
		}
		names := map[string]string{tableResults: tableResults + "/" + partName(p.footer.Part)}
		if p.counts.Rejected() > 0 {
			names[tableRejects] = tableRejects + "/" + partName(p.footer.Part)
		}
		if err := f.part(ctx, p.footer.FirstIndex, p.footer.Records, names); err != nil || f.stopped {
			return err
		}
	}
	return nil
}

// amongst reports whether a wanted row may be among those that were counted.
func (w Filter) amongst(counts *tally.Tally) bool {
	if w.Status == Rejected {
		return counts.Rejected() > 0
	}
	if w.Moves == nil && w.Status == "" {
		return true
	}
	for _, row := range counts.Rows() {
		if (w.Moves == nil || row.Status == puzzle.Solved && int64(row.MinMoves) == *w.Moves) &&
			(w.Status == "" || row.Status.String() == w.Status) {
			return true
		}
	}
	return false
}
