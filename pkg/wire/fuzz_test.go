package wire

import (
	"math/rand/v2"
	"testing"
)

func FuzzParseTask(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		seed(f, randomTask(rng), AppendTask)
	}
	f.Fuzz(func(t *testing.T, data []byte) { stable(t, data, AppendTask, ParseTask) })
}

func FuzzParseResult(f *testing.F) {
	seed(f, &Result{ID: ID{Job: "a"}, Boards: 1, Rejected: 1, Results: []byte("rows"), Rejects: []byte("x")}, AppendResult)
	seed(f, &Result{ID: ID{Job: "a"}, Failure: "no"}, AppendResult)
	f.Fuzz(func(t *testing.T, data []byte) { stable(t, data, AppendResult, ParseResult) })
}

func FuzzParseJob(f *testing.F) {
	seed(f, testJob(), AppendJob)
	f.Fuzz(func(t *testing.T, data []byte) { stable(t, data, AppendJob, ParseJob) })
}

func FuzzParseLedger(f *testing.F) {
	seed(f, testLedger(), AppendLedger)
	f.Fuzz(func(t *testing.T, data []byte) { stable(t, data, AppendLedger, ParseLedger) })
}

func seed[T any](f *testing.F, v *T, appendTo func([]byte, *T) ([]byte, error)) {
	data, err := appendTo(nil, v)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}
