package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// footerKey is the key-value pair in which every part says what it is: the JSON
// form of Footer.
const footerKey = "flipmill"

// Footer is what a part's file says about itself. Results and rejects of a part
// differ only in Table and Rows.
type Footer struct {
	SchemaVersion int     `json:"schema_version"`
	Job           string  `json:"job"`
	Table         string  `json:"table"` // results or rejects
	Part          int     `json:"part"`
	FirstChunk    int64   `json:"first_chunk"`
	Chunks        int     `json:"chunks"`
	FirstIndex    int64   `json:"first_index"` // puzzle_index of the part's first record
	Records       int64   `json:"records"`     // results and rejects together
	Rows          int64   `json:"rows"`        // of this table
	InputSHA256   string  `json:"input_sha256"`
	Digests       []byte  `json:"digests"` // of the part's chunks, end to end; base64 in the file
	Tally         []byte  `json:"tally"`   // of the whole part, as package tally writes it; base64 in the file
	Spec          Options `json:"spec"`
}

// Options is a job's spec as files spell it.
type Options struct {
	Rule        string   `json:"rule"`
	Target      string   `json:"target"`
	SearchLimit int64    `json:"search_limit"`
	Columns     []string `json:"columns"`
	Cells       string   `json:"cells"`
	Compression string   `json:"compression"`
	PartChunks  int      `json:"part_chunks"`
	Format      string   `json:"format"`
	Size        string   `json:"size"`    // ROWSxCOLS; empty where the corpus shows it
	Symbols     string   `json:"symbols"` // such as b=1,w=0
	MaxLine     int      `json:"max_line"`
	Frame       string   `json:"frame,omitempty"`        // such as name,end=END
	ColumnMajor bool     `json:"column_major,omitempty"` //
	Fields      string   `json:"fields,omitempty"`       // such as board=grid,id=key
	Keep        []string `json:"keep,omitempty"`
	Generate    string   `json:"generate,omitempty"` // such as solvable,count=1000,seed=7
}

// optionsOf returns the file form of a spec.
func optionsOf(s puzzle.Spec) Options {
	o := Options{
		Rule: s.Rule.String(), Target: s.Target.String(), SearchLimit: s.SearchLimit,
		Columns: append([]string{}, s.Columns...), Cells: s.Cells, Compression: s.Compression, PartChunks: s.PartChunks,
		Format: s.Format, MaxLine: s.MaxLine, Frame: s.Frame.String(), ColumnMajor: s.ColumnMajor, Fields: s.Fields.String(), Keep: s.Keep,
	}
	o.Generate = s.Generate.String()
	if s.Size != (puzzle.Size{}) {
		o.Size = s.Size.String()
	}
	if s.Symbols != (puzzle.Symbols{}) {
		o.Symbols = s.Symbols.String()
	}
	return o
}

// ParseSpec returns the spec that o is the file form of.
func (o Options) ParseSpec() (s puzzle.Spec, err error) {
	s = puzzle.Spec{
		SearchLimit: o.SearchLimit, Columns: o.Columns, Cells: o.Cells, Compression: o.Compression,
		PartChunks: o.PartChunks, Format: o.Format, MaxLine: o.MaxLine, ColumnMajor: o.ColumnMajor, Keep: o.Keep,
	}
	if s.Rule, err = puzzle.ParseRule(o.Rule); err != nil {
		return s, err
	}
	if s.Target, err = puzzle.ParseTarget(o.Target); err != nil {
		return s, err
	}
	if o.Size != "" {
		if s.Size, err = puzzle.ParseSize(o.Size); err != nil {
			return s, err
		}
	}
	if o.Symbols != "" {
		if s.Symbols, err = puzzle.ParseSymbols(o.Symbols); err != nil {
			return s, err
		}
	}
	if o.Generate != "" {
		if s.Generate, err = puzzle.ParseGenerate(o.Generate); err != nil {
			return s, err
		}
	}
	if o.Frame != "" {
		if s.Frame, err = puzzle.ParseFrame(o.Frame); err != nil {
			return s, err
		}
	}
	if o.Fields != "" {
		if s.Fields, err = puzzle.ParseFields(o.Fields); err != nil {
			return s, err
		}
	}
	return s, CheckSpec(s)
}

// Difference describes the first option in which what was asked for before differs
// from what is wanted now; it is empty if there is none.
func Difference(before, now puzzle.Spec) string { return optionsOf(before).difference(optionsOf(now)) }

// difference describes the first option in which o differs from want; it is
// empty if there is none.
func (o Options) difference(want Options) string {
	for _, d := range [...]struct {
		name      string
		got, want any
	}{
		{"rule", o.Rule, want.Rule},
		{"target", o.Target, want.Target},
		{"search-limit", o.SearchLimit, want.SearchLimit},
		{"columns", fmt.Sprint(o.Columns), fmt.Sprint(want.Columns)},
		{"cells", o.Cells, want.Cells},
		{"compression", o.Compression, want.Compression},
		{"part-chunks", o.PartChunks, want.PartChunks},
		{"format", o.Format, want.Format},
		{"size", o.Size, want.Size},
		{"symbols", o.Symbols, want.Symbols},
		{"max-line", o.MaxLine, want.MaxLine},
		{"frame", o.Frame, want.Frame},
		{"column-major", o.ColumnMajor, want.ColumnMajor},
		{"fields", o.Fields, want.Fields},
		{"generate", o.Generate, want.Generate},
		{"keep", fmt.Sprint(o.Keep), fmt.Sprint(want.Keep)},
	} {
		if d.got != d.want {
			return fmt.Sprintf("%s is %v, not %v", d.name, orNone(d.got), orNone(d.want))
		}
	}
	return ""
}

func orNone(v any) any {
	if v == "" {
		return "empty"
	}
	return v
}

// decodeStrict reads one JSON value without unknown fields.
func decodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("data after the end")
	}
	return nil
}

// footerOf reads a part's footer.
func footerOf(f *parquet.File) (Footer, error) {
	text, ok := f.Lookup(footerKey)
	if !ok {
		return Footer{}, fmt.Errorf("no key %q in the file's footer", footerKey)
	}
	var footer Footer
	if err := decodeStrict([]byte(text), &footer); err != nil {
		return Footer{}, fmt.Errorf("read key %q of the file's footer: %w", footerKey, err)
	}
	return footer, footer.check()
}

// check reports a footer that no part has.
func (f Footer) check() error {
	switch {
	case f.SchemaVersion != SchemaVersion:
		return fmt.Errorf("schema version %d, want %d", f.SchemaVersion, SchemaVersion)
	case f.Part < 0 || f.FirstChunk != int64(f.Part)*int64(f.Spec.PartChunks) || f.Chunks < 0 || f.Chunks > f.Spec.PartChunks:
		return fmt.Errorf("part %d of %d chunks from %d on", f.Part, f.Chunks, f.FirstChunk)
	case f.FirstIndex < 0 || f.Records < 0 || f.Rows < 0 || f.Rows > f.Records || f.FirstIndex > maxIndex-f.Records:
		return fmt.Errorf("%d rows of %d records from %d on", f.Rows, f.Records, f.FirstIndex)
	}
	if len(f.Digests) != f.Chunks*sha256.Size || f.InputSHA256 != inputSum(f.Digests) {
		return fmt.Errorf("input_sha256 %q is not that of the digests of %d chunks", f.InputSHA256, f.Chunks)
	}
	counts, err := tally.Parse(f.Tally)
	if err != nil {
		return err
	}
	if n := counts.Boards() + counts.Rejected(); n != f.Records {
		return fmt.Errorf("tally of %d records, want %d", n, f.Records)
	}
	rows := counts.Boards()
	switch {
	case f.Table == tableRejects:
		rows = counts.Rejected()
	case len(f.Spec.Columns) == 0:
		rows = 0
	}
	if rows != f.Rows {
		return fmt.Errorf("tally of %d rows, want %d", rows, f.Rows)
	}
	return nil
}

// inputSum returns the SHA-256 of a part's input: of the digests of its chunks.
func inputSum(digests []byte) string {
	sum := sha256.Sum256(digests)
	return hex.EncodeToString(sum[:])
}

const maxIndex = 1 << 62 // of a record; sums of two indexes cannot overflow
