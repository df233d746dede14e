package wire

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/flipmill/flipmill/pkg/wire/internal/pb"
	"google.golang.org/protobuf/proto"
)

// Result is what a worker made of one task: rows, or a failure. A message
// carries the SHA-256 of both files; ParseResult checks them.
type Result struct {
	ID       ID
	First    int64             // puzzle_index of the first record
	Boards   int64             // rows of Results, unless the job has no columns
	Rejected int64             // rows of Rejects
	Digest   [sha256.Size]byte // of the chunk's content, see puzzle.Chunk
	Results  []byte            // Parquet file with one row group; empty where there is no row
	Rejects  []byte            // Parquet file with one row group; may be empty if Rejected is 0
	Tally    []byte            // the chunk's statistics, in the encoding of package tally
	Failure  string            // why there are no rows, and the job must stop; the fields above but ID are then not sent
}

// Records returns the number of records in the chunk.
func (r *Result) Records() int64 { return r.Boards + r.Rejected }

// AppendResult appends the bytes of r to dst.
func AppendResult(dst []byte, r *Result) ([]byte, error) {
	if err := r.ID.Validate(); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	m := &pb.Result{Job: r.ID.Job, Chunk: r.ID.Chunk, Part: r.ID.Part, Epoch: r.ID.Epoch}
	if r.Failure != "" {
		m.Outcome = &pb.Result_Failure{Failure: &pb.Failure{Message: validText(r.Failure)}}
	} else {
		m.Outcome = &pb.Result_Solved{Solved: fromSolved(r)}
	}
	dst, err := appendMessage(dst, m)
	if err != nil {
		return nil, fmt.Errorf("encode result %s: %w", r.ID, err)
	}
	return dst, nil
}

func fromSolved(r *Result) *pb.Solved {
	results, rejects := sha256.Sum256(r.Results), sha256.Sum256(r.Rejects)
	return &pb.Solved{
		First:         r.First,
		Boards:        r.Boards,
		Rejected:      r.Rejected,
		Digest:        r.Digest[:],
		Results:       r.Results,
		Rejects:       r.Rejects,
		ResultsSha256: results[:],
		RejectsSha256: rejects[:],
		Tally:         r.Tally,
	}
}

// ParseResult reads what AppendResult writes.
func ParseResult(data []byte) (*Result, error) {
	var m pb.Result
	if err := proto.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("decode result: %w", err)
	}
	r := &Result{ID: ID{Job: m.Job, Chunk: m.Chunk, Part: m.Part, Epoch: m.Epoch}}
	if err := r.ID.Validate(); err != nil {
		return nil, fmt.Errorf("decode result: %w", err)
	}
	if err := toOutcome(r, &m); err != nil {
		return nil, fmt.Errorf("decode result %s: %w", r.ID, err)
	}
	return r, nil
}

func toOutcome(r *Result, m *pb.Result) error {
	if f := m.GetFailure(); f != nil {
		if f.Message == "" {
			return errors.New("a failure without a message")
		}
		r.Failure = f.Message
		return nil
	}
	s := m.GetSolved()
	if s == nil {
		return errors.New("no outcome")
	}
	records, ok := addUp(s.Boards, s.Rejected)
	if !ok || records == 0 {
		return fmt.Errorf("%d boards and %d rejected records", s.Boards, s.Rejected)
	}
	if _, ok := addUp(s.First, records); !ok {
		return fmt.Errorf("%d records from puzzle_index %d: out of range", records, s.First)
	}
	if s.Rejected > 0 && len(s.Rejects) == 0 {
		return errors.New("rows without their file")
	}
	if err := checkSum("results", s.Results, s.ResultsSha256); err != nil {
		return err
	}
	if err := checkSum("rejects", s.Rejects, s.RejectsSha256); err != nil {
		return err
	}
	r.First, r.Boards, r.Rejected = s.First, s.Boards, s.Rejected
	r.Results, r.Rejects, r.Tally = s.Results, s.Rejects, s.Tally
	var err error
	r.Digest, err = digest32("chunk digest", s.Digest)
	return err
}

func checkSum(what string, file, sum []byte) error {
	want, err := digest32("checksum of "+what, sum)
	if err != nil {
		return err
	}
	if sha256.Sum256(file) != want {
		return fmt.Errorf("checksum mismatch in %s", what)
	}
	return nil
}
