package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
)

// Kind says how a key's value is written.
type Kind struct {
	Type   string   // one word for the help, such as "int"
	Want   string   // what a value looks like: "a whole number from 0 to 1024"
	Values []string // the only values, where they can be listed
	Usual  []string // some of the values, where the others can not

	set func(text string) error // checks the text and keeps the value
}

// parsed is the kind whose values a function reads. The function's error says
// what was found and what was expected.
func parsed[T any](dst *T, typ, want string, parse func(string) (T, error)) Kind {
	return Kind{Type: typ, Want: want, set: func(text string) error {
		value, err := parse(text)
		if err == nil {
			*dst = value
		}
		return err
	}}
}

// optional also takes the empty value, which leaves the field as it is.
func optional(k Kind) Kind {
	set := k.set
	k.Want += ", or empty"
	k.set = func(text string) error {
		if text == "" {
			return nil
		}
		return set(text)
	}
	return k
}

// choice is one of the listed names. The names stand for values of any type.
func choice[T any](dst *T, names []string, parse func(string) (T, error)) Kind {
	want := alternatives(names)
	k := parsed(dst, "name", want, func(text string) (value T, err error) {
		if !slices.Contains(names, text) {
			return value, fmt.Errorf("%q: want %s%s", text, want, DidYouMean(text, names))
		}
		return parse(text)
	})
	k.Values = names
	return k
}

// name is one of the listed names, kept as it is.
func name(dst *string, names ...string) Kind {
	return choice(dst, names, func(text string) (string, error) { return text, nil })
}

// path names a file, which whoever uses it opens.
func path(dst *string) Kind {
	return parsed(dst, "file", "the name of a file", func(text string) (string, error) { return text, nil })
}

// matching compiles its pattern when there is a value: each verb makes a table.
func matching(dst *string, typ, want, pattern string) Kind {
	return parsed(dst, typ, want, func(text string) (string, error) {
		if !regexp.MustCompile(pattern).MatchString(text) {
			return "", fmt.Errorf("%q: want %s", text, want)
		}
		return text, nil
	})
}

// folder is one in which files are made.
func folder(dst *string) Kind {
	const want = "a folder, or s3://BUCKET/FOLDER"
	return parsed(dst, "dir", want, func(text string) (string, error) {
		folder, inBucket := strings.CutPrefix(text, "s3://") // what is probably meant by s3:/ or s3:, too; such a folder is ./s3:
		if text == "" || strings.Contains(folder, "://") || !inBucket && strings.HasPrefix(text, "s3:") || inBucket && (folder == "" || folder[0] == '/') {
			return "", fmt.Errorf("%q: want %s", text, want)
		}
		if inBucket {
			text = strings.TrimRight(text, "/")
		}
		return text, nil
	})
}

// spec says which boards are generated.
func spec(dst *puzzle.Generate) Kind {
	return parsed(dst, "spec", puzzle.GenerateForm, func(text string) (puzzle.Generate, error) {
		g, err := puzzle.ParseGenerate(text)
		if err != nil {
			err = fmt.Errorf("%w%s", err, MeantSpec(text))
		}
		return g, err
	})
}

// MeantSpec returns "; did you mean X?" for the first word of generated boards' spec
// that there is not.
func MeantSpec(text string) string {
	words := []string{puzzle.GenerateAll, puzzle.GenerateRandom, puzzle.GenerateSolvable, puzzle.GeneratePresses, puzzle.GenerateMoves, puzzle.GenerateDistinct, puzzle.GenerateOrbits}
	for word := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(word, "=")
		if !slices.Contains(words, name) {
			return DidYouMean(name, words)
		}
		words = []string{"count", "first", "seed"}
	}
	return ""
}

// rule is a rule of the puzzle.
func rule(dst *puzzle.Rule) Kind {
	usual := []string{"plus", "fridge", "king", "x", "plus-torus", "king-torus", "x-torus"}
	k := parsed(dst, "rule", "plus, fridge, king, x or stencil:abc/def/ghi, all but fridge optionally with -torus", func(text string) (puzzle.Rule, error) {
		r, err := puzzle.ParseRule(text)
		if base, torus := strings.CutSuffix(text, "-torus"); err != nil && !(torus && slices.Contains(usual, base)) {
			err = fmt.Errorf("%w%s", err, DidYouMean(text, usual)) // of the others the error says what is wanted
		}
		return r, err
	})
	k.Usual = usual
	return k
}

func boolean(dst *bool) Kind {
	return parsed(dst, "bool", "true or false", func(text string) (bool, error) {
		if text != "true" && text != "false" {
			return false, fmt.Errorf("%q: want true or false", text)
		}
		return text == "true", nil
	})
}

func integer[T int | int64](dst *T, low, high T) Kind {
	want := fmt.Sprintf("a whole number from %d to %d", low, high)
	return parsed(dst, "int", want, func(text string) (T, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(low) || n > int64(high) {
			return 0, fmt.Errorf("%q: want %s", text, want)
		}
		return T(n), nil
	})
}

// ordinal is a number that may be 0, or absent, which leaves nil.
func ordinal(dst **int64) Kind {
	var n int64
	k := integer(&n, 0, 1<<62)
	return optional(parsed(dst, k.Type, k.Want, func(text string) (*int64, error) { return &n, k.set(text) }))
}

// duration is a time with its unit: a bare number would leave the unit to be guessed.
func duration(dst *time.Duration, low, high time.Duration) Kind {
	want := fmt.Sprintf("a time with its unit, such as 90s or 5m, from %v to %v", low, high)
	return parsed(dst, "duration", want, func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d < low || d > high {
			return 0, fmt.Errorf("%q: want %s", text, want)
		}
		return d, nil
	})
}

// byteCount is a number of bytes, optionally in KiB, MiB or GiB.
func byteCount(dst *int, low, high int) Kind {
	want := fmt.Sprintf("a number of bytes, such as 65536 or 64KiB, from %d to %d", low, high)
	return parsed(dst, "bytes", want, func(text string) (int, error) {
		digits, shift := text, 0
		for i, unit := range []string{"KiB", "MiB", "GiB"} {
			if cut, ok := strings.CutSuffix(text, unit); ok {
				digits, shift = cut, 10*(i+1)
			}
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		if n <<= shift; err != nil || n < int64(low) || n > int64(high) {
			return 0, fmt.Errorf("%q: want %s", text, want)
		}
		return int(n), nil
	})
}

// list is one or more different words, written with commas or, in a file, as a
// YAML sequence. The word "all" alone stands for nil, "none" for an empty list.
func list(dst *[]string, want string) Kind {
	return parsed(dst, "list", want, func(text string) ([]string, error) {
		if text == "all" {
			return nil, nil
		}
		if text == "none" {
			return []string{}, nil
		}
		return words(text)
	})
}

// words reads one or more different words with commas between them.
func words(text string) ([]string, error) {
	words := strings.Split(text, listSeparator)
	for i, w := range words {
		if w = strings.TrimSpace(w); w == "" || slices.Contains(words[:i], w) {
			return nil, fmt.Errorf("%q: %q is empty or stands twice: want names separated by commas", text, w)
		}
		words[i] = w
	}
	return words, nil
}

const listSeparator = ","

// alternatives writes "a, b or c".
func alternatives(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// DidYouMean returns "; did you mean X?" for the nearest of the words, or else for
// the few that begin with the text, or nothing where there are none.
func DidYouMean(text string, words []string) string { return didYouMean(nearest(text, words)) }

func didYouMean(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", alternatives(words))
}

// nearest returns the words that were probably meant, if any.
func nearest(text string, words []string) []string {
	if text == "" {
		return nil
	}
	best, least := "", len(text)/3+2 // one slip in three letters, and always one
	for _, w := range words {
		if d := distance(folded(text), folded(w)); d < least {
			best, least = w, d
		}
	}
	if best != "" {
		return []string{best}
	}
	begin := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.HasPrefix(w, text) })
	const few = 3
	if len(begin) > few || len(text) < 2 {
		return nil
	}
	return begin
}

// folded is a word without what people type either way: capitals, and - or _.
func folded(word string) string { return strings.ReplaceAll(strings.ToLower(word), "_", "-") }

// distance is Levenshtein's: the fewest insertions, deletions and replacements
// of a byte that turn a into b. O(len(a)·len(b)) time, one row of memory.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from a's prefix so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
