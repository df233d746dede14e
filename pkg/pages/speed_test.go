package pages

import (
	"math"
	"testing"
	"time"
)

// TestSpeed: a steady job has its rate however long it takes, in bounded memory; one
// that stands still slows down to nothing.
func TestSpeed(t *testing.T) {
	const rate = 1000
	var s speed
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	if s.rate(now) != 0 || len(s.rates()) > 0 {
		t.Error("there is a rate of nothing")
	}
	for range 5000 {
		s.add(now, int64(now.Sub(start).Seconds()*rate))
		now = now.Add(700 * time.Millisecond)
	}
	if len(s.points) > mostPoints {
		t.Errorf("%d points are kept", len(s.points))
	}
	if got := s.rate(now); math.Abs(got-rate) > 0.1*rate {
		t.Errorf("the rate is %v, want %v", got, rate)
	}
	rates := s.rates()
	if end := rates[len(rates)-1].At.Sub(start); math.Abs(end.Seconds()-0.7*4999) > 1 {
		t.Errorf("the rates end after %v", end)
	}
	for _, r := range rates {
		if math.Abs(r.Records-rate) > 0.1*rate {
			t.Errorf("the rate at %v is %v", r.At, r.Records)
		}
	}
	if got := s.rate(now.Add(time.Hour)); got > 1 {
		t.Errorf("after an hour without a record the rate is %v", got)
	}
	s.add(now, 5) // another drive
	if len(s.points) != 1 || s.rate(now.Add(time.Second)) != 0 {
		t.Errorf("a job that begins again has points %v", s.points)
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "–", 0: "0 s", 300 * time.Millisecond: "1 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s",
		3*time.Hour + 4*time.Minute: "3 h 4 min", 72 * time.Hour: "3 days",
	} {
		if got := took(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}
