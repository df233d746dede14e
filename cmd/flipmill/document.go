package main

import "encoding/json"

// document is what --json prints of one outcome: JSON for people's eyes too.
func document(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}
