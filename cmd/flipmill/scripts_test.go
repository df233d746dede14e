//go:build cluster

package main

import "testing"

// TestScriptsOfDatasets runs the scripts that make datasets of some size or many of them.
func TestScriptsOfDatasets(t *testing.T) { runScripts(t, "testdata/datasets") }
