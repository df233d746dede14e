package protocol_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flipmill/flipmill/pkg/wire"
)

// folder is the dataset of a job: what is in it is durable and never replaced.
type folder struct {
	rejects   map[int64][]*wire.Result // by part: written before the part is committed
	parts     map[int64][]*wire.Result
	manifest  *wire.Totals
	version   int   // of the corpus
	boards    int64 // as the statistics have them
	rejected  int64
	cancelled bool
}

func newFolder() *folder {
	return &folder{rejects: map[int64][]*wire.Result{}, parts: map[int64][]*wire.Result{}}
}

var errOtherContent = errors.New("exists with other content")

// same reports whether two lists of results have the same rows.
func same(a, b []*wire.Result) bool {
	return slices.EqualFunc(a, b, func(x, y *wire.Result) bool {
		return x.ID.Chunk == y.ID.Chunk && x.Boards == y.Boards && x.Rejected == y.Rejected && x.Digest == y.Digest
	})
}

// link writes a file unless it is there.
func link(files map[int64][]*wire.Result, part int64, chunks []*wire.Result) error {
	if there, ok := files[part]; ok && !same(there, chunks) {
		return fmt.Errorf("part %d %w", part, errOtherContent)
	}
	files[part] = chunks
	return nil
}

// stitch checks the chunks of a part as they are put together.
func stitch(chunks []*wire.Result) error {
	next := int64(-1)
	for _, r := range chunks {
		if next >= 0 && r.First != next {
			return fmt.Errorf("chunk %d: its first record is %d, want %d", r.ID.Chunk, r.First, next)
		}
		next = r.First + r.Records()
	}
	return nil
}

// mark returns what the ledger says of a part.
func mark(part int64, chunks []*wire.Result) wire.Part {
	var digests [][32]byte
	for _, r := range chunks {
		digests = append(digests, r.Digest)
	}
	return wire.Part{Number: part, Digest: wire.SumPart(digests)}
}

func count(chunks []*wire.Result) (c wire.Count) {
	for _, r := range chunks {
		c.Chunks++
		c.Records += r.Records()
	}
	return c
}

// finish writes statistics and manifest, from the parts.
func (f *folder) finish(totals *wire.Totals, version int) error {
	var all wire.Count
	f.boards, f.rejected = 0, 0
	for _, chunks := range f.parts {
		c := count(chunks)
		all.Chunks, all.Records = all.Chunks+c.Chunks, all.Records+c.Records
		for _, r := range chunks {
			f.boards, f.rejected = f.boards+r.Boards, f.rejected+r.Rejected
		}
	}
	if all.Chunks != totals.Chunks || all.Records != totals.Records {
		return fmt.Errorf("parts of %v, the corpus has %d records in %d chunks", all, totals.Records, totals.Chunks)
	}
	f.manifest, f.version = totals, version
	return nil
}

// folder returns the dataset that is being made of a job: its own or, where parts of a
// finished one are made again, which begins that, the one beside it.
func (j *job) folder(retry bool) *folder {
	j.settle()
	if retry && j.again == nil {
		j.again = newFolder()
		for part, rows := range j.disk.parts {
			if !slices.ContainsFunc(rows, func(r *wire.Result) bool { return r.Rejected > 0 }) {
				j.again.parts[part] = rows
			}
		}
	}
	if j.again != nil {
		return j.again
	}
	return j.disk
}

// settle puts a dataset that was made again, and is finished, into its place.
func (j *job) settle() {
	if j.again != nil && j.again.manifest != nil {
		j.disk, j.again = j.again, nil
	}
}

// keep keeps the record of a job in the output.
func (j *job) keep(rec *record) {
	copied := *rec
	j.kept = &copied
}
