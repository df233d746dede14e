package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"testing"

	"github.com/flipmill/flipmill/pkg/bench"
	"github.com/flipmill/flipmill/pkg/config"
)

// The outcome of bench is the same as JSON, as CSV and for people, and says on which
// machine it was found.
func TestBench(t *testing.T) {
	t.Parallel()
	cmd := command(t, t.TempDir(), "bench", "e2e", "--rounds", "1", "--turn", "1ms", "--json") // as short as it can be
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, cmd.Stderr)
	}
	var report benchReport
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatal(err)
	}
	cases := bench.Cases(bench.E2E)
	machine := bench.ThisMachine()
	machine.Threads = report.Machine.Threads // go test -cpu says how many this process has
	if report.Machine != machine || machine.Threads < 1 || len(report.Results) != len(cases) {
		t.Fatalf("reported %+v", report)
	}
	for i, r := range report.Results {
		if r.Case != cases[i].Name || r.Rate <= 0 || r.CPU <= 0 || r.BaseCPU <= 0 || r.Ratio <= 0 {
			t.Errorf("%s: %+v", cases[i].Name, r)
		}
	}

	var table bytes.Buffer
	if err := report.print(&table, &config.Config{CSV: true}); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(lines) != 1+len(cases) {
		t.Fatalf("%v\n%v", err, lines)
	}
	for i, line := range lines[1:] {
		if line[slices.Index(lines[0], "case")] != cases[i].Name || line[slices.Index(lines[0], "cpu")] != report.Machine.CPU {
			t.Errorf("line %v", line)
		}
		if x, err := strconv.ParseFloat(line[slices.Index(lines[0], "cpu_ratio")], 64); err != nil || x <= 0 {
			t.Errorf("line %v: ratio %v, %v", line, x, err)
		}
	}

	var text bytes.Buffer
	if err := report.print(&text, &config.Config{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !bytes.Contains(text.Bytes(), []byte(c.Name)) {
			t.Errorf("%s is not in\n%s", c.Name, text.Bytes())
		}
	}
	if _, err := io.Copy(t.Output(), &text); err != nil {
		t.Error(err)
	}
}
