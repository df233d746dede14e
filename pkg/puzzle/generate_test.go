package puzzle

import "testing"

func TestGenerate(t *testing.T) {
	for text, want := range map[string]Generate{
		"all":                 {Kind: GenerateAll},
		"all,count=5,first=3": {Kind: GenerateAll, Count: 5, First: 3},
		"random,count=1,seed=18446744073709551615": {Kind: GenerateRandom, Count: 1, Seed: 1<<64 - 1},
		"solvable,count=9,first=2,seed=7":          {Kind: GenerateSolvable, Count: 9, First: 2, Seed: 7},
		"presses=0,count=9":                        {Kind: GeneratePresses, Count: 9},
		"presses=12,count=9":                       {Kind: GeneratePresses, Presses: 12, Count: 9},
		"distinct,seed=1":                          {Kind: GenerateDistinct, Seed: 1},
		"moves=7,count=9":                          {Kind: GenerateMoves, Presses: 7, Count: 9},
		"orbits,first=3,seed=1":                    {Kind: GenerateOrbits, First: 3, Seed: 1},
	} {
		if g, err := ParseGenerate(text); err != nil || g != want || g.String() != text {
			t.Errorf("%s: got %+v, %v, again %q", text, g, err, g.String())
		}
	}
	if text := (Generate{}).String(); text != "" {
		t.Errorf("nothing generated is %q", text)
	}
	for _, text := range []string{
		"", "every", "all=1", "all,", "all,seed=1", "all,count=0", "all,count=1,count=1", "all,first=-1", "all,size=3", "all,count",
		"random", "random,seed=1", "random,count=4611686018427387905", "random,count=1,seed=18446744073709551616",
		"presses,count=1", "presses=x,count=1", "presses=-1,count=1", "presses=3", "solvable=3,count=1", "moves,count=1", "moves=3", "orbits=2", "All", "all ,count=1",
	} {
		if g, err := ParseGenerate(text); err == nil {
			t.Errorf("%q: got %+v", text, g)
		}
	}
}
