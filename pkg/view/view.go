// Package view is what people are told: of a job, from its records on the broker,
// and of a dataset, from its statistics. It is made here and nowhere else, so that
// verbs, status pages and reports say the same.
//
// Its values are plain data, made anew for each who asks; as JSON they are what the
// verbs print with --json.
package view

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Thousands writes a number with commas.
func Thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	out := make([]byte, 0, len(digits)+len(digits)/3)
	for i, d := range []byte(digits) {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			out = append(out, ',')
		}
		out = append(out, d)
	}
	return string(out)
}

// Times writes a number and what there are so many of, as in "2 parts".
func Times(n int, one, many string) string { return strconv.Itoa(n) + " " + Plural(n, one, many) }

// Plural returns the word for so many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Short writes a number in little room: 1500000 is 1.5M.
func Short(v float64) string {
	for _, unit := range [...]struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= unit.size*0.9995 {
			return strconv.FormatFloat(v/unit.size, 'g', 3, 64) + unit.name
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Share returns how much n is of a whole, which may be nothing.
func Share(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// Percent writes a share for people. What is not nothing, or not all, does not look as
// if it were.
func Percent(share float64) string {
	const digits = 0.00005 // less than that is rounded to nothing
	switch {
	case share > 0 && share < digits:
		return "<0.01%"
	case share < 1 && share >= 1-digits:
		return ">99.99%"
	}
	return fmt.Sprintf("%.2f%%", 100*share)
}

// Harmless is text of a corpus, or of another machine, in one line and without what a
// terminal might obey, or what changes the order in which the text around it is read.
func Harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
