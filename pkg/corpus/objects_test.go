package corpus_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/flipmill/flipmill/pkg/corpus"
)

// bucket is a bucket of an S3 server to which the environment leads. Connections
// break all the time.
type bucket struct {
	t       *testing.T
	backend gofakes3.Backend
}

func newBucket(t *testing.T) bucket {
	t.Helper()
	b := bucket{t, s3mem.New()}
	handler := gofakes3.New(b.backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !r.URL.Query().Has("list-type") {
			w = &cut{w, 1 + rand.IntN(300_000)}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
	} {
		t.Setenv(name, value)
	}
	if err := b.backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b bucket) put(key string, data []byte) {
	b.t.Helper()
	if _, err := b.backend.PutObject("bucket", key, map[string]string{}, bytes.NewReader(data), int64(len(data)), nil); err != nil {
		b.t.Fatal(err)
	}
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

// recordsOf shows all records of a corpus and what it was.
func recordsOf(t *testing.T, path string, opts corpus.Options) (string, error) {
	c, err := corpus.Open(t.Context(), []string{path}, opts, nil)
	if err != nil {
		return "", err
	}
	defer c.Close()
	var b strings.Builder
	var rec corpus.Record
	for err = c.Next(&rec); err == nil; err = c.Next(&rec) {
		fmt.Fprintln(&b, rec.Source, show(&rec))
	}
	if err != io.EOF {
		return b.String(), err
	}
	read, total := c.Progress()
	fmt.Fprintln(&b, c.Sources(), read, total)
	sources, err := corpus.Fingerprint(t.Context(), []string{path}, nil)
	fmt.Fprintln(&b, sources)
	return b.String(), err
}

// TestExpandObjects: a URL stands for what the same path stands for on the disk.
func TestExpandObjects(t *testing.T) {
	b := newBucket(t)
	t.Chdir(t.TempDir())
	for _, name := range []string{
		"a.txt", "ab.txt", "b/x.txt", "b/c/y.csv", "b/_SUCCESS", "b/.hidden", "b/.git/z.txt", "b.txt", "b/C.txt", "lit*.txt", "deep/b/x.txt", "deep/c/b/x.txt", "_d/x.txt", "b/job=x/x.txt",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
		b.put(name, []byte(name))
	}
	b.put("b/marker/", nil) // as consoles make folders
	for _, path := range []string{
		"a.txt", "b", "b/", "b/c", "b/job=x", "_d", "deep", "*.txt", "lit*.txt", "b/?.txt", "*", "b/*", "[ab]*", "*/x.txt", "deep/*/b", "*/*", "a*", ".",
		"none", "none/", "*.csv", "[", "a.txt/x",
	} {
		want, wantErr := corpus.Expand(t.Context(), []string{path})
		for i := range want {
			want[i] = "s3://bucket/" + want[i]
		}
		url := "s3://bucket/" + strings.TrimPrefix(path, ".")
		got, err := corpus.Expand(t.Context(), []string{url})
		if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) || err != nil && !strings.Contains(err.Error(), url) {
			t.Errorf("%s: %q, %v\nwant %q, %v", url, got, err, want, wantErr)
		}
	}
	if got, err := corpus.Expand(t.Context(), []string{"s3://bucket"}); err != nil || len(got) != 9 {
		t.Errorf("the bucket: %q, %v", got, err)
	}
	for _, key := range []string{"two//slashes.txt", "two//deep//x.txt"} { // of which no disk has the like
		b.put(key, []byte("01/10\n"))
	}
	for url, want := range map[string][]string{
		"s3://bucket/two":                {"s3://bucket/two//deep//x.txt", "s3://bucket/two//slashes.txt"},
		"s3://bucket/two//":              {"s3://bucket/two//deep//x.txt", "s3://bucket/two//slashes.txt"},
		"s3://bucket/two//slashes.txt":   {"s3://bucket/two//slashes.txt"},
		"s3://bucket/two//*.txt":         {"s3://bucket/two//slashes.txt"},
		"s3://bucket/two//deep//?.[tT]*": {"s3://bucket/two//deep//x.txt"},
	} {
		if got, err := corpus.Expand(t.Context(), []string{url}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", url, got, err)
		}
		if got, err := recordsOf(t, url, corpus.Options{}); err != nil || strings.Count(got, "2x2 0110") != len(want) {
			t.Errorf("%s: %q, %v", url, got, err)
		}
	}
	for _, url := range []string{"s3://bucket/none", "s3://other/a.txt", "s3://other"} {
		if _, err := corpus.Expand(t.Context(), []string{url}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestObjectReplaced: an object that is replaced while it is read is an error.
func TestObjectReplaced(t *testing.T) {
	b := newBucket(t)
	const boards = 1 << 18
	b.put("boards.txt", bytes.Repeat([]byte("01/10\n"), boards))
	c, err := corpus.Open(t.Context(), []string{"s3://bucket/boards.txt"}, corpus.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b.put("boards.txt", bytes.Repeat([]byte("11/10\n"), boards))
	var rec corpus.Record
	for err == nil {
		err = c.Next(&rec)
	}
	if !strings.Contains(err.Error(), "s3://bucket/boards.txt: it changed while it was read") {
		t.Errorf("%v", err)
	}
}
