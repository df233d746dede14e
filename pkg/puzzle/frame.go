package puzzle

import (
	"fmt"
	"strings"
)

// Frame says what a judge's input has around its boards.
type Frame struct {
	Count  bool   // before the boards, a line with their number
	Name   bool   // before each board, a line with its name, which is its id
	Square bool   // a grid's header is one number: rows and columns
	End    string // behind the boards, a line of just this text; empty for none
}

// ParseFrame reads words with commas between them, such as "name,end=the end".
func ParseFrame(text string) (f Frame, err error) {
	for word := range strings.SplitSeq(text, ",") {
		end, isEnd := strings.CutPrefix(word, "end=")
		switch {
		case word == "count" && !f.Count:
			f.Count = true
		case word == "name" && !f.Name:
			f.Name = true
		case word == "square" && !f.Square:
			f.Square = true
		case isEnd && f.End == "" && end != "" && strings.TrimSpace(end) == end:
			f.End = end
		default:
			return Frame{}, fmt.Errorf("frame %q: word %q: want some of count, name, square and end=TEXT", text, word)
		}
	}
	return f, nil
}

// String returns the form that ParseFrame reads; it is empty for no frame.
func (f Frame) String() string {
	var words []string
	for _, w := range []struct {
		has  bool
		word string
	}{{f.Count, "count"}, {f.Name, "name"}, {f.Square, "square"}, {f.End != "", "end=" + f.End}} {
		if w.has {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ",")
}
