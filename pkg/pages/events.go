package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

// How often a listener is told something, at most and at least.
const (
	tellEvery = time.Second
	aliveTime = 15 * time.Second
)

// events tells a listener, as server-sent events, which sections of a page have
// changed, until he goes or the process ends: then he is told the last, and that
// there is no more.
func (s *Site) events(find func(ctx context.Context, r *http.Request) (*content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.listeners <- struct{}{}:
			defer func() { <-s.listeners }()
		default:
			w.Header().Set("Retry-After", "10")
			http.Error(w, "too many pages listen", http.StatusServiceUnavailable)
			return
		}
		l := &listener{control: http.NewResponseController(w), to: w, told: map[string]template.HTML{}}
		_ = l.control.SetReadDeadline(time.Time{}) // the request has been read; the time for that says nothing of the answer
		w.Header().Set("Content-Type", "text/event-stream")
		if l.send("retry: 2000\n\n") != nil {
			return
		}
		for {
			changed := s.waiting()
			ended := s.over()
			if !l.tell(r.Context(), r, find) {
				return
			}
			if ended {
				_ = l.send("event: end\ndata: {}\n\n") // or he has gone
				return
			}
			s.wait(r.Context(), changed)
			if r.Context().Err() != nil {
				return
			}
		}
	}
}

// over reports whether there will be no more changes.
func (s *Site) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// wait waits for a change, but no shorter than a listener may be told of one.
func (s *Site) wait(ctx context.Context, changed <-chan struct{}) {
	least := time.After(tellEvery)
	select {
	case <-least:
	case <-s.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-changed:
	case <-time.After(aliveTime):
	case <-s.ended:
	case <-ctx.Done():
	}
}

// listener is a page that is open somewhere.
type listener struct {
	control *http.ResponseController
	to      http.ResponseWriter
	told    map[string]template.HTML // sections as he knows them
	said    string
}

// update is what a listener is told.
type update struct {
	Say      string    `json:"say"`
	Sections []section `json:"sections"` // that have changed
}

// tell sends what has changed, and reports whether the listener is still there. A
// page that cannot be made now may be made later.
func (l *listener) tell(ctx context.Context, r *http.Request, find func(ctx context.Context, r *http.Request) (*content, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, err := find(ctx, r)
	if err != nil {
		return l.send(": nothing can be told now\n\n") == nil
	}
	u := update{Say: c.Say}
	for _, part := range c.Sections {
		if l.told[part.ID] != part.HTML {
			l.told[part.ID] = part.HTML
			u.Sections = append(u.Sections, part)
		}
	}
	if len(u.Sections) == 0 && u.Say == l.said {
		return l.send(": all is as it was\n\n") == nil
	}
	l.said = u.Say
	data, err := json.Marshal(u) // in one line
	return err == nil && l.send(fmt.Sprintf("event: update\ndata: %s\n\n", data)) == nil
}

// send writes to a listener, who may be slow for a while.
func (l *listener) send(text string) error {
	_ = l.control.SetWriteDeadline(time.Now().Add(askTime))
	if _, err := l.to.Write([]byte(text)); err != nil {
		return err
	}
	return l.control.Flush()
}
