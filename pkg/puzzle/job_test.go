package puzzle

import (
	"strings"
	"testing"
)

func TestCheckJob(t *testing.T) {
	for _, id := range []string{"a", "a-1", "run-2026", "z" + strings.Repeat("9", 62)} {
		if err := CheckJob(id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "1a", "-a", "A", "aB", "a.b", "a_b", "a b", "a*", "a/b", "é", "a\n", "z" + strings.Repeat("9", 63)} {
		if CheckJob(id) == nil {
			t.Errorf("job id %q passes", id)
		}
	}
}
