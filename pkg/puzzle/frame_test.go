package puzzle_test

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

func TestParseFrame(t *testing.T) {
	for _, text := range []string{"count", "count,name,square,end=END", "name,end=0 0", "end=="} {
		f, err := puzzle.ParseFrame(text)
		if err != nil || f.String() != text {
			t.Errorf("%q reads as %q, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "counts", "count,count", "end=", "end= a", "end=a,end=b", "count, name"} {
		if f, err := puzzle.ParseFrame(text); err == nil {
			t.Errorf("%q reads as %q", text, f)
		}
	}
}
