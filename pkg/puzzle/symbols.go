package puzzle

import (
	"fmt"
	"strings"
)

// Symbols maps the characters of a corpus to cells. The zero Symbols maps
// nothing; make one with ParseSymbols.
type Symbols struct {
	On, Off byte // the characters of a cell that is 1 and of one that is 0
}

// Digits returns the symbols of flipmill's own text form: 1 and 0.
func Digits() Symbols { return Symbols{On: '1', Off: '0'} }

// ParseSymbols reads two pairs CHAR=CELL, such as "b=1,w=0". A character is one
// printable ASCII character other than blank, '/', '|', ',' and '=', which have
// their own meaning in corpora or here.
func ParseSymbols(text string) (Symbols, error) {
	var s Symbols
	pairs := strings.Split(text, ",")
	if len(pairs) != 2 {
		return Symbols{}, fmt.Errorf("symbols %q: want two pairs, such as b=1,w=0", text)
	}
	for _, pair := range pairs {
		if len(pair) != 3 || pair[1] != '=' || pair[0] <= ' ' || pair[0] > '~' || strings.IndexByte("/|,=", pair[0]) >= 0 {
			return Symbols{}, fmt.Errorf("symbols %q: pair %q: want one character, '=', and 1 or 0", text, pair)
		}
		switch pair[2] {
		case '1':
			s.On = pair[0]
		case '0':
			s.Off = pair[0]
		default:
			return Symbols{}, fmt.Errorf("symbols %q: pair %q: a cell is 1 or 0", text, pair)
		}
	}
	if s.On == 0 || s.Off == 0 || s.On == s.Off {
		return Symbols{}, fmt.Errorf("symbols %q: want two different characters, one for 1 and one for 0", text)
	}
	return s, nil
}

// Wanted says what a cell can be, for people.
func (s Symbols) Wanted() string {
	if s == (Symbols{On: '1', Off: '0'}) {
		return "1 or 0"
	}
	return fmt.Sprintf("%c (1) or %c (0)", s.On, s.Off)
}

// String returns the form that ParseSymbols reads.
func (s Symbols) String() string { return fmt.Sprintf("%c=1,%c=0", s.On, s.Off) }
