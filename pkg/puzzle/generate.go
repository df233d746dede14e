package puzzle

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Generate says which boards a generated corpus has, instead of files. What the
// boards of each kind are, bit for bit, is said in docs/generate.md.
type Generate struct {
	Kind    string // one of GenerateKinds; empty where the corpus is not generated
	Presses int    // of GeneratePresses: how many there are; of GenerateMoves: the fewest that there may be
	Count   int64  // boards; 0 for all from First on, where their number is known
	First   int64  // number of the first board among those of the kind
	Seed    uint64 // of all but GenerateAll
}

// The kinds of generated boards.
const (
	GenerateAll      = "all"      // every board of a size, counted up
	GenerateRandom   = "random"   // uniform over all boards
	GenerateSolvable = "solvable" // uniform over the boards that reach the target
	GeneratePresses  = "presses"  // so many presses away from the target, at different cells
	GenerateMoves    = "moves"    // uniform over the boards that need so many presses to reach the target
	GenerateDistinct = "distinct" // every board of a size in a random order, none twice
	GenerateOrbits   = "orbits"   // the same, of boards that are images of each other only the least
)

// GenerateForm says how a Generate is written.
const GenerateForm = "all, random, solvable, presses=K, moves=K, distinct or orbits, then count=N, first=N and seed=N as needed"

// Countable reports whether the kind has a last board, after which there are no more.
func (g Generate) Countable() bool {
	return g.Kind == GenerateAll || g.Kind == GenerateDistinct || g.Kind == GenerateOrbits
}

// needsPresses reports whether the kind comes with a number of presses.
func (g Generate) needsPresses() bool { return g.Kind == GeneratePresses || g.Kind == GenerateMoves }

// ParseGenerate reads a kind and its numbers with commas between them, such as
// "solvable,count=1000000,seed=7".
func ParseGenerate(text string) (Generate, error) {
	words := strings.Split(text, ",")
	kind, presses, counted := strings.Cut(words[0], "=")
	g := Generate{Kind: kind}
	fail := func(err error) (Generate, error) {
		return Generate{}, fmt.Errorf("generate %q: %w: want %s", text, err, GenerateForm)
	}
	switch kind {
	case GenerateAll, GenerateRandom, GenerateSolvable, GeneratePresses, GenerateMoves, GenerateDistinct, GenerateOrbits:
	default:
		return fail(fmt.Errorf("kind %q", kind))
	}
	if g.needsPresses() && !counted {
		return fail(fmt.Errorf("%s without a number", kind))
	}
	if counted != g.needsPresses() {
		return fail(fmt.Errorf("word %q", words[0]))
	}
	if counted {
		n, err := strconv.ParseUint(presses, 10, 31)
		if err != nil {
			return fail(fmt.Errorf("%s is no such number", words[0]))
		}
		g.Presses = int(n)
	}
	seen := map[string]bool{}
	for _, word := range words[1:] {
		name, number, _ := strings.Cut(word, "=")
		if seen[name] {
			return fail(fmt.Errorf("%s stands twice", name))
		}
		n, err := strconv.ParseUint(number, 10, 64)
		switch seen[name] = true; {
		case name != "count" && name != "first" && name != "seed":
			return fail(fmt.Errorf("word %q", word))
		case kind == GenerateAll && name == "seed":
			return fail(errors.New("all boards need no seed"))
		case err != nil || name != "seed" && n > 1<<62 || name == "count" && n == 0:
			return fail(fmt.Errorf("%s is no such number", word))
		case name == "count":
			g.Count = int64(n)
		case name == "first":
			g.First = int64(n)
		default:
			g.Seed = n
		}
	}
	if g.Count == 0 && !g.Countable() {
		return fail(errors.New("no count"))
	}
	return g, nil
}

// String returns the form that ParseGenerate reads; it is empty where nothing is
// generated.
func (g Generate) String() string {
	text := g.Kind
	if g.needsPresses() {
		text += fmt.Sprintf("=%d", g.Presses)
	}
	if g.Count > 0 {
		text += fmt.Sprintf(",count=%d", g.Count)
	}
	if g.First > 0 {
		text += fmt.Sprintf(",first=%d", g.First)
	}
	if g.Seed > 0 {
		text += fmt.Sprintf(",seed=%d", g.Seed)
	}
	return text
}
