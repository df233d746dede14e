package pages

import (
	"fmt"
	"math"
	"time"
)

// speed is how many records of a job had been received when. The broker knows only
// how many there are now, so it begins when somebody begins to watch.
type speed struct {
	start  time.Time
	every  time.Duration // between two points
	points []point
}

// point is a number of records, after a time since the start.
type point struct {
	at      time.Duration
	records int64
}

const (
	mostPoints = 240
	firstEvery = time.Second
	rateOver   = 15 * time.Second // what a job's rate is about
)

// add notes how many records there are now. When there are too many points, every
// second one goes. Where there are fewer than before, another drive has begun.
func (s *speed) add(now time.Time, records int64) {
	if n := len(s.points); n == 0 || records < s.points[n-1].records {
		*s = speed{start: now, every: firstEvery, points: []point{{0, records}}}
		return
	}
	p := point{max(0, now.Sub(s.start)), records}
	if n := len(s.points); n > 1 && p.at-s.points[n-2].at < s.every {
		s.points[n-1] = p // the last one moves until it is far enough
		return
	}
	if s.points = append(s.points, p); len(s.points) <= mostPoints {
		return
	}
	thin := s.points[:0]
	for i, p := range s.points {
		if i%2 == 0 || i == len(s.points)-1 {
			thin = append(thin, p)
		}
	}
	s.points, s.every = thin, 2*s.every
}

// rate returns how many records a second came of late, 0 if that is not known.
func (s *speed) rate(now time.Time) float64 {
	if s == nil || len(s.points) < 2 {
		return 0
	}
	last, at := s.points[len(s.points)-1], now.Sub(s.start)
	from := s.points[0]
	for _, p := range s.points[:len(s.points)-1] {
		if p.at <= at-rateOver {
			from = p
		}
	}
	if at <= from.at {
		return 0
	}
	return float64(last.records-from.records) / (at - from.at).Seconds()
}

// rate is how many records a second came until a time.
type rate struct {
	At      time.Time
	Records float64
}

// rates returns how many records a second came when.
func (s *speed) rates() (all []rate) {
	if s == nil {
		return nil
	}
	for i, p := range s.points {
		if i == 0 {
			continue
		}
		before := s.points[i-1]
		all = append(all, rate{s.start.Add(p.at).UTC(), float64(p.records-before.records) / max(0.001, (p.at-before.at).Seconds())})
	}
	return all
}

// took writes a time for people.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
