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
}

// Presets returns the known presets.
func Presets() []Preset {
	return []Preset{
		{Name: "flip-game", Rule: "plus", Target: Either, Symbols: Symbols{On: 'b', Off: 'w'}, Format: "blocks", Size: Size{4, 4}}, // POJ 1753
		{Name: "fridge", Rule: "fridge", Target: Zero, Symbols: Symbols{On: '+', Off: '-'}, Format: "blocks", Size: Size{4, 4}},    // POJ 2965
		{Name: "fliptile", Rule: "plus", Target: Zero, Symbols: Digits(), Format: "grid"},                                          // POJ 3279
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
