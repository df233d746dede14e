package main

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/wire"
	"github.com/flipmill/flipmill/producer"
	"github.com/flipmill/flipmill/worker"
)

// estimate is where a number is expected to be.
type estimate struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// forecast is what a run would send and leave, and how long it would take, judging
// by some of its chunks.
type forecast struct {
	Tasks       int64    `json:"tasks"`          // messages; each has one result
	Parts       int64    `json:"parts"`          // files of results
	Sampled     int64    `json:"sampled_chunks"` // that were solved to find this out
	TaskBytes   estimate `json:"task_bytes"`     // all together, as are the others
	ResultBytes estimate `json:"result_bytes"`
	OutputBytes estimate `json:"output_bytes"`
	CoreSeconds estimate `json:"core_seconds"` // of the workers
	Workers     int      `json:"workers"`
	Seconds     estimate `json:"seconds"` // with so many workers on this machine, if it does nothing else
}

// sampleSize is the most chunks that are solved for a forecast. Boards of one corpus
// are much alike: at 16 chunks the error of the mean is below one in a hundred
// where chunks differ by a few in a hundred.
const sampleSize = 16

// patience ends the solving for a forecast before its next chunk.
const patience = 5 * time.Second

// sample chooses some of all chunks of a corpus, each as likely as the others: the
// same ones each time.
type sample struct {
	random *rand.Rand
	seen   int64
	chosen []*wire.Task
}

func newSample() *sample { return &sample{random: rand.New(rand.NewPCG(1, 2))} }

// add considers the next task (Vitter's algorithm R, 1985).
func (s *sample) add(t *wire.Task) {
	s.seen++
	if len(s.chosen) < sampleSize {
		s.chosen = append(s.chosen, kept(t))
	} else if k := s.random.Int64N(s.seen); k < sampleSize {
		s.chosen[k] = kept(t)
	}
}

// kept returns a copy of a task that stays as it is when the next chunk is made.
func kept(t *wire.Task) *wire.Task {
	c := t.Chunk
	c.Lines, c.Runs = slices.Clone(c.Lines), slices.Clone(c.Runs)
	for i := range c.Runs {
		c.Runs[i].Masks = slices.Clone(c.Runs[i].Masks)
	}
	return &wire.Task{ID: t.ID, Chunk: c}
}

// addRanges considers the tasks of a generated corpus without going through them.
func (s *sample) addRanges(job string, spec puzzle.Spec, boards int64) {
	most := int64(producer.RangeRecords(spec))
	s.seen = (boards + most - 1) / most
	numbers := map[int64]bool{}
	for int64(len(s.chosen)) < min(sampleSize, s.seen) {
		k := int64(len(s.chosen)) // all of them, or any
		if s.seen > sampleSize {
			k = s.random.Int64N(s.seen)
		}
		if numbers[k] {
			continue
		}
		numbers[k] = true
		chunk := producer.Range(k*most, int(min(most, boards-k*most)))
		s.chosen = append(s.chosen, &wire.Task{ID: idOf(job, spec, k), Chunk: *chunk})
	}
}

// idOf returns the id of a task.
func idOf(job string, spec puzzle.Spec, chunk int64) wire.ID {
	return wire.ID{Job: job, Chunk: chunk, Part: chunk / int64(spec.PartChunks), Epoch: 1}
}

// measured is what is known of a chunk that was solved.
type measured struct {
	records                      int64
	task, result, output, second float64
}

// measure solves the chosen chunks, one at least and further ones as long as
// patience lasts. The first is solved twice: with it solvers are made and memory is
// taken for all.
func (s *sample) measure(job string, spec puzzle.Spec) ([]measured, error) {
	// The first chosen are also the first of the corpus, and of all that are chosen
	// some must stand for all.
	s.random.Shuffle(len(s.chosen), func(i, k int) { s.chosen[i], s.chosen[k] = s.chosen[k], s.chosen[i] })
	answer := worker.Answerer(&wire.Job{ID: job, Spec: spec})
	var found []measured
	begin := time.Now()
	for i, t := range slices.Concat(s.chosen[:min(1, len(s.chosen))], s.chosen) {
		if i > 0 && time.Since(begin) > patience {
			break
		}
		m, err := measureOne(answer, t)
		if err != nil {
			return nil, err
		}
		if i == 1 {
			found = found[:0]
		}
		found = append(found, m)
	}
	return found, nil
}

func measureOne(answer func(*wire.Task) *wire.Result, t *wire.Task) (m measured, err error) {
	before := cpuSeconds()
	result := answer(t)
	m.second = cpuSeconds() - before
	if result.Failure != "" {
		return m, errors.New(result.Failure)
	}
	message, err := wire.AppendTask(nil, t)
	if err != nil {
		return m, err
	}
	m.task = float64(len(message))
	if message, err = wire.AppendResult(message[:0], result); err != nil {
		return m, err
	}
	m.records, m.result = int64(t.Chunk.Records()), float64(len(message))
	m.output = float64(len(result.Results) + len(result.Rejects))
	return m, nil
}

// predict estimates the sum of a quantity over all chunks: as much for each record
// as in the sample, give or take three standard errors of that ratio (Cochran,
// Sampling Techniques, 1977, chapter 6), and half of it where there is but one
// chunk to judge by.
func predict(found []measured, of func(measured) float64, chunks, records int64) estimate {
	n := float64(len(found))
	if n == 0 {
		return estimate{}
	}
	var amount, seen float64
	for _, m := range found {
		amount, seen = amount+of(m), seen+float64(m.records)
	}
	ratio := amount / seen
	sum := ratio * float64(records)
	around := 0.0
	switch {
	case int64(len(found)) == chunks:
	case len(found) == 1:
		around = sum / 2
	default:
		squares := 0.0
		for _, m := range found {
			off := of(m) - ratio*float64(m.records)
			squares += off * off
		}
		around = 3 * float64(chunks) * math.Sqrt((1-n/float64(chunks))*squares/(n-1)/n)
	}
	return estimate{max(0, sum-around), sum + around}
}

// cpuSeconds is the time for which this process has been computing, which other
// processes disturb less than the time on a clock.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("BUG: check: " + err.Error()) // it cannot fail for oneself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// predictTime estimates the time that all chunks take: from the quickest to the
// slowest of the sample, because what disturbs a measurement of time does so for
// several chunks. Chunks with few records, such as the last, say little of the others.
func predictTime(found []measured, chunks, records int64) estimate {
	var sum float64
	var most int64
	for _, m := range found {
		sum, most = sum+m.second, max(most, m.records)
	}
	switch {
	case int64(len(found)) == chunks:
		return estimate{sum, sum}
	case len(found) == 1:
		all := sum * float64(records) / float64(most)
		return estimate{all / 2, all * 2}
	}
	e := estimate{Low: math.Inf(1)}
	for _, m := range found {
		if 2*m.records >= most {
			all := m.second * float64(records) / float64(m.records)
			e.Low, e.High = min(e.Low, all), max(e.High, all)
		}
	}
	return e
}

// forecastOf judges a corpus by what was measured. read is how many seconds of a
// core the reading takes.
func forecastOf(found []measured, spec puzzle.Spec, chunks, records int64, read float64, workers int) forecast {
	f := forecast{
		Tasks: chunks, Sampled: int64(len(found)), Workers: workers,
		Parts:       (chunks + int64(spec.PartChunks) - 1) / int64(spec.PartChunks),
		TaskBytes:   predict(found, func(m measured) float64 { return m.task }, chunks, records).whole(),
		ResultBytes: predict(found, func(m measured) float64 { return m.result }, chunks, records).whole(),
		OutputBytes: predict(found, func(m measured) float64 { return m.output }, chunks, records),
		CoreSeconds: predictTime(found, chunks, records),
	}
	f.OutputBytes = estimate{
		f.OutputBytes.Low*(1-footerShare) + leastFixed,
		f.OutputBytes.High*(1+footerShare) + mostFixed + mostPart*float64(f.Parts),
	}.whole()
	atOnce := float64(max(1, min(int64(workers), chunks)))
	f.Seconds.Low = max(read, f.CoreSeconds.Low/atOnce)
	f.Seconds.High = startSeconds + slowdown*(read+f.CoreSeconds.High/atOnce)
	f.Seconds, f.CoreSeconds = f.Seconds.milli(), f.CoreSeconds.milli()
	return f
}

// What a run has besides its chunks, found by comparing forecasts with runs.
const (
	footerShare  = 0.02     // of the chunks' bytes: the footer of a part is not the sum of theirs
	leastFixed   = 4 << 10  // bytes of manifest and statistics
	mostFixed    = 12 << 10 // the same where there are many groups
	mostPart     = 2 << 10  // bytes of a part in manifest and footers
	startSeconds = 0.5      // of a run without boards
	slowdown     = 1.5      // all else on the way of the data, and what workers share
)

// whole and milli round a range outwards.
func (e estimate) whole() estimate { return estimate{math.Floor(e.Low), math.Ceil(e.High)} }
func (e estimate) milli() estimate {
	return estimate{math.Floor(e.Low*1e3) / 1e3, math.Ceil(e.High*1e3) / 1e3}
}
