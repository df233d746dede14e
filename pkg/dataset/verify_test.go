package dataset_test

import (
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
)

func TestTmpVerify(t *testing.T) {
	for _, cells := range []string{"text", "bits"} {
		for _, comp := range []string{"zstd", "snappy", "none"} {
			for _, rule := range []string{"plus", "fridge", "king-torus"} {
				spec := testSpec(t, rule, 2)
				spec.Cells, spec.Compression = cells, comp
				path := smallCorpus(t, spec).write(t, t.TempDir())
				rep, err := dataset.Verify(path)
				if err != nil {
					t.Fatal(err)
				}
				if !rep.OK() {
					for _, p := range rep.Problems[:min(5, len(rep.Problems))] {
						t.Error(p)
					}
				}
				if len(rep.Skipped) > 0 || rep.Rows != rep.Records {
					t.Errorf("%+v", rep)
				}
			}
		}
	}
}
