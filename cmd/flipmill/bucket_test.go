package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/wire"
)

// bucket is a bucket of an S3 server in this process.
type bucket struct {
	name    string
	backend gofakes3.Backend
	server  *httptest.Server
	spoil   atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (done bool)] // before each answer
}

func newBucket(t *testing.T, name string) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(name); err != nil {
		t.Fatal(err)
	}
	sound, b := gofakes3.New(backend).Server(), &bucket{name: name, backend: backend}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoil := b.spoil.Load(); spoil == nil || !(*spoil)(w, r) {
			sound.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(b.server.Close)
	return b
}

// spoils lets a function come before each answer, which says whether that is all.
func (b *bucket) spoils(spoil func(w http.ResponseWriter, r *http.Request) (done bool)) {
	b.spoil.Store(&spoil)
}

// environment leads a process to the server.
func (b *bucket) environment() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + b.server.URL, "AWS_ACCESS_KEY_ID=us", "AWS_SECRET_ACCESS_KEY=secret",
		"AWS_CONFIG_FILE=/nowhere", "AWS_SHARED_CREDENTIALS_FILE=/nowhere", "AWS_MAX_ATTEMPTS=2",
	}
}

func (b *bucket) put(key string, data []byte) error {
	_, err := b.backend.PutObject(b.name, key, map[string]string{}, bytes.NewReader(data), int64(len(data)), nil)
	return err
}

// putFolder puts the files of a folder below a key.
func (b *bucket) putFolder(folder, key string) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return b.put(key+filepath.ToSlash(name), data)
	})
}

// getFolder is the opposite of putFolder.
func (b *bucket) getFolder(key, folder string) error {
	prefix := gofakes3.NewPrefix(&key, nil)
	list, err := b.backend.ListBucket(b.name, &prefix, gofakes3.ListBucketPage{})
	if err != nil {
		return err
	}
	for _, o := range list.Contents {
		object, err := b.backend.GetObject(b.name, o.Key, nil)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(object.Contents)
		object.Contents.Close()
		path := filepath.Join(folder, filepath.FromSlash(strings.TrimPrefix(o.Key, key)))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o777)); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// TestReachObjects: a corpus in a bucket can be driven again from any machine; one
// of files only where its folder is.
func TestReachObjects(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	for path, near := range map[string]bool{"s3://bucket/boards.txt": true, "boards.txt": false} {
		job := &wire.Job{ID: "boards", Origin: &wire.Origin{Host: "elsewhere", Directory: "/no/such/folder", Paths: []string{path}, Lane: "normal"}}
		err := reach(t.Context(), job, &config.Config{})
		if (err == nil) != near {
			t.Errorf("%s: %v", path, err)
		}
	}
}
