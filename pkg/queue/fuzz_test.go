package queue

import "testing"

// FuzzSubjects: whatever anybody publishes to, a subject is either the one that
// we would publish to for the same chunk, or not ours.
func FuzzSubjects(f *testing.F) {
	for _, s := range []string{
		"flipmill.task.normal.j.1", "flipmill.task.low.job-2.9223372036854775807", "flipmill.result.1.j.1.1", "flipmill.result.15.j.31.40",
		"flipmill.task..j.1", "flipmill.task.normal.J.1", "flipmill.task.normal.j.-1", "flipmill.result.1.j.17.+17", "flipmill.result.0.j.1.1", "....", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		if lane, id, err := parseTaskSubject(subject); err == nil && (taskSubject(lane, id) != subject || id.Validate() != nil) {
			t.Errorf("%q is taken for task %v in lane %q", subject, id, lane)
		}
		if id, err := parseResultSubject(subject); err == nil && (resultSubject(id) != subject || id.Validate() != nil) {
			t.Errorf("%q is taken for result %v", subject, id)
		}
	})
}
