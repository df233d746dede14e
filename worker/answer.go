package worker

import (
	"log/slog"

	"github.com/flipmill/flipmill/pkg/wire"
)

// Answerer returns what answers the tasks of a job as a worker does, but without a
// queue: for those who want to know beforehand what a job will be like. It belongs
// to one goroutine, and an answer is valid until the next.
func Answerer(record *wire.Job) func(*wire.Task) *wire.Result {
	j, s := jobOf(record), &slot{log: slog.New(slog.DiscardHandler)}
	return func(task *wire.Task) *wire.Result { return s.answer(j, task) }
}
