package object_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flipmill/flipmill/pkg/object"
)

// fileOf returns an open file of the given content.
func fileOf(t *testing.T, data []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	return f
}

func (s *server) wantObject(key string, data []byte) {
	s.t.Helper()
	got, err := fs.ReadFile(client(s.t).FS("s3://bucket"), key)
	if err != nil || !bytes.Equal(got, data) {
		s.t.Errorf("%s: %d bytes, %v; want %d", key, len(got), err, len(data))
	}
}

// TestWrites: an object is the file that it was made of. Create never replaces one,
// Put does, and what was removed can be created again.
func TestWrites(t *testing.T) {
	s := serve(t)
	c := client(t)
	for _, size := range []int{0, 1, 3_000_000} {
		const key, url = "some/\u00e4 +%20", "s3://bucket/some/\u00e4 +%20"
		data, other := noise(size), []byte("another")
		if err := c.Create(url, fileOf(t, data)); err != nil {
			t.Fatal(err)
		}
		s.wantObject(key, data)
		for _, again := range [][]byte{data, other} {
			if err := c.Create(url, fileOf(t, again)); !errors.Is(err, fs.ErrExist) || object.Passes(err) || !strings.Contains(err.Error(), url) {
				t.Errorf("where there is one: %v", err)
			}
		}
		s.wantObject(key, data)
		if err := c.Put(url, fileOf(t, other)); err != nil {
			t.Error(err)
		}
		s.wantObject(key, other)
		for range 2 {
			if err := c.Remove(url); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Open(url); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removed: %v", err)
		}
	}
}

// TestCreateRace: of many that create an object at once, one does, and it is his.
func TestCreateRace(t *testing.T) {
	s := serve(t)
	c := client(t)
	var all sync.WaitGroup
	var winner atomic.Pointer[[]byte]
	for i := range 8 {
		data := bytes.Repeat([]byte{byte(i)}, 1000)
		f := fileOf(t, data)
		all.Go(func() {
			switch err := c.Create("s3://bucket/key", f); {
			case err == nil:
				if !winner.CompareAndSwap(nil, &data) {
					t.Error("two have created it")
				}
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if winner.Load() == nil {
		t.Fatal("nobody has created it")
	}
	s.wantObject("key", *winner.Load())
}

// TestLostAnswer: an answer that does not come is asked for again, and the object may
// be there then: its caller compares.
func TestLostAnswer(t *testing.T) {
	s := serve(t)
	var lost atomic.Bool
	s.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || lost.Swap(true) {
			return false
		}
		s.handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	data := noise(200_000)
	if err := client(t).Create("s3://bucket/key", fileOf(t, data)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, want that it exists", err)
	}
	s.wantObject("key", data)
}

// TestRefusals: what a server answers to a write, and whether that may pass.
func TestRefusals(t *testing.T) {
	s := serve(t)
	c := client(t)
	for _, test := range []struct {
		status int
		code   string
		passes bool
	}{
		{400, "BadDigest", false}, {400, "EntityTooLarge", false}, {400, "ExpiredToken", true},
		{403, "AccessDenied", true}, {403, "QuotaExceeded", true}, {404, "NoSuchBucket", true}, {409, "ConditionalRequestConflict", true},
		{500, "InternalError", true}, {501, "NotImplemented", false}, {503, "SlowDown", true}, {507, "XMinioStorageFull", true},
	} {
		t.Setenv("AWS_MAX_ATTEMPTS", "1")
		s.breaks(func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(test.status)
			w.Write([]byte("<Error><Code>" + test.code + "</Code><Message>so it is</Message></Error>"))
			return true
		})
		err := client(t).Create("s3://bucket/key", fileOf(t, []byte("data")))
		if err == nil || object.Passes(err) != test.passes || !strings.Contains(err.Error(), test.code+": so it is") || !strings.Contains(err.Error(), "create s3://bucket/key") {
			t.Errorf("%s: passes %t: %v", test.code, object.Passes(err), err)
		}
	}
	s.breaks(func(w http.ResponseWriter, r *http.Request) bool { panic(http.ErrAbortHandler) })
	if err := client(t).Create("s3://bucket/key", fileOf(t, []byte("data"))); !object.Passes(err) {
		t.Errorf("no answer: %v", err)
	}
	s.breaks(func(http.ResponseWriter, *http.Request) bool { return false })
	large := fileOf(t, nil)
	if err := large.Truncate(5<<30 + 1); err != nil {
		t.Fatal(err)
	}
	if err := c.Create("s3://bucket/key", large); err == nil || object.Passes(err) || !strings.Contains(err.Error(), "s3://bucket/key: 5368709121 bytes are more than") {
		t.Errorf("more than a request takes: %v", err)
	}
}

// TestConflict: a server that cannot yet tell which of two creates an object is asked
// again.
func TestConflict(t *testing.T) {
	s := serve(t)
	var asked atomic.Int64
	s.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || asked.Add(1) > 1 {
			return false
		}
		w.WriteHeader(http.StatusConflict)
		w.Write([]byte("<Error><Code>ConditionalRequestConflict</Code></Error>"))
		return true
	})
	if err := client(t).Create("s3://bucket/key", fileOf(t, []byte("data"))); err != nil {
		t.Error(err)
	}
	s.wantObject("key", []byte("data"))
}

// TestRegion: without a region there is the usual one, and where the bucket is in
// another the error says in which.
func TestRegion(t *testing.T) {
	s := serve(t)
	s.put("key", []byte("data"))
	if _, err := client(t).Open("s3://bucket/key"); err != nil {
		t.Error(err)
	}
	s.breaks(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.Header.Get("Authorization"), "/us-east-1/s3/") {
			t.Errorf("it is asked in another region: %s", r.Header.Get("Authorization"))
		}
		w.Header().Set("X-Amz-Bucket-Region", "eu-north-1")
		w.WriteHeader(http.StatusMovedPermanently)
		w.Write([]byte("<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>"))
		return true
	})
	for _, err := range client(t).List("s3://bucket/key") {
		if err == nil || !strings.Contains(err.Error(), "AWS_REGION=eu-north-1") {
			t.Errorf("another region: %v", err)
		}
	}
	t.Setenv("AWS_REGION", "no region")
	if _, err := object.New(t.Context()); err == nil || !strings.Contains(err.Error(), `"no region"`) || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("no region: %v", err)
	}
}
