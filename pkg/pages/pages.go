// Package pages shows in a browser what a process knows: its jobs as they go on, and
// the boards of their datasets, drawn with their solutions.
//
// Pages are made here, by the server; scripts only bring them up to date and save
// the reader a reload. Whatever they say comes from where the verbs have it: the
// records on the broker through [view], the committed parts through
// [dataset.Reader]. Nothing is counted a second time, but for the speed of a job,
// of which the broker keeps no record.
//
//	site := pages.New(pages.Options{Conn: conn, Output: "datasets"})
//	go site.Run(ctx)      // until ctx ends; then listeners are told the last, and go
//	http.Serve(l, site)
//
// A Site is safe for concurrent use. What corpora, jobs and other machines call
// things is text of anybody's: it reaches pages through html/template alone, and no
// page runs a script or loads anything that is not from here. Pages change nothing.
package pages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/draw"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
)

//go:embed templates static
var files embed.FS

// Options says what a site is about. Conn and Output are required.
type Options struct {
	Conn     *queue.Conn
	Output   string                           // folder of the datasets
	Identity string                           // of the output; empty where there is no other
	Hosts    []string                         // names of this machine in URLs, besides its addresses, localhost and its own name
	Estimate func(job string) (records int64) // in a corpus that is not read to its end, 0 if unknown; may be nil
	Log      *slog.Logger                     // nil means no logs
}

// Site is the pages of a process.
type Site struct {
	opts      Options
	hosts     map[string]bool
	templates *template.Template
	assets    map[string]asset // by path
	mux       *http.ServeMux
	listeners chan struct{} // a place for each
	searches  chan struct{} // likewise
	ended     chan struct{} // closed at the end of Run

	mu      sync.Mutex
	changed chan struct{} // closed when something has
	speeds  map[string]*speed
	list    jobsCache
	placed  map[string]placesCache
	rows    map[found]dataset.Row

	reading sync.Mutex // apart from mu, because disks may be slow
	sets    map[string]*set
}

// asset is a file that pages load.
type asset struct {
	kind, tag string
	data      []byte
}

// Bounds of what visitors can make a process do.
const (
	mostListeners = 64
	mostSearches  = 2                // through datasets, at a time
	askTime       = 5 * time.Second  // for the broker to answer
	searchTime    = 8 * time.Second  // for a search and its turn; an HTTP server of package daemon lets an answer take 10 s
	sameList      = time.Second      // for which a list of jobs is not asked for again
	samePlaces    = 10 * time.Second // likewise the places of chunks, for which tasks are read
)

// New returns the pages. They tell nothing of the past until Run runs.
func New(opts Options) *Site {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Estimate == nil {
		opts.Estimate = func(string) int64 { return 0 }
	}
	s := &Site{
		opts: opts, hosts: map[string]bool{"localhost": true}, mux: http.NewServeMux(),
		listeners: make(chan struct{}, mostListeners), searches: make(chan struct{}, mostSearches), ended: make(chan struct{}),
		changed: make(chan struct{}), speeds: map[string]*speed{}, sets: map[string]*set{}, placed: map[string]placesCache{}, rows: map[found]dataset.Row{},
	}
	if name, err := os.Hostname(); err == nil {
		s.hosts[strings.ToLower(name)] = true
	}
	for _, name := range opts.Hosts {
		s.hosts[strings.ToLower(name)] = true
	}
	s.load()
	s.mux.HandleFunc("/", s.notFound)
	s.mux.HandleFunc("/{$}", s.page(s.jobsPage))
	s.mux.HandleFunc("/events", s.events(s.jobsPage))
	s.mux.HandleFunc("/jobs/{job}", s.page(s.jobPage))
	s.mux.HandleFunc("/jobs/{job}/events", s.events(s.jobPage))
	s.mux.HandleFunc("/jobs/{job}/boards", s.page(s.boardsPage))
	s.mux.HandleFunc("/jobs/{job}/boards/{index}", s.page(s.boardPage))
	s.mux.HandleFunc("/assets/{name}", s.asset)
	return s
}

// load prepares templates and assets, which are part of the program.
func (s *Site) load() {
	s.assets = map[string]asset{}
	add := func(name, kind string, data []byte) {
		sum := sha256.Sum256(data)
		s.assets[name] = asset{kind: kind, tag: hex.EncodeToString(sum[:8]), data: data}
	}
	read := func(name string) []byte {
		data, err := fs.ReadFile(files, "static/"+name)
		if err != nil {
			panic("BUG: pages: " + err.Error())
		}
		return data
	}
	add("pages.css", "text/css; charset=utf-8", append([]byte(draw.Style()), read("pages.css")...))
	echarts, charts := draw.Scripts()
	add("echarts.js", "text/javascript; charset=utf-8", []byte(echarts))
	add("charts.js", "text/javascript; charset=utf-8", []byte(charts))
	add("pages.js", "text/javascript; charset=utf-8", read("pages.js"))
	add("icon.svg", "image/svg+xml", read("icon.svg"))
	s.templates = template.Must(template.New("").Funcs(template.FuncMap{
		"asset":     func(name string) string { return "/assets/" + name + "?" + s.assets[name].tag },
		"thousands": view.Thousands, "short": view.Short, "bytes": func(n int64) string { return view.Short(float64(n)) + "B" }, "percent": view.Percent, "took": took, "harmless": view.Harmless,
		"share": view.Share, "times": view.Times,
	}).ParseFS(files, "templates/*.html"))
}

// asset answers with a file that pages load. Its address changes with it.
func (s *Site) asset(w http.ResponseWriter, r *http.Request) {
	a, there := s.assets[r.PathValue("name")]
	if !there {
		s.notFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("ETag", `"`+a.tag+`"`)
	if r.URL.RawQuery == a.tag {
		w.Header().Set("Cache-Control", "max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
}

// content is what a page shows.
type content struct {
	Template string    // of what is shown besides the sections
	Title    string    // of the window
	Trail    []crumb   // where the page is
	Say      string    // what is told to those who listen to the page, when it changes
	Events   string    // address of what changes; empty where nothing does
	Sections []section // what may change, in the order in which it is shown
	Data     any
}

// crumb is a page above a page.
type crumb struct{ Name, Path string }

// section is a part of a page that changes by itself.
type section struct {
	ID   string        `json:"id"`
	HTML template.HTML `json:"html"`
}

// section renders a part of a page.
func (s *Site) section(id string, data any) (section, error) {
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, id, data); err != nil {
		return section{}, fmt.Errorf("make the page: %w", err)
	}
	return section{id, template.HTML(b.String())}, nil
}

// failure is an error for the reader of a page.
type failure struct {
	status int
	error
}

// page answers with a page that is made for each request.
func (s *Site) page(find func(ctx context.Context, r *http.Request) (*content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askTime)
		defer cancel()
		c, err := find(ctx, r)
		if err != nil {
			s.fail(w, err)
			return
		}
		s.write(w, http.StatusOK, c)
	}
}

// fail answers that there is no such page, or none now.
func (s *Site) fail(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if f, ok := errors.AsType[failure](err); ok {
		status = f.status
	} else if errors.Is(err, queue.ErrNotFound) {
		status = http.StatusNotFound
	}
	s.write(w, status, &content{Template: "failure", Title: http.StatusText(status), Data: view.Harmless(err.Error())})
}

func (s *Site) notFound(w http.ResponseWriter, _ *http.Request) {
	s.fail(w, failure{http.StatusNotFound, errors.New("there is no such page")})
}

func (s *Site) write(w http.ResponseWriter, status int, c *content) {
	var b bytes.Buffer
	if err := s.templates.ExecuteTemplate(&b, "page", c); err != nil {
		s.opts.Log.Error("make the page", "error", err)
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // or the reader has gone
}
