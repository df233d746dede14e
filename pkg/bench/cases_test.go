//go:build cluster

package bench

import (
	"math"
	"testing"
	"time"
)

// All cases but those of flipmill run, which the command's test has, as short as
// they can be: each says something of itself and of its baseline.
func TestCasesMeasure(t *testing.T) {
	t.Parallel()
	for _, subject := range Subjects() {
		if subject == E2E {
			continue
		}
		cases := Cases(subject)
		if len(cases) == 0 {
			t.Errorf("%s has no case", subject)
		}
		for _, c := range cases {
			r, err := c.Measure(t.Context(), Options{Rounds: 1, Turn: time.Microsecond, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			want := Result{Subject: subject, Case: c.Name, Unit: c.Unit, Baseline: c.Baseline, Rounds: 1}
			got := Result{Subject: r.Subject, Case: r.Case, Unit: r.Unit, Baseline: r.Baseline, Rounds: r.Rounds}
			if got != want {
				t.Errorf("measured %+v, want %+v", got, want)
			}
			figures := []float64{r.Rate, r.CPU}
			if c.Baseline != "" {
				figures = append(figures, r.BaseRate, r.BaseCPU, r.Ratio)
			}
			if subject != Solver {
				figures = append(figures, r.Bytes)
			}
			for _, x := range figures {
				if !(x > 0) || math.IsInf(x, 0) {
					t.Errorf("%s %s: %+v", subject, c.Name, r)
				}
			}
		}
	}
}
