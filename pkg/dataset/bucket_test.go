package dataset_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/object"
	"github.com/flipmill/flipmill/pkg/puzzle"
)

// inBucket is an output in a bucket of a server in this process.
const inBucket = "s3://bucket/some/output"

// bucketServer is that server. The environment leads to it.
type bucketServer struct {
	*httptest.Server
	sound http.Handler
	spoil atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (done bool)] // before each answer
}

func serveBucket(t *testing.T) *bucketServer {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	b := &bucketServer{sound: gofakes3.New(backend).Server()}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spoil := b.spoil.Load(); spoil == nil || !(*spoil)(w, r) {
			b.sound.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(b.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": b.URL, "AWS_ACCESS_KEY_ID": "us", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_MAX_ATTEMPTS": "2",
		"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_REGION": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	return b
}

func (b *bucketServer) spoils(spoil func(w http.ResponseWriter, r *http.Request) (done bool)) {
	b.spoil.Store(&spoil)
}

// objects returns what is in the output, as tree does for a folder.
func (b *bucketServer) objects(t *testing.T) map[string]string {
	t.Helper()
	client, err := object.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, all := client.FS(inBucket), map[string]string{}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBucket: writers of one output that race, each of whose objects arrives though
// its first answer is lost, leave the files of a folder, and no other.
func TestBucket(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	folder := t.TempDir()
	c.write(t, folder)
	b := serveBucket(t)
	var mu sync.Mutex
	lost := map[string]bool{}
	b.spoils(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		again := lost[r.URL.Path]
		if r.Method == http.MethodPut {
			lost[r.URL.Path] = true
		}
		mu.Unlock()
		if r.Method != http.MethodPut || again {
			return false
		}
		b.sound.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
	var writing sync.WaitGroup
	for range 2 {
		writing.Go(func() { c.write(t, inBucket) })
	}
	writing.Wait()
	if got, want := b.objects(t), tree(t, folder); !maps.Equal(got, want) {
		t.Errorf("objects %v, want the files %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	if len(lost) != 8 {
		t.Errorf("answers lost for %v", lost)
	}
	path := dataset.Path(inBucket, "demo")
	report, err := dataset.Verify(path, nil)
	if err != nil || !report.OK() {
		t.Errorf("verify: %+v, %v", report, err)
	}
	m, err := dataset.ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	if missing, err := m.Missing(path); len(missing) > 0 || err != nil {
		t.Errorf("missing: %v, %v", missing, err)
	}
	reader, err := dataset.NewReader(inBucket, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if parts, counts, err := reader.Committed(); parts != 3 || err != nil || counts.Rejected() != m.Counts.Rejected {
			t.Errorf("a reader finds %d parts, %v", parts, err)
		}
	}
}

// bucketPart begins the first part of a dataset in the bucket.
func bucketPart(t *testing.T, spec puzzle.Spec) *dataset.Part {
	t.Helper()
	d, err := dataset.Open(inBucket, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	part, err := d.NewPart(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(part.Abort)
	return part
}

// TestBucketOfAnother: an object of other content that has a part's name stays, and is
// an error that no waiting helps.
func TestBucketOfAnother(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	b := serveBucket(t)
	part := bucketPart(t, spec)
	e, err := dataset.NewEncoder(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Add(c.chunks[0].encode(t, e)); err != nil { // half of the part
		t.Fatal(err)
	}
	if _, err := part.Commit(); err != nil {
		t.Fatal(err)
	}
	before := b.objects(t)
	whole := bucketPart(t, spec)
	for _, chunk := range c.chunks[:2] {
		if err := whole.Add(chunk.encode(t, e)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = whole.Commit()
	if err == nil || dataset.Passes(err) || !strings.Contains(err.Error(), inBucket+"/job=demo/re") || !strings.Contains(err.Error(), "exists with other content") {
		t.Errorf("another part of that number: %v", err)
	}
	if !maps.Equal(b.objects(t), before) {
		t.Error("an object was replaced")
	}
}

// TestBucketTakesNothing: a part that a bucket does not take can be committed later.
func TestBucketTakesNothing(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	c := smallCorpus(t, spec)
	b := serveBucket(t)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	for status, code := range map[int]string{403: "AccessDenied", 503: "ServiceUnavailable", 507: "XMinioStorageFull"} {
		b.spoils(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut {
				return false
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>not now</Message></Error>", code)
			return true
		})
		_, err := bucketPart(t, spec).Commit()
		if !dataset.Passes(err) || !strings.Contains(err.Error(), code+": not now") || !strings.Contains(err.Error(), inBucket) {
			t.Errorf("%s: %v", code, err)
		}
	}
	b.spoils(func(http.ResponseWriter, *http.Request) bool { return false })
	if got := b.objects(t); len(got) > 0 {
		t.Errorf("it has %v", got)
	}
	c.write(t, inBucket)
}

// TestBucketIdentity: whoever asks first, an output in a bucket has one identity, and
// records of jobs are kept and dropped in it. A server that would replace what is there
// is refused.
func TestBucketIdentity(t *testing.T) {
	b := serveBucket(t)
	ids := make([]string, 4)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var err error
			if ids[i], err = dataset.Identify(inBucket); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if id, err := dataset.Identity(inBucket); len(id) != 16 || err != nil || len(slices.Compact(ids)) != 1 || ids[0] != id {
		t.Errorf("identities %q, now %q, %v", ids, id, err)
	}
	for _, record := range []string{"one", "another"} {
		if err := dataset.KeepRecord(inBucket, "demo", []byte(record)); err != nil {
			t.Error(err)
		}
		if got, err := dataset.Records(inBucket); err != nil || len(got) != 1 || string(got["demo"]) != record {
			t.Errorf("records %q, %v", got, err)
		}
	}
	for range 2 {
		if err := dataset.DropRecord(inBucket, "demo"); err != nil {
			t.Error(err)
		}
	}
	if free, err := dataset.Probe(inBucket); free != -1 || err != nil {
		t.Errorf("probe: %d, %v", free, err)
	}
	if got := b.objects(t); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
	b.spoils(func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("If-None-Match")
		return false
	})
	_, err := dataset.Identify(inBucket)
	_, probed := dataset.Probe(inBucket)
	for _, err := range []error{err, probed} {
		if err == nil || dataset.Passes(err) || !strings.Contains(err.Error(), "it knows no If-None-Match") {
			t.Errorf("a server that replaces: %v", err)
		}
	}
}

// TestBucketIsNotReplaced: what replaces a whole dataset is refused, and leaves it
// as it is.
func TestBucketIsNotReplaced(t *testing.T) {
	spec := testSpec(t, "plus", puzzle.Either)
	b := serveBucket(t)
	path := smallCorpus(t, spec).write(t, inBucket)
	before := b.objects(t)
	if _, _, err := dataset.Compact(path, 64, nil); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("compact: %v", err)
	}
	d, err := dataset.Open(inBucket, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	m := &dataset.Manifest{Counts: dataset.Counts{Reasons: map[puzzle.Reason]int64{puzzle.WorkerFailed: 3}}}
	retry, err := d.Retry()
	retrying, err2 := d.Retrying()
	if retry != nil || retrying != nil || errors.Join(err, err2) != nil || d.Retryable(m) != 0 {
		t.Errorf("retry: %v, %v, %v", retry, retrying, errors.Join(err, err2))
	}
	if !maps.Equal(b.objects(t), before) {
		t.Error("it has changed")
	}
}
