package puzzle_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

func TestLabels(t *testing.T) {
	var l puzzle.Labels
	for _, texts := range [][]string{{"a", "", "\u00e9t\u00e9"}, {}, {""}, {"", "b"}} {
		l.Reset()
		for _, text := range texts {
			l.Add([]byte(text))
		}
		got := []string{}
		for i := range l.Len() {
			got = append(got, string(l.At(i)))
		}
		if !slices.Equal(got, texts) {
			t.Errorf("got %q, want %q", got, texts)
		}
	}
}

func TestCheckKeep(t *testing.T) {
	ours := []string{"board", "id"}
	for _, keep := range [][]string{nil, {"level"}, {"Level 2", "author.name", "\u96e3\u5ea6", "a_b-c"}} {
		if err := puzzle.CheckKeep(keep, ours); err != nil {
			t.Error(err)
		}
	}
	many := strings.Split(strings.Repeat("x", 33), "")
	for _, keep := range [][]string{{"board"}, {"ID"}, {"a", "b", "A"}, {""}, {" a"}, {"a/b"}, {"a\nb"}, {"a\xff"}, {strings.Repeat("x", 65)}, many} {
		if puzzle.CheckKeep(keep, ours) == nil {
			t.Errorf("%q: accepted", keep)
		}
	}
}

func TestParseFields(t *testing.T) {
	for _, text := range []string{"board=grid", "board=a b,id=key,rows=h,cols=w", "id=x=y"} {
		f, err := puzzle.ParseFields(text)
		if err != nil || f.String() != text {
			t.Errorf("%q reads as %q, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "board", "board=", "level=x", "id=a,id=b", "board=a,", "id=a, rows=b"} {
		if f, err := puzzle.ParseFields(text); err == nil {
			t.Errorf("%q reads as %q", text, f)
		}
	}
	if got, want := (puzzle.Fields{ID: "key"}).Named(), (puzzle.Fields{Board: "board", ID: "key", Rows: "rows", Cols: "cols"}); got != want {
		t.Errorf("named: %+v", got)
	}
}
