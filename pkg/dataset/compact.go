package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/tally"
)

// Compact puts the dataset that its job leaves with larger parts, of at most so
// many chunks, into the place of the finished one at path. Every part becomes one
// of several whole ones, whose row groups are copied as they are. What it replaces
// is returned too; it is the same manifest where there is nothing to do.
//
// A process that dies in it leaves the old dataset or the new one, and the next
// Compact removes what else it left.
//
// It calls merged, unless that is nil, with the number of records that are in the new
// parts, and how many there are.
func Compact(path string, partChunks int, merged func(records, of int64)) (was, is *Manifest, err error) {
	return compact(path, &compaction{partChunks: partChunks, merged: merged})
}

// CompactInto is Compact which makes the new dataset in another output, also where there
// is nothing to merge, and leaves the old one. Either may be in a bucket. A process that
// dies in it leaves parts without a manifest, which the next CompactInto takes as they
// are.
func CompactInto(output, path string, partChunks int, merged func(records, of int64)) (was, is *Manifest, err error) {
	return compact(path, &compaction{into: output, partChunks: partChunks, merged: merged})
}

func compact(path string, c *compaction) (was, is *Manifest, err error) {
	was, is, err = c.run(path)
	if err != nil {
		return nil, nil, fmt.Errorf("compact %s: %w", path, err)
	}
	return was, is, nil
}

// compaction is one call of Compact, or of CompactInto.
type compaction struct {
	into       string // empty where it is the place of the old dataset
	partChunks int
	trap       func(step, file string)
	merged     func(records, of int64)

	old *Dir
	was *Manifest
}

func (c *compaction) run(path string) (was, is *Manifest, err error) {
	done, err := c.begin(path)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if c.into != "" {
		is, _, err = c.make(c.into)
		return c.was, is, err
	}
	if c.many() < 2 || len(c.was.Parts) < 2 {
		return c.was, c.was, nil
	}
	from, _, err := sumFile(c.old.store, c.old.name(manifestName))
	if err != nil {
		return nil, nil, err
	}
	beside := c.old.besideDir(besideCompact)
	is, to, err := c.make(beside)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(beside)) // it may be as large as the old one
	}
	if err := errors.Join(c.old.mark(besideCompact, from, to), c.old.settle(besideCompact)); err != nil {
		return nil, nil, err
	}
	if now, _, err := sumFile(c.old.store, c.old.name(manifestName)); err != nil || now != to {
		return nil, nil, errors.Join(errors.New("another dataset has taken its place meanwhile"), err)
	}
	return c.was, is, nil
}

// many is how many of the old parts become one.
func (c *compaction) many() int { return max(1, c.partChunks/c.was.Spec.PartChunks) }

// make makes the new dataset in an output and returns its manifest, and the checksum of
// that.
func (c *compaction) make(output string) (is *Manifest, sum string, err error) {
	many, spec := c.many(), c.old.spec
	spec.PartChunks *= many
	d, err := Open(output, c.old.job, spec)
	if err != nil {
		return nil, "", err
	}
	d.trap = c.trap
	for first := 0; first < len(c.was.Parts); first += many {
		parts := c.was.Parts[first:min(first+many, len(c.was.Parts))]
		if err := c.merge(d, parts); err != nil {
			return nil, "", err
		}
		if last := parts[len(parts)-1]; c.merged != nil {
			c.merged(last.FirstIndex+last.Records, c.was.Input.Records)
		}
	}
	if is, err = d.Finish(c.was.Input); err != nil {
		return nil, "", err
	}
	sum, _, err = sumFile(d.store, d.name(manifestName))
	return is, sum, err
}

// begin opens the dataset. If a new one is to take its place, begin removes what one who
// died has left, and no other process can begin until done.
func (c *compaction) begin(path string) (done func(), err error) {
	if c.into == "" && object.Is(path) {
		return nil, errors.New("objects cannot take each other's place in one step: name another output with --into")
	}
	output, job, err := splitPath(path)
	if err != nil {
		return nil, err
	}
	if c.into != "" {
		return func() {}, c.open(path, output, job)
	}
	// Where a change of place ends between two renames, there is no dataset.
	if err := (&Dir{output: output, job: job}).settle(besideCompact); err != nil {
		return nil, err
	}
	if err := c.open(path, output, job); err != nil {
		return nil, err
	}
	c.old.trap = c.trap
	lock, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	done = func() { lock.Close() }
	if errors.Is(flock(lock), syscall.EWOULDBLOCK) {
		done()
		return nil, errors.New("another process is at it")
	}
	if err := os.RemoveAll(c.old.besideDir(besideCompact)); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// open opens the finished dataset at path, which is that of a job in an output.
func (c *compaction) open(path, output, job string) (err error) {
	if c.was, err = ReadManifest(path); err != nil {
		return err
	}
	spec, err := c.was.Spec.ParseSpec()
	if err != nil {
		return err
	}
	c.old, err = Open(output, job, spec)
	return err
}

// splitPath undoes Path.
func splitPath(path string) (output, job string, err error) {
	folder := path
	if !object.Is(path) {
		if folder, err = filepath.Abs(path); err != nil {
			return "", "", err
		}
		folder = filepath.ToSlash(folder)
	}
	folder = strings.TrimRight(folder, "/")
	at := strings.LastIndexByte(folder, '/')
	job, ok := strings.CutPrefix(folder[at+1:], folderOf(""))
	if !ok {
		return "", "", noDataset(path, fs.ErrNotExist)
	}
	return folder[:max(at, 1)], job, nil
}

// merge makes one part of several, which follow each other.
func (c *compaction) merge(beside *Dir, parts []Files) error {
	p, err := beside.NewPart(int(parts[0].FirstChunk / int64(beside.spec.PartChunks)))
	if err != nil {
		return err
	}
	defer p.Abort()
	for _, old := range parts {
		if err := c.take(p, old); err != nil {
			return fmt.Errorf("part %d: %w", old.Part, err)
		}
	}
	_, err = p.Commit()
	return err
}

// take adds a part of the old dataset to a new one. Its files must be what the
// manifest says, so that nothing that is damaged gets a sound checksum.
func (c *compaction) take(p *Part, old Files) error {
	footer, err := c.copy(p.results, old.Results)
	if err != nil {
		return err
	}
	if old.Rejects != nil {
		if p.rejects == nil {
			if p.rejects, err = p.dir.create(tableRejects, partName(p.footer.Part)); err != nil {
				return err
			}
		}
		if _, err := c.copy(p.rejects, *old.Rejects); err != nil {
			return err
		}
	}
	counts, err := tally.Parse(footer.Tally)
	if err != nil {
		return err
	}
	p.tally.Merge(counts)
	f := &p.footer
	if f.Chunks == 0 {
		f.FirstIndex = footer.FirstIndex
	}
	f.Digests = append(f.Digests, footer.Digests...)
	f.Chunks += footer.Chunks
	f.Records += footer.Records
	return nil
}

// copy appends the row groups of an old file.
func (c *compaction) copy(to *tableFile, file File) (Footer, error) {
	sum, size, err := sumFile(c.old.store, c.old.name(file.Name))
	if err != nil {
		return Footer{}, err
	}
	if sum != file.SHA256 || size != file.Bytes {
		return Footer{}, fmt.Errorf("%s is not the file that the manifest lists; flipmill verify says what is wrong", file.Name)
	}
	in, _, err := openFile(c.old.store, c.old.name(file.Name))
	if err != nil {
		return Footer{}, err
	}
	defer in.Close()
	f, err := to.open(in, size)
	if err != nil {
		return Footer{}, fmt.Errorf("%s: %w", file.Name, err)
	}
	footer, err := footerOf(f)
	if err == nil {
		err = to.append(f)
	}
	if err != nil {
		return Footer{}, fmt.Errorf("%s: %w", file.Name, err)
	}
	return footer, nil
}
