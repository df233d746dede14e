package puzzle

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Labels is a list of texts, end to end: what the records of a corpus are
// called by the corpus itself. An empty text is no value, null in a dataset.
type Labels struct {
	Text []byte
	Ends []uint32 // where in Text each of them ends
}

// Limits of labels. They keep a record with all of its labels far below the
// size of a message.
const (
	MaxLabel = 1 << 10 // bytes of one
	MaxKeep  = 32      // columns of them besides the id
)

// Reset empties the list and keeps its memory.
func (l *Labels) Reset() { l.Text, l.Ends = l.Text[:0], l.Ends[:0] }

// Len returns the number of texts.
func (l *Labels) Len() int { return len(l.Ends) }

// Add appends a text.
func (l *Labels) Add(text []byte) {
	l.Text = append(l.Text, text...)
	l.Ends = append(l.Ends, uint32(len(l.Text)))
}

// At returns text i; it is valid until the list changes.
func (l *Labels) At(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = l.Ends[i-1]
	}
	return l.Text[start:l.Ends[i]]
}

// CheckKeep reports names that no columns of results can have, beside those in
// ours: too many or doubled ones, and characters that readers of Parquet stumble
// over. Case does not tell names apart, because it does not in SQL.
func CheckKeep(keep, ours []string) error {
	if len(keep) > MaxKeep {
		return fmt.Errorf("keep: %d columns, want at most %d", len(keep), MaxKeep)
	}
	for i, name := range keep {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		odd := func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-. ", r)
		}
		switch {
		case slices.ContainsFunc(ours, same):
			return fmt.Errorf("keep %q: the results have a column of that name already", name)
		case slices.ContainsFunc(keep[:i], same):
			return fmt.Errorf("keep %q: it is named twice", name)
		case name == "" || len(name) > 64 || strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name:
			return fmt.Errorf("keep %.80q: want 1 to 64 bytes of letters, digits, '_', '-', '.' and blanks", name)
		}
	}
	return nil
}

// Fields says under which names a corpus with named fields has what the readers
// look for. An empty name is the role's own: board, id, rows or cols.
type Fields struct {
	Board, ID, Rows, Cols string
}

// roles returns the roles and where their names are kept, in order.
func (f *Fields) roles() []struct {
	role string
	name *string
} {
	return []struct {
		role string
		name *string
	}{{"board", &f.Board}, {"id", &f.ID}, {"rows", &f.Rows}, {"cols", &f.Cols}}
}

// ParseFields reads pairs ROLE=NAME, such as "board=grid,id=key".
func ParseFields(text string) (f Fields, err error) {
	for pair := range strings.SplitSeq(text, ",") {
		role, name, ok := strings.Cut(pair, "=")
		known := false
		for _, r := range f.roles() {
			if r.role == role && ok && name != "" && *r.name == "" {
				*r.name, known = name, true
			}
		}
		if !known {
			return Fields{}, fmt.Errorf("fields %q: pair %q: want board, id, rows or cols, '=', and the name in the corpus", text, pair)
		}
	}
	return f, nil
}

// String returns the form that ParseFields reads; it is empty where all names
// are the roles' own.
func (f Fields) String() string {
	var pairs []string
	for _, r := range f.roles() {
		if *r.name != "" {
			pairs = append(pairs, r.role+"="+*r.name)
		}
	}
	return strings.Join(pairs, ",")
}

// Named returns f with every name filled in.
func (f Fields) Named() Fields {
	for _, r := range f.roles() {
		if *r.name == "" {
			*r.name = r.role
		}
	}
	return f
}
