package pages

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/draw"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// toggled presses a cell under the rule plus, by hand.
func toggled(cells string, rows, cols, row, col int) string {
	out := []byte(cells)
	for _, d := range [][2]int{{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
		if r, c := row+d[0], col+d[1]; r >= 0 && r < rows && c >= 0 && c < cols {
			out[r*cols+c] ^= 1
		}
	}
	return string(out)
}

// TestSteps makes the presses of a solution one after the other: each step is the
// one before with one more press, and the last is the target.
func TestSteps(t *testing.T) {
	const rows, cols = 3, 4
	rule, err := puzzle.ParseRule("plus")
	ok(t, err)
	solution, cells := "010010000101", strings.Repeat("0", rows*cols)
	for k := range len(solution) {
		if solution[k] == '1' {
			cells = toggled(cells, rows, cols, k/cols, k%cols)
		}
	}
	board := cells
	step := func(asked string) *boardData {
		t.Helper()
		d := &boardData{Job: "j", Row: dataset.Row{Index: 7, Rows: new(int64(rows)), Cols: new(int64(cols)), Board: &board, Solution: &solution}}
		ok(t, d.steps(rule, asked))
		return d
	}
	made := 0
	for k := range len(solution) {
		if solution[k] != '1' {
			continue
		}
		made++
		cells = toggled(cells, rows, cols, k/cols, k%cols)
		d := step(strconv.Itoa(made))
		want := draw.Board{
			Name: fmt.Sprintf("Board of %d rows and %d columns. %s", rows, cols, d.Told),
			Rows: rows, Cols: cols, Cells: cells, Presses: solution, Made: made, Next: true,
		}
		if d.Drawn != want.SVG() {
			t.Errorf("step %d is %s, want the cells %s", made, d.Drawn, cells)
		}
		if told := fmt.Sprintf("After press %d of 4, at row %d, column %d: %d of 12 cells", made, k/cols+1, k%cols+1, strings.Count(cells, "1")); !strings.HasPrefix(d.Told, told) {
			t.Errorf("step %d is told as %q, want %q", made, d.Told, told)
		}
	}
	if strings.Contains(cells, "1") {
		t.Errorf("the last step is %s", cells)
	}
	if d := step(""); d.Step != 0 || d.First != "" || d.Before != "" || d.After != "/jobs/j/boards/7?step=1" || d.Last != "/jobs/j/boards/7?step=4" {
		t.Errorf("the beginning is %+v", d)
	}
	if d := step("4"); d.After != "" || d.Last != "" || d.Before != "/jobs/j/boards/7?step=3" {
		t.Errorf("the end is %+v", d)
	}
	for _, asked := range []string{"5", "-1", "x", "1.5"} {
		d := &boardData{Row: dataset.Row{Rows: new(int64(rows)), Cols: new(int64(cols)), Board: &board, Solution: &solution}}
		if err := d.steps(rule, asked); err == nil {
			t.Errorf("there is a step %q", asked)
		}
	}
}
