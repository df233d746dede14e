package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Task asks a worker to solve one chunk.
type Task struct {
	ID    ID
	Chunk puzzle.Chunk
}

// AppendTask appends the bytes of t to dst.
func AppendTask(dst []byte, t *Task) ([]byte, error) {
	if err := t.ID.Validate(); err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	dst, err := appendMessage(dst, &pb.Task{
		Job:     t.ID.Job,
		Chunk:   t.ID.Chunk,
		Part:    t.ID.Part,
		Epoch:   t.ID.Epoch,
		Content: fromChunk(&t.Chunk),
	})
	if err != nil {
		return nil, fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	return dst, nil
}

// ParseTask reads what AppendTask writes.
func ParseTask(data []byte) (*Task, error) {
	t := new(Task)
	if err := t.Parse(data); err != nil {
		return nil, err
	}
	return t, nil
}

// Parse makes t what AppendTask has written. It uses the memory of the boards and
// lines that were in t, for those who read one task after the other.
func (t *Task) Parse(data []byte) error {
	var m pb.Task
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decode task: %w", err)
	}
	t.ID = ID{Job: m.Job, Chunk: m.Chunk, Part: m.Part, Epoch: m.Epoch}
	var masks []uint16
	if len(t.Chunk.Runs) > 0 { // behind the first run's masks are those of the others
		masks = t.Chunk.Runs[0].Masks[:0]
	}
	t.Chunk = puzzle.Chunk{Lines: t.Chunk.Lines[:0], Runs: t.Chunk.Runs[:0]}
	if err := t.ID.Validate(); err != nil {
		return fmt.Errorf("decode task: %w", err)
	}
	if m.Content == nil {
		return fmt.Errorf("decode task %s: no content", t.ID)
	}
	if err := toChunk(&t.Chunk, m.Content, masks); err != nil {
		return fmt.Errorf("decode task %s: %w", t.ID, err)
	}
	return nil
}

func fromChunk(c *puzzle.Chunk) *pb.Chunk {
	m := &pb.Chunk{
		First:   c.First,
		Spans:   make([]*pb.Span, len(c.Spans)),
		Runs:    make([]*pb.Run, len(c.Runs)),
		Rejects: make([]*pb.Reject, len(c.Rejects)),

		Generated: int64(c.Generated),
	}
	m.LineSteps, m.LineCounts = puzzle.LineSteps(c.Lines)
	for i, s := range c.Spans {
		m.Spans[i] = &pb.Span{Source: []byte(s.Source), Records: int64(s.Records)}
	}
	for i, r := range c.Runs {
		masks := puzzle.AppendMasks(make([]byte, 0, r.MaskBytes()*len(r.Masks)), r.Masks, r.MaskBytes())
		m.Runs[i] = &pb.Run{Rows: uint32(r.Rows), Cols: uint32(r.Cols), Count: uint32(r.Count), Masks: masks}
	}
	for i, r := range c.Rejects {
		m.Rejects[i] = &pb.Reject{Offset: r.Index - c.First, Reason: string(r.Reason), Detail: []byte(r.Detail), Raw: r.Raw}
	}
	for i := range c.Labels {
		m.Labels = append(m.Labels, fromLabels(&c.Labels[i]))
	}
	return m
}

// toChunk fills c; masks has memory for those of its runs. The order matters: runs and rejects are worth their bytes,
// so the number of records they make is what the other lists are held against.
func toChunk(c *puzzle.Chunk, m *pb.Chunk, masks []uint16) error {
	c.First = m.First
	if err := toGenerated(c, m); err != nil {
		return err
	}
	if err := toRuns(c, m.Runs, masks); err != nil {
		return err
	}
	records := int64(c.Boards() + len(m.Rejects))
	if records == 0 {
		return errors.New("a chunk without records")
	}
	if _, ok := addUp(m.First, records); !ok {
		return fmt.Errorf("%d records from puzzle_index %d: out of range", records, m.First)
	}
	if err := toRejects(c, m.Rejects, records); err != nil {
		return err
	}
	if err := toSpans(c, m.Spans, records); err != nil {
		return err
	}
	if err := toLabels(c, m.Labels, records); err != nil {
		return err
	}
	return toLines(c, m.LineSteps, m.LineCounts, records)
}

// maxGenerated bounds what a few bytes can ask a worker for.
const maxGenerated = 1 << 16

func toGenerated(c *puzzle.Chunk, m *pb.Chunk) error {
	switch {
	case m.Generated < 0 || m.Generated > maxGenerated:
		return fmt.Errorf("%d generated boards, want at most %d", m.Generated, maxGenerated)
	case m.Generated > 0 && len(m.Runs)+len(m.Rejects)+len(m.LineSteps)+len(m.LineCounts)+len(m.Labels) > 0:
		return errors.New("generated boards among others")
	}
	c.Generated = int(m.Generated)
	return nil
}

func toRuns(c *puzzle.Chunk, runs []*pb.Run, masks []uint16) error {
	c.Runs = slices.Grow(c.Runs, len(runs))
	for i, m := range runs {
		size := puzzle.Size{Rows: int(m.Rows), Cols: int(m.Cols)}
		if err := size.Validate(); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		if want := int64(size.MaskBytes()) * int64(size.BoardMasks()) * int64(m.Count); int64(len(m.Masks)) != want {
			return fmt.Errorf("run %d: %d boards of %s have %d bytes of masks, want %d", i, m.Count, size, len(m.Masks), want)
		}
		n := len(masks)
		masks = appendMasks(masks, size, m.Masks)
		run := puzzle.Run{Size: size, Count: int(m.Count), Masks: masks[n:]}
		if err := run.Validate(); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		c.Runs = append(c.Runs, run)
	}
	return nil
}

func toRejects(c *puzzle.Chunk, rejects []*pb.Reject, records int64) error {
	c.Rejects = slices.Grow(c.Rejects, len(rejects))
	last := int64(-1)
	for i, m := range rejects {
		if m.Offset <= last || m.Offset >= records {
			return fmt.Errorf("reject %d: offset %d after %d in a chunk of %d records", i, m.Offset, last, records)
		}
		last = m.Offset
		if err := validateReason(m.Reason); err != nil {
			return fmt.Errorf("reject %d: %w", i, err)
		}
		if len(m.Raw) > puzzle.MaxRaw {
			return fmt.Errorf("reject %d: %d bytes of raw text, want at most %d", i, len(m.Raw), puzzle.MaxRaw)
		}
		c.Rejects = append(c.Rejects, puzzle.Reject{
			Index:  c.First + m.Offset,
			Reason: puzzle.Reason(m.Reason),
			Detail: string(m.Detail),
			Raw:    m.Raw,
		})
	}
	return nil
}

// validateReason accepts reasons that this version does not know: a newer
// producer may have more, and the dataset can hold them.
func validateReason(reason string) error {
	if len(reason) < 1 || len(reason) > 32 || strings.Trim(reason, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return fmt.Errorf("reason %.40q: want 1 to 32 lower-case letters or '_'", reason)
	}
	return nil
}

func toSpans(c *puzzle.Chunk, spans []*pb.Span, records int64) error {
	c.Spans = slices.Grow(c.Spans, len(spans))
	sum := int64(0)
	for i, m := range spans {
		var ok bool
		if sum, ok = addUp(sum, m.Records); !ok || sum > records {
			return fmt.Errorf("span %d: more than the chunk's %d records", i, records)
		}
		c.Spans = append(c.Spans, puzzle.Span{Source: string(m.Source), Records: int(m.Records)})
	}
	if sum != records {
		return fmt.Errorf("spans of %d records in a chunk of %d", sum, records)
	}
	return nil
}

func fromLabels(l *puzzle.Labels) *pb.Labels {
	m := &pb.Labels{Text: l.Text}
	last := uint32(0)
	for _, end := range l.Ends {
		if len(l.Text) > 0 {
			m.Lengths = append(m.Lengths, end-last)
		}
		last = end
	}
	return m
}

// toLabels undoes fromLabels. A list of no text costs no bytes, so their number
// is bounded by what a job may have.
func toLabels(c *puzzle.Chunk, labels []*pb.Labels, records int64) error {
	if len(labels) > 1+puzzle.MaxKeep {
		return fmt.Errorf("%d lists of labels, want at most %d", len(labels), 1+puzzle.MaxKeep)
	}
	for i, m := range labels {
		l := puzzle.Labels{Text: m.Text, Ends: make([]uint32, records)}
		if n := len(m.Lengths); n > 0 && int64(n) != records || n == 0 && len(m.Text) > 0 {
			return fmt.Errorf("labels %d: %d of %d records", i, n, records)
		}
		end := uint32(0)
		for k, n := range m.Lengths {
			if n > puzzle.MaxLabel || int(n) > len(m.Text)-int(end) {
				return fmt.Errorf("labels %d: record %d has %d bytes", i, k, n)
			}
			end += n
			l.Ends[k] = end
			if !utf8.Valid(l.At(k)) {
				return fmt.Errorf("labels %d: record %d is not UTF-8", i, k)
			}
		}
		if int(end) != len(m.Text) {
			return fmt.Errorf("labels %d: %d bytes of text, of which %d belong to records", i, len(m.Text), end)
		}
		c.Labels = append(c.Labels, l)
	}
	return nil
}

// toLines undoes puzzle.LineSteps.
func toLines(c *puzzle.Chunk, steps, counts []int64, records int64) error {
	if len(steps) != len(counts) {
		return fmt.Errorf("%d line steps with %d counts", len(steps), len(counts))
	}
	if len(steps) == 0 {
		return nil
	}
	sum := int64(0)
	for _, n := range counts {
		if n < 1 || n > records-sum {
			return fmt.Errorf("lines for more than %d records", records)
		}
		sum += n
	}
	if sum != records {
		return fmt.Errorf("lines for %d of %d records", sum, records)
	}
	c.Lines = slices.Grow(c.Lines, int(records))
	line := int64(0)
	for i, step := range steps {
		for range counts[i] {
			if line += step; line < 1 { // a sum that overflows is negative
				return fmt.Errorf("record %d: line number %d", len(c.Lines), line)
			}
			c.Lines = append(c.Lines, line)
		}
	}
	return nil
}

// appendMasks undoes puzzle.AppendMasks.
func appendMasks(dst []uint16, size puzzle.Size, b []byte) []uint16 {
	have, n := len(dst), len(b)/size.MaskBytes()
	dst = slices.Grow(dst, n)[:have+n]
	masks := dst[have:]
	if size.MaskBytes() == 1 {
		for ; len(masks) >= 8; masks, b = masks[8:], b[8:] {
			x := binary.LittleEndian.Uint64(b)
			masks[0], masks[1], masks[2], masks[3] = uint16(x&255), uint16(x>>8&255), uint16(x>>16&255), uint16(x>>24&255)
			masks[4], masks[5], masks[6], masks[7] = uint16(x>>32&255), uint16(x>>40&255), uint16(x>>48&255), uint16(x>>56)
		}
		for i := range masks {
			masks[i] = uint16(b[i])
		}
		return dst
	}
	for ; len(masks) >= 4; masks, b = masks[4:], b[8:] {
		x := binary.LittleEndian.Uint64(b)
		masks[0], masks[1], masks[2], masks[3] = uint16(x), uint16(x>>16), uint16(x>>32), uint16(x>>48)
	}
	for i := range masks {
		masks[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return dst
}
