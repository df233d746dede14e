package puzzle

import (
	"fmt"
	"strings"
)

// Preset is a well-known problem: what its boards mean and how they are written.
type Preset struct {
	Name    string
	Rule    string  // as ParseRule reads it
	Target  Target  //
	Symbols Symbols //
	Format  string  // corpus format of the problem's input
	Size    Size    // the problem's fixed size; zero where the input shows it
	Frame   Frame   // what its input has around the boards
}

// Presets returns the known presets.
func Presets() []Preset {
	return []Preset{
		{Name: "flip-game", Rule: "plus", Target: Either, Symbols: Symbols{On: 'b', Off: 'w'}, Format: "blocks", Size: Size{4, 4}},                                        // POJ 1753
		{Name: "fridge", Rule: "fridge", Target: Zero, Symbols: Symbols{On: '+', Off: '-'}, Format: "blocks", Size: Size{4, 4}},                                           // POJ 2965
		{Name: "fliptile", Rule: "plus", Target: Zero, Symbols: Digits(), Format: "grid"},                                                                                 // POJ 3279
		{Name: "extended-lights-out", Rule: "plus", Target: Zero, Symbols: Digits(), Format: "blocks", Size: Size{5, 6}, Frame: Frame{Count: true}},                       // POJ 1222
		{Name: "painter", Rule: "plus", Target: Zero, Symbols: Symbols{On: 'w', Off: 'y'}, Format: "grid", Frame: Frame{Count: true, Square: true}},                       // POJ 1681
		{Name: "water-bowls", Rule: "plus", Target: Zero, Symbols: Digits(), Format: "lines", Size: Size{1, 20}},                                                          // POJ 3185
		{Name: "lights-off", Rule: "plus", Target: Zero, Symbols: Symbols{On: 'O', Off: '#'}, Format: "blocks", Size: Size{10, 10}, Frame: Frame{Name: true, End: "end"}}, // UVa 10309
		{Name: "six-steps", Rule: "plus", Target: One, Symbols: Digits(), Format: "blocks", Size: Size{5, 5}, Frame: Frame{Count: true}},                                  // Vijos 1197
		{Name: "zero-matrix", Rule: "plus", Target: Zero, Symbols: Digits(), Format: "jsonl"},                                                                             // LeetCode 1284
	}
}

// ParsePreset returns the preset of that name.
func ParsePreset(name string) (Preset, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, fmt.Errorf("preset %q: want %s", name, strings.Join(names, ", "))
}
