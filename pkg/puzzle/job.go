package puzzle

import (
	"fmt"
	"strings"
)

// maxJobID is the longest job id, in characters.
const maxJobID = 63

// CheckJob reports a job id that does not match [a-z][a-z0-9-]{0,62}. An id that
// does is safe as part of file names, queue subjects, keys and labels.
func CheckJob(id string) error {
	const letters, others = "abcdefghijklmnopqrstuvwxyz", "0123456789-"
	if id == "" || len(id) > maxJobID || strings.Trim(id[:1], letters) != "" || strings.Trim(id, letters+others) != "" {
		return fmt.Errorf("job id %.80q: want a lower-case letter, then at most %d lower-case letters, digits or '-'", id, maxJobID-1)
	}
	return nil
}
