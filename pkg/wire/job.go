package wire

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Job is the record of a job. The producer writes it.
type Job struct {
	ID   string
	Spec puzzle.Spec

	// Epoch counts the drives of the corpus that have begun. As part of a
	// message's ID it keeps the broker from taking a re-sent chunk for a copy of
	// a lost one.
	Epoch uint32

	Totals *Totals // nil until the end of the corpus, fixed afterwards
	Origin *Origin // of the latest drive; nil where nobody else could drive the job

	// Retry is the latest drive that is to make parts again because of rejects for
	// which that may help, 0 for none.
	Retry uint32
}

// Origin is where a job's corpus is and how it was handed over.
type Origin struct {
	Host      string
	Directory string   // absolute; what Paths start from
	Paths     []string // as given; - is standard input
	Flags     []string // of flipmill submit, for people
	Lane      string
	Window    int // parts, at least 1
}

// Totals is what is known at the end of a corpus.
type Totals struct {
	Records      int64
	Chunks       int64
	CorpusSHA256 [sha256.Size]byte
	Format       string   // corpus format, as found
	Sources      []Source // in the order they were read

	// PartsSHA256 is the SumParts of all parts. It is what tells apart two drives
	// of a corpus that changed between them: each may have made some of the parts.
	PartsSHA256 [sha256.Size]byte
}

// Source is one file of a corpus.
type Source struct {
	Name   string            // as given
	Bytes  int64             // as stored, before decompression
	SHA256 [sha256.Size]byte // of those bytes
}

// AppendJob appends the bytes of j to dst.
func AppendJob(dst []byte, j *Job) ([]byte, error) {
	if err := puzzle.CheckJob(j.ID); err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	m := &pb.Job{Id: j.ID, Spec: fromSpec(&j.Spec), Epoch: j.Epoch, Retry: j.Retry}
	if j.Totals != nil {
		m.Totals = fromTotals(j.Totals)
	}
	if j.Origin != nil {
		m.Origin = fromOrigin(j.Origin)
	}
	dst, err := appendMessage(dst, m)
	if err != nil {
		return nil, fmt.Errorf("encode job %s: %w", j.ID, err)
	}
	return dst, nil
}

// ParseJob reads what AppendJob writes.
func ParseJob(data []byte) (*Job, error) {
	var m pb.Job
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	if err := puzzle.CheckJob(m.Id); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	j := &Job{ID: m.Id, Epoch: m.Epoch, Retry: m.Retry}
	if m.Spec == nil {
		return nil, fmt.Errorf("decode job %s: no spec", j.ID)
	}
	if err := toSpec(&j.Spec, m.Spec); err != nil {
		return nil, fmt.Errorf("decode job %s: %w", j.ID, err)
	}
	if m.Totals != nil {
		j.Totals = new(Totals)
		if err := toTotals(j.Totals, m.Totals); err != nil {
			return nil, fmt.Errorf("decode job %s: totals: %w", j.ID, err)
		}
	}
	if m.Origin != nil {
		if m.Origin.Window < 1 {
			return nil, fmt.Errorf("decode job %s: origin: a window of %d parts, want at least 1", j.ID, m.Origin.Window)
		}
		j.Origin = toOrigin(m.Origin)
	}
	return j, nil
}

func fromSpec(s *puzzle.Spec) *pb.Spec {
	m := &pb.Spec{
		Rule:        s.Rule.String(),
		Target:      s.Target.String(),
		SearchLimit: s.SearchLimit,
		Columns:     s.Columns,
		Cells:       s.Cells,
		Compression: s.Compression,
		PartChunks:  int64(s.PartChunks),
		Format:      s.Format,
		Rows:        uint32(s.Size.Rows),
		Cols:        uint32(s.Size.Cols),
		MaxLine:     int64(s.MaxLine),
		Fields:      s.Fields.String(),
		Keep:        s.Keep,
		Frame:       s.Frame.String(),
		ColumnMajor: s.ColumnMajor,
		Generate:    s.Generate.String(),
	}
	if s.Symbols != (puzzle.Symbols{}) {
		m.Symbols = s.Symbols.String()
	}
	return m
}

func toSpec(s *puzzle.Spec, m *pb.Spec) (err error) {
	if s.Rule, err = puzzle.ParseRule(m.Rule); err != nil {
		return err
	}
	if s.Target, err = puzzle.ParseTarget(m.Target); err != nil {
		return err
	}
	if m.Symbols != "" {
		if s.Symbols, err = puzzle.ParseSymbols(m.Symbols); err != nil {
			return err
		}
	}
	if m.Generate != "" {
		if s.Generate, err = puzzle.ParseGenerate(m.Generate); err != nil {
			return err
		}
	}
	if m.Frame != "" {
		if s.Frame, err = puzzle.ParseFrame(m.Frame); err != nil {
			return err
		}
	}
	if m.Fields != "" {
		if s.Fields, err = puzzle.ParseFields(m.Fields); err != nil {
			return err
		}
	}
	if m.Rows != 0 || m.Cols != 0 {
		s.Size = puzzle.Size{Rows: int(m.Rows), Cols: int(m.Cols)}
		if err := s.Rule.CheckSize(s.Size); err != nil {
			return err
		}
	}
	if m.SearchLimit < 0 {
		return fmt.Errorf("search limit %d", m.SearchLimit)
	}
	if m.MaxLine < 0 {
		return fmt.Errorf("longest line of %d bytes", m.MaxLine)
	}
	if m.PartChunks < 1 {
		return fmt.Errorf("%d chunks in a part, want at least 1", m.PartChunks)
	}
	s.SearchLimit, s.PartChunks, s.MaxLine = m.SearchLimit, int(m.PartChunks), int(m.MaxLine)
	s.Columns, s.Cells, s.Compression, s.Format, s.Keep = m.Columns, m.Cells, m.Compression, m.Format, m.Keep
	s.ColumnMajor = m.ColumnMajor
	return nil
}

func fromTotals(t *Totals) *pb.Totals {
	m := &pb.Totals{
		Records:      t.Records,
		Chunks:       t.Chunks,
		CorpusSha256: t.CorpusSHA256[:],
		Format:       t.Format,
		Sources:      make([]*pb.Source, len(t.Sources)),
		PartsSha256:  t.PartsSHA256[:],
	}
	for i := range t.Sources {
		s := &t.Sources[i]
		m.Sources[i] = &pb.Source{Name: []byte(s.Name), Bytes: s.Bytes, Sha256: s.SHA256[:]}
	}
	return m
}

func toTotals(t *Totals, m *pb.Totals) (err error) {
	if err := (Count{Chunks: m.Chunks, Records: m.Records}).validate(); err != nil {
		return err
	}
	t.Records, t.Chunks, t.Format = m.Records, m.Chunks, m.Format
	if t.CorpusSHA256, err = digest32("digest of the corpus", m.CorpusSha256); err != nil {
		return err
	}
	if t.PartsSHA256, err = digest32("digest of the parts", m.PartsSha256); err != nil {
		return err
	}
	t.Sources = slices.Grow(t.Sources, len(m.Sources))
	for _, s := range m.Sources {
		if s.Bytes < 0 {
			return errors.New("a source of negative size")
		}
		digest, err := digest32("digest of a source", s.Sha256)
		if err != nil {
			return err
		}
		t.Sources = append(t.Sources, Source{Name: string(s.Name), Bytes: s.Bytes, SHA256: digest})
	}
	return nil
}

func fromOrigin(o *Origin) *pb.Origin {
	m := &pb.Origin{
		Host: validText(o.Host), Directory: []byte(o.Directory), Flags: make([]string, len(o.Flags)),
		Lane: o.Lane, Window: int64(o.Window),
	}
	for _, path := range o.Paths {
		m.Paths = append(m.Paths, []byte(path))
	}
	for i, flag := range o.Flags {
		m.Flags[i] = validText(flag)
	}
	return m
}

func toOrigin(m *pb.Origin) *Origin {
	o := &Origin{Host: m.Host, Directory: string(m.Directory), Flags: m.Flags, Lane: m.Lane, Window: int(m.Window)}
	for _, path := range m.Paths {
		o.Paths = append(o.Paths, string(path))
	}
	return o
}
