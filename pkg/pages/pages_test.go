package pages

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what takes milliseconds, on a machine that does much else.
const patience = time.Minute

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testSpec is a spec that jobs can have.
func testSpec(t *testing.T) puzzle.Spec {
	t.Helper()
	rule, err := puzzle.ParseRule("plus")
	ok(t, err)
	return puzzle.Spec{
		Rule: rule, SearchLimit: 1 << 20, Columns: []string{"puzzle_index", "board", "solution"}, Cells: "text",
		Compression: "zstd", PartChunks: 2, Format: "lines", Symbols: puzzle.Digits(), MaxLine: 1 << 16,
	}
}

// newSite returns pages of a broker with one job.
func newSite(t *testing.T, hosts ...string) *Site {
	t.Helper()
	server, err := queue.StartServer(queue.ServerOptions{StoreDir: t.TempDir()})
	ok(t, err)
	t.Cleanup(server.Close)
	conn, err := queue.Connect(t.Context(), queue.Options{Server: server, Timeout: patience})
	ok(t, err)
	t.Cleanup(conn.Close)
	ok(t, conn.Setup(t.Context(), queue.Limits{Memory: true}))
	_, err = conn.CreateJob(t.Context(), &wire.Job{ID: "boards", Spec: testSpec(t)})
	ok(t, err)
	return New(Options{Conn: conn, Output: t.TempDir(), Hosts: hosts})
}

// ask asks a site and returns its answer.
func ask(s *Site, change func(*http.Request), method, url string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, answer *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(answer.Body)
	ok(t, err)
	return string(body)
}

// TestGuard: only those are answered who ask for the pages by a name of theirs, who
// want to look, and who are not sent by another site.
func TestGuard(t *testing.T) {
	t.Parallel()
	s := newSite(t, "Flipmill.Example")
	own, err := os.Hostname()
	ok(t, err)
	for host, status := range map[string]int{
		"localhost": 200, "localhost:9464": 200, "127.0.0.1:9464": 200, "[::1]:9464": 200, "192.0.2.7": 200,
		own: 200, strings.ToUpper(own): 200, "flipmill.example": 200, "FLIPMILL.example:80": 200,
		"evil.example": 421, "evil.example:9464": 421, "localhost.evil.example": 421, "": 421, "127.0.0.1.evil.example": 421,
	} {
		answer := ask(s, func(r *http.Request) { r.Host = host }, http.MethodGet, "/")
		if answer.StatusCode != status {
			t.Errorf("host %q: %d, want %d", host, answer.StatusCode, status)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodConnect, "TRACE"} {
		if answer := ask(s, func(r *http.Request) { r.Host = "localhost" }, method, "/"); answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, answer.StatusCode)
		}
	}
	for mode, status := range map[string]int{"navigate": 200, "no-cors": 403, "cors": 403, "": 403} {
		answer := ask(s, func(r *http.Request) {
			r.Host = "localhost"
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", mode)
		}, http.MethodGet, "/")
		if answer.StatusCode != status {
			t.Errorf("another site, %q: %d, want %d", mode, answer.StatusCode, status)
		}
	}
}

// TestPagesThatAreNot: whatever is asked for, what is asked with comes back as text
// if at all, under a policy that lets no script of it run.
func TestPagesThatAreNot(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for path, status := range map[string]int{
		"/nowhere":                                      404,
		"/jobs/other":                                   404,
		"/jobs/%3Cscript%3Ealert(1)%3C":                 404,
		"/jobs/boards/boards?status=%3Cb%3E":            400,
		"/jobs/boards/boards?moves=x%22%3E%3Cscript%3E": 400,
		"/jobs/boards/boards?moves=-1":                  400,
		"/jobs/boards/boards/0":                         404,
		"/jobs/boards/boards/%3Cscript%3E":              404,
		"/jobs/boards/boards/-1":                        404,
		"/assets/nothing.js":                            404,
		"/assets/pages.js":                              200,
		"/jobs/boards":                                  200,
		"/jobs/boards/boards":                           200,
	} {
		answer := ask(s, nil, http.MethodGet, "http://localhost"+path)
		body := text(t, answer)
		if answer.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", path, answer.StatusCode, status, body)
		}
		if strings.Contains(body, "<script>") || strings.Contains(body, "<b>") {
			t.Errorf("%s: what was asked with has become part of the page:\n%s", path, body)
		}
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"} {
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
}

// TestEnded: of a job that has ended nobody is told what it waits for, or how fast it
// was if nobody has watched; why it failed is text.
func TestEnded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	look := func() string {
		t.Helper()
		return text(t, ask(s, nil, http.MethodGet, "http://localhost/jobs/boards"))
	}
	sections := []string{`id="throughput-title"`, `id="places-title"`, `id="troubles-title"`}
	body := look()
	for _, title := range sections {
		if !strings.Contains(body, title) {
			t.Errorf("a job that is open has no %s:\n%s", title, body)
		}
	}
	_, err := s.opts.Conn.PutLedger(t.Context(), "boards", &wire.Ledger{State: wire.Failed, Reason: "<b>a\u202ebug</b>"}, 0)
	ok(t, err)
	body = look()
	for _, title := range sections {
		if strings.Contains(body, title) {
			t.Errorf("a job that has ended has %s:\n%s", title, body)
		}
	}
	if !strings.Contains(body, `<section id="places" aria-labelledby="places-title"></section>`) {
		t.Errorf("there is no place for what a job waits for that goes on again:\n%s", body)
	}
	for _, page := range []string{body, text(t, ask(New(s.opts), nil, http.MethodGet, "http://localhost/"))} { // s has the list from before
		if !strings.Contains(page, "&lt;b&gt;a\ufffdbug&lt;/b&gt;") {
			t.Errorf("why it failed is not told, or not as text:\n%s", page)
		}
	}
	if body := text(t, ask(s, nil, http.MethodGet, "http://localhost/jobs/other")); !strings.Contains(body, "there is no job other") {
		t.Errorf("of no job is said:\n%s", body)
	}
}

// TestAssetsStay: what a page loads may be kept, because its address changes with it.
func TestAssetsStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for name, a := range s.assets {
		answer := ask(s, nil, http.MethodGet, "http://localhost/assets/"+name+"?"+a.tag)
		if !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") || answer.Header.Get("Content-Type") != a.kind {
			t.Errorf("%s: %v", name, answer.Header)
		}
		again := ask(s, func(r *http.Request) { r.Header.Set("If-None-Match", `"`+a.tag+`"`) }, http.MethodGet, "http://localhost/assets/"+name)
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: asked again: %d", name, again.StatusCode)
		}
	}
}

// TestListeners: a page that is open is told of a change, and of the end; of too
// many, some are told to come again later.
func TestListeners(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		s.Run(ctx)
	}()
	server := httptest.NewServer(s)
	defer server.Close()
	listen := func(path string) *http.Response {
		t.Helper()
		answer, err := server.Client().Get(server.URL + path)
		ok(t, err)
		return answer
	}
	answer := listen("/jobs/boards/events")
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("the events are %s", kind)
	}
	late := time.AfterFunc(patience, func() { answer.Body.Close() })
	defer late.Stop()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	await := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the events end without %q: %v", text, lines.Err())
	}
	await("boards is open")
	_, err := s.opts.Conn.PutLedger(ctx, "boards", &wire.Ledger{State: wire.Failed, Reason: "<b>a bug</b>"}, 0)
	ok(t, err)
	await("boards is failed")
	for range mostListeners - 1 {
		s.listeners <- struct{}{}
	}
	refused := listen("/events")
	refused.Body.Close()
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" {
		t.Errorf("one too many is answered %d, %v", refused.StatusCode, refused.Header)
	}
	cancel()
	await("event: end")
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	<-ran
}

// TestCompacted: a dataset whose parts have become larger is shown, too.
func TestCompacted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	standing := &queue.Standing{Job: &wire.Job{ID: "boards", Spec: testSpec(t)}}
	for _, partChunks := range []int{2, 4} {
		ok(t, os.RemoveAll(filepath.Join(s.opts.Output, "job=boards")))
		spec := testSpec(t)
		spec.PartChunks = partChunks
		d, err := dataset.Open(s.opts.Output, "boards", spec)
		ok(t, err)
		_, err = d.Finish(dataset.Input{})
		ok(t, err)
		if _, err := s.set(standing); err != nil { // it was open
			_, err = s.set(standing)
			ok(t, err)
		}
	}
}

// TestLedgerTells: files are looked at again only after another ledger, however many
// jobs a page is about.
func TestLedgerTells(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d, err := dataset.Open(s.opts.Output, "boards", testSpec(t))
	ok(t, err)
	standing := &queue.Standing{Job: &wire.Job{ID: "boards", Spec: testSpec(t)}, Ledger: &wire.Ledger{}, Revision: 7}
	look := func(parts int) {
		t.Helper()
		_, err := s.set(standing)
		ok(t, err)
		if n, _, err := s.sets["boards"].reader.Committed(); err != nil || n != parts {
			t.Errorf("%d parts are there, want %d (%v)", n, parts, err)
		}
	}
	look(0)
	before := s.sets["boards"].counts
	_, err = d.Finish(dataset.Input{})
	ok(t, err)
	if now, err := s.set(standing); err != nil || now.counts != before {
		t.Errorf("the files are looked at though the ledger tells nothing (%v)", err)
	}
	standing.Revision++
	if now, err := s.set(standing); err != nil || now.counts == before {
		t.Errorf("the files are not looked at though the ledger tells something (%v)", err)
	}
	look(1)
}

// TestBrokerAway: a page says so and does not wait for long.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.opts.Conn.Close()
	answer := ask(s, nil, http.MethodGet, "http://localhost/jobs/boards")
	if body := text(t, answer); answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "Service Unavailable") {
		t.Errorf("without a broker: %d %s", answer.StatusCode, body)
	}
}
