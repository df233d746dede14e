package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/tally"
)

// Chunk is what becomes of a chunk of records: its row groups, and what they
// were made of. Results and Rejects are what Encoder.Encode returned; they may
// come from an untrusted network.
type Chunk struct {
	First            int64             // puzzle_index of the first record
	Records          int               //
	Digest           [sha256.Size]byte // of the records, puzzle.Chunk.Digest
	Results, Rejects []byte            // Parquet files of one row group; empty where there are no rows
	Tally            *tally.Tally      // of the chunk's answers and rejects
}

// Part is a part being written: Add its chunks in order, then Commit, or Abort.
type Part struct {
	dir     *Dir
	footer  Footer // its counts grow with every chunk
	tally   tally.Tally
	results *tableFile
	rejects *tableFile // nil until there is a reject
}

// NewPart starts a part in temporary files.
func (d *Dir) NewPart(part int) (*Part, error) {
	if part < 0 {
		return nil, fmt.Errorf("part %d: want a number from 0 on", part)
	}
	p := &Part{dir: d, footer: Footer{
		SchemaVersion: SchemaVersion, Job: d.job, Part: part,
		FirstChunk: int64(part) * int64(d.spec.PartChunks), Digests: []byte{}, Spec: d.options,
	}}
	var err error
	if p.results, err = d.create(tableResults, partName(part)); err != nil {
		return nil, err
	}
	if part == 0 { // so that a pattern over rejects always finds a file
		if p.rejects, err = d.create(tableRejects, partName(part)); err != nil {
			p.Abort()
			return nil, err
		}
	}
	return p, nil
}

func partName(part int) string { return fmt.Sprintf("part-%05d.parquet", part) }

// Add appends the part's next chunk. After an error the part cannot be used
// except to Abort it.
func (p *Part) Add(c Chunk) error {
	if err := p.add(c); err != nil {
		return fmt.Errorf("part %d: chunk %d: %w", p.footer.Part, p.footer.FirstChunk+int64(p.footer.Chunks), err)
	}
	return nil
}

func (p *Part) add(c Chunk) error {
	f := &p.footer
	if f.Chunks == p.dir.spec.PartChunks {
		return fmt.Errorf("the part has its %d chunks", f.Chunks)
	}
	if f.Chunks == 0 {
		f.FirstIndex = c.First
	}
	boards, rejected := c.Tally.Boards(), c.Tally.Rejected()
	switch {
	case c.First != f.FirstIndex+f.Records || c.First < 0 || c.First > maxIndex:
		return fmt.Errorf("its first record is %d, want %d", c.First, f.FirstIndex+f.Records)
	case c.Records < 1 || boards > maxRows || rejected > maxRows || boards+rejected != int64(c.Records):
		return fmt.Errorf("%d boards and %d rejects of %d records", boards, rejected, c.Records)
	}
	rows := boards
	if rowless(p.dir.spec) {
		rows = 0
	}
	if err := p.results.copy(c.Results, rows); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if rejected > 0 && p.rejects == nil {
		var err error
		if p.rejects, err = p.dir.create(tableRejects, partName(f.Part)); err != nil {
			return err
		}
	}
	if p.rejects != nil {
		if err := p.rejects.copy(c.Rejects, rejected); err != nil {
			return fmt.Errorf("rejects: %w", err)
		}
	} else if len(c.Rejects) > 0 {
		return errors.New("rejects that are not counted")
	}
	p.tally.Merge(c.Tally)
	f.Digests = append(f.Digests, c.Digest[:]...)
	f.Chunks++
	f.Records += int64(c.Records)
	return nil
}

// Commit makes the part durable and visible: rejects first, results last. A part
// that is there with the same content is left as it is, so committing twice, or
// from two processes, is harmless; one with other content is an error. The
// chunks' messages may be dropped once Commit has returned without error.
func (p *Part) Commit() (Footer, error) {
	defer p.Abort()
	footer, err := p.commit()
	if err != nil {
		return Footer{}, fmt.Errorf("commit part %d: %w", p.footer.Part, err)
	}
	return footer, nil
}

func (p *Part) commit() (Footer, error) {
	p.footer.Tally = p.tally.Append(nil)
	p.footer.InputSHA256 = inputSum(p.footer.Digests)
	for _, t := range []*tableFile{p.rejects, p.results} {
		if t == nil {
			continue
		}
		footer := p.footer
		footer.Table, footer.Rows = t.table, t.rows
		text, err := json.Marshal(footer)
		if err != nil {
			return Footer{}, fmt.Errorf("write footer: %w", err)
		}
		if err := t.finish(footerKey, string(text)); err != nil {
			return Footer{}, fmt.Errorf("%s: %w", t.table, err)
		}
		read, err := p.dir.footerOf(t.temp, t.table)
		if err != nil {
			return Footer{}, fmt.Errorf("read back %s: %w", t.table, err)
		}
		if again, _ := json.Marshal(read); !bytes.Equal(again, text) {
			return Footer{}, fmt.Errorf("read back %s: another footer than was written", t.table)
		}
		p.footer.Table, p.footer.Rows = t.table, t.rows
	}
	for _, t := range []*tableFile{p.rejects, p.results} {
		if t == nil {
			continue
		}
		if err := p.dir.publish(t); err != nil {
			return Footer{}, err
		}
	}
	return p.footer, nil
}

// Abort removes the temporary files. It does nothing after Commit.
func (p *Part) Abort() {
	for _, t := range []*tableFile{p.rejects, p.results} {
		if t != nil {
			t.remove()
		}
	}
}

// tableFile is a Parquet file being written under a temporary name.
type tableFile struct {
	*layout
	dir    *Dir
	name   string
	temp   *os.File
	sum    hash.Hash
	writer *parquet.GenericWriter[any]
	rows   int64
}

// create starts a file of a table.
func (d *Dir) create(table, name string) (*tableFile, error) {
	layout := d.layouts[table]
	temp, err := d.temp(table, name)
	if err != nil {
		return nil, err
	}
	t := &tableFile{layout: layout, dir: d, name: name, temp: temp, sum: sha256.New()}
	t.writer = layout.writer(io.MultiWriter(temp, t.sum))
	return t, nil
}

// copy appends the one row group of a Parquet file verbatim. The file must have
// the given number of rows, and none at all if that is 0.
func (t *tableFile) copy(file []byte, rows int64) error {
	if rows == 0 {
		if len(file) > 0 {
			return fmt.Errorf("%d bytes for no rows", len(file))
		}
		return nil
	}
	f, err := t.open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	if n := len(f.RowGroups()); n != 1 || f.NumRows() != rows {
		return fmt.Errorf("%d rows in %d row groups, want %d rows in one", f.NumRows(), n, rows)
	}
	return t.append(f)
}

// append appends all row groups of a file verbatim.
func (t *tableFile) append(f *parquet.File) error {
	for i, group := range f.RowGroups() {
		err := guard(func() error {
			if err := t.checkCopyable(f, i); err != nil {
				return err
			}
			_, err := t.writer.WriteRowGroup(group)
			return err
		})
		if err != nil {
			return fmt.Errorf("copy row group %d: %w", i, err)
		}
	}
	t.rows += f.NumRows()
	return nil
}

// finish writes the footer and makes the temporary file durable. The file stays
// open, because it is held, until remove.
func (t *tableFile) finish(key, value string) error {
	t.writer.SetKeyValueMetadata(key, value)
	if err := t.writer.Close(); err != nil {
		return fmt.Errorf("write footer: %w", err)
	}
	t.dir.reach(stepWritten, t.name)
	if err := t.temp.Sync(); err != nil {
		return err
	}
	t.dir.reach(stepSynced, t.name)
	return nil
}

func (t *tableFile) remove() { t.dir.store.discard(t.temp) }

// file describes the finished file as it will be called.
func (t *tableFile) file() (File, error) {
	info, err := t.temp.Stat()
	if err != nil {
		return File{}, err
	}
	return File{
		Name: t.table + "/" + t.name, Rows: t.rows, Bytes: info.Size(),
		SHA256: hex.EncodeToString(t.sum.Sum(nil)),
	}, nil
}
