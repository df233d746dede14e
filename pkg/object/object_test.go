package object_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"go.uber.org/goleak"

	"github.com/flipmill/flipmill/pkg/object"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is an S3 server with a bucket that is called bucket.
type server struct {
	t       *testing.T
	backend gofakes3.Backend
	handler http.Handler
	fault   atomic.Pointer[fault]
}

// fault comes before an answer and says whether that is all.
type fault func(w http.ResponseWriter, r *http.Request) (done bool)

// serve starts a server and lets the environment lead to it.
func serve(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, backend: s3mem.New()}
	s.handler = gofakes3.New(s.backend).Server()
	http := httptest.NewServer(s)
	t.Cleanup(http.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": http.URL, "AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_MAX_ATTEMPTS": "",
		"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_REGION": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	if err := s.backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := s.fault.Load(); fault != nil && (*fault)(w, r) {
		return
	}
	s.handler.ServeHTTP(w, r)
}

func (s *server) breaks(fault fault) { s.fault.Store(&fault) }

func (s *server) put(key string, data []byte) {
	s.t.Helper()
	if _, err := s.backend.PutObject("bucket", key, map[string]string{}, bytes.NewReader(data), int64(len(data)), nil); err != nil {
		s.t.Fatal(err)
	}
}

func client(t *testing.T) *object.Client {
	t.Helper()
	c, err := object.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Pause(time.Microsecond)
	return c
}

func noise(n int) []byte {
	data, rng := make([]byte, n), rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	return data
}

// cut ends the connection when so many bytes of the body were sent.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	n, _ := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

// TestReads: an object is what was put there, however it is read and however often
// connections break.
func TestReads(t *testing.T) {
	for name, breaks := range map[string]func(s *server) fault{
		"sound": func(*server) fault { return func(http.ResponseWriter, *http.Request) bool { return false } },
		"cut": func(s *server) fault {
			return func(w http.ResponseWriter, r *http.Request) bool {
				s.handler.ServeHTTP(&cut{w, 1 + rand.IntN(400_000)}, r)
				return true
			}
		},
		"refused": func(*server) fault {
			var n atomic.Int64
			return func(w http.ResponseWriter, r *http.Request) bool {
				if n.Add(1)%2 == 0 {
					return false
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			for _, size := range []int{0, 1, 5000, 1 << 20, 1<<20 + 1, 3_000_000} {
				if name == "refused" && size != 1 {
					continue // its pauses are long
				}
				want := noise(size)
				s.put("some/key", want)
				s.breaks(breaks(s))
				r, err := client(t).Open("s3://bucket/some/key")
				if err != nil {
					t.Fatal(err)
				}
				if r.Size() != int64(size) {
					t.Errorf("size %d, want %d", r.Size(), size)
				}
				got, err := io.ReadAll(r)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes: read %d, %v", size, len(got), err)
				}
				if size < 1<<20 {
					if err := iotest.TestReader(io.NewSectionReader(r, 0, r.Size()), want); err != nil {
						t.Error(err)
					}
				}
				checkReadAt(t, r, want)
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// checkReadAt reads from anywhere, in small and large pieces, beyond the end too.
func checkReadAt(t *testing.T, r io.ReaderAt, want []byte) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		p := make([]byte, rng.IntN(100))
		if rng.IntN(4) == 0 {
			p = make([]byte, rng.IntN(200_000))
		}
		at := rng.IntN(len(want) + 1)
		n, err := r.ReadAt(p, int64(at))
		end := min(at+len(p), len(want))
		if !bytes.Equal(p[:n], want[at:end]) || (err == io.EOF) != (n < len(p) || at == len(want)) || err != nil && err != io.EOF {
			t.Fatalf("ReadAt of %d bytes at %d of %d: %d bytes, %v", len(p), at, len(want), n, err)
		}
	}
}

// TestChanged: an object that somebody replaces is an error that names it, never a
// mixture; also where the server knows no conditions.
func TestChanged(t *testing.T) {
	data := noise(3_000_000)
	for name, strict := range map[string]bool{"server with If-Match": true, "without": false} {
		s := serve(t)
		s.put("key", data)
		tag := ""
		s.breaks(func(w http.ResponseWriter, r *http.Request) bool {
			if match := r.Header.Get("If-Match"); strict && match != "" && match != tag {
				w.WriteHeader(http.StatusPreconditionFailed)
				return true
			}
			s.handler.ServeHTTP(&cut{w, 100_000}, r)
			tag = w.Header().Get("ETag")
			return true
		})
		c := client(t)
		r, err := c.Open("s3://bucket/key")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 50_000)); err != nil {
			t.Fatal(err)
		}
		data[0] ^= 1
		s.put("key", data)
		if strict {
			other, err := c.Open("s3://bucket/key") // so that the tag is known
			if err != nil {
				t.Fatal(err)
			}
			if other.Size() != 3_000_000 {
				t.Errorf("%s: size %d", name, other.Size())
			}
		}
		_, err = io.Copy(io.Discard, r)
		_, atErr := r.ReadAt(make([]byte, 10), 2_000_000)
		for _, err := range []error{err, atErr} {
			if !errors.Is(err, object.ErrChanged) || !strings.Contains(fmt.Sprint(err), "s3://bucket/key") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestBroken: a server that never sends the next byte is given up at last.
func TestBroken(t *testing.T) {
	s := serve(t)
	s.put("key", noise(1000))
	r, err := client(t).Open("s3://bucket/key")
	if err != nil {
		t.Fatal(err)
	}
	s.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		left := 400
		if strings.HasPrefix(r.Header.Get("Range"), "bytes=400-") {
			left = 0
		}
		s.handler.ServeHTTP(&cut{w, left}, r)
		return true
	})
	got, err := io.ReadAll(r)
	if len(got) != 400 || err == nil || !strings.Contains(err.Error(), "s3://bucket/key: the connection breaks at byte 400, 8 times in a row") {
		t.Errorf("%d bytes, then %v", len(got), err)
	}
	if _, err := r.ReadAt(make([]byte, 10), 990); err == nil || !strings.Contains(err.Error(), "breaks at byte 400") {
		t.Errorf("ReadAt: %v", err)
	}
}

// TestList: all objects that begin so, of several pages, in order.
func TestList(t *testing.T) {
	s := serve(t)
	var want []string
	for i := range 2345 {
		key := fmt.Sprintf("a/%d, \u00e4+%%20", i)
		s.put(key, make([]byte, i%7))
		want = append(want, fmt.Sprintf("s3://bucket/%s %d", key, i%7))
	}
	s.put("b", nil)
	slices.Sort(want)
	list := func(url string) (got []string) {
		for e, err := range client(t).List(url) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %d", e.URL, e.Size))
		}
		return got
	}
	if got := list("s3://bucket/a"); !slices.Equal(got, want) {
		t.Errorf("%d objects, want %d", len(got), len(want))
	}
	if got, want := list("s3://bucket"), append(want, "s3://bucket/b 0"); !slices.Equal(got, want) {
		t.Errorf("%d objects in the bucket, want %d", len(got), len(want))
	}
	if got := list("s3://bucket/none"); got != nil {
		t.Errorf("%q, want nothing", got)
	}
}

// TestErrors: an error names the object and says what the server says.
func TestErrors(t *testing.T) {
	s := serve(t)
	s.put("key", []byte("data"))
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	answer := func(status int, body string) fault {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(status)
			io.WriteString(w, body)
			return true
		}
	}
	for _, test := range []struct {
		url   string
		fault fault
		is    error
		want  string
	}{
		{url: "s3://bucket/none", is: fs.ErrNotExist},
		{url: "s3://other/key", is: fs.ErrNotExist},
		{url: "s3:///key", want: "want s3://BUCKET/KEY"},
		{url: "s3://bucket/key", fault: answer(403, ""), is: fs.ErrPermission},
		{url: "s3://bucket/key", fault: answer(500, ""), want: "Internal Server Error"},
	} {
		fault := test.fault
		if fault == nil {
			fault = func(http.ResponseWriter, *http.Request) bool { return false }
		}
		s.breaks(fault)
		_, err := client(t).Open(test.url)
		if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.url) {
			t.Errorf("%s: %v", test.url, err)
		}
	}
	s.breaks(answer(403, "<Error><Code>AccessDenied</Code><Message>not for you</Message></Error>"))
	for _, err := range client(t).List("s3://bucket/folder/") {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "list s3://bucket/folder/") || !strings.Contains(err.Error(), "AccessDenied: not for you") {
			t.Errorf("list: %v", err)
		}
	}
}

// TestFS: the objects below a URL are a tree of files as any other.
func TestFS(t *testing.T) {
	s := serve(t)
	for _, key := range []string{"data/a.txt", "data/b/c.txt", "data/b/d/e", "data/empty", "database", "data/b/", "data//x", "data/b//y", "data/./x", "data/../x"} {
		s.put(key, []byte(strings.Repeat(key, 1+len(key)%2)))
	}
	s.put("data/empty", nil)
	for _, url := range []string{"s3://bucket/data", "s3://bucket/data/"} {
		if err := fstest.TestFS(client(t).FS(url), "a.txt", "b/c.txt", "b/d/e", "empty"); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := fstest.TestFS(client(t).FS("s3://bucket"), "data/a.txt", "database"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"none", "a", "b/none", "a.txt/b"} {
		if _, err := client(t).FS("s3://bucket/data").Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// silent sends no byte of a body.
type silent struct {
	http.ResponseWriter
	request *http.Request
}

func (s silent) Write([]byte) (int, error) {
	s.ResponseWriter.(http.Flusher).Flush()
	<-s.request.Context().Done()
	panic(http.ErrAbortHandler)
}

// TestCancelled: a reading that waits for the next attempt, which would be in an hour,
// ends with the context, and so does one that waits for a server that says nothing.
func TestCancelled(t *testing.T) {
	reason := errors.New("enough")
	for name, test := range map[string]struct {
		requests int // of a reading, before it waits
		answer   func(s *server, w http.ResponseWriter, r *http.Request)
	}{
		"between attempts": {2, func(s *server, w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(&cut{w, 0}, r) }},
		"without a word":   {1, func(_ *server, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"without a byte":   {1, func(s *server, w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(silent{w, r}, r) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.put("key", noise(1000))
			ctx, cancel := context.WithCancelCause(t.Context())
			c, err := object.New(ctx)
			if err != nil {
				t.Fatal(err)
			}
			c.Pause(time.Hour)
			r, err := c.Open("s3://bucket/key")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			asked := make(chan struct{}, 100)
			s.breaks(func(w http.ResponseWriter, r *http.Request) bool {
				asked <- struct{}{}
				test.answer(s, w, r)
				return true
			})
			read := make(chan error)
			for _, from := range []func(p []byte) (int, error){r.Read, func(p []byte) (int, error) { return r.ReadAt(p, 5) }} {
				go func() {
					_, err := from(make([]byte, 10))
					read <- err
				}()
				for range test.requests {
					<-asked
				}
			}
			cancel(reason)
			for range 2 {
				if err := <-read; !errors.Is(err, reason) && !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "s3://bucket/key") || object.Passes(err) {
					t.Error(err)
				}
			}
			if _, err := c.Open("s3://bucket/key"); !errors.Is(err, context.Canceled) {
				t.Errorf("open: %v", err)
			}
		})
	}
}
