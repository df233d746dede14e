package object

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// FS returns the objects below a URL as a tree of files, whose names are what
// follows it in theirs. They are *File. Times of change are not told; Sys of a file's
// FileInfo is its version, a string.
func (c *Client) FS(url string) fs.FS { return &tree{c, strings.TrimRight(url, "/")} }

type tree struct {
	client *Client
	url    string
}

// Open opens the file of that name or, if there is none, the folder.
func (t *tree) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if name != "." {
		r, err := t.client.Open(t.url + "/" + name)
		if err == nil {
			return &File{r, entry{name: path.Base(name), size: r.Size(), version: r.tag}}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	entries, err := t.ReadDir(name)
	if err != nil {
		return nil, err
	}
	return &folder{entry{name: path.Base(name), folder: true}, entries}, nil
}

// ReadDir lists a folder. One without anything in it does not exist, unless it is
// the whole tree.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	url := t.url + "/"
	if name != "." {
		url += name + "/"
	}
	bucket, prefix, err := split(url)
	if err != nil {
		return nil, err
	}
	entries := []fs.DirEntry{}
	pages := s3.NewListObjectsV2Paginator(t.client.s3, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix, Delimiter: aws.String("/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.client.ctx)
		if err != nil {
			return nil, explain("list", url, err)
		}
		for _, p := range page.CommonPrefixes {
			if name := strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), prefix), "/"); isName(name) {
				entries = append(entries, entry{name: name, folder: true})
			}
		}
		for _, o := range page.Contents {
			if name := strings.TrimPrefix(aws.ToString(o.Key), prefix); isName(name) {
				entries = append(entries, entry{name: name, size: aws.ToInt64(o.Size), version: aws.ToString(o.ETag)})
			}
		}
	}
	if len(entries) == 0 && name != "." {
		return nil, &fs.PathError{Op: "open", Path: url, Err: fs.ErrNotExist}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// isName reports whether a file can be called so in a folder. Consoles make folders of
// objects without a name, and a key may have two slashes together.
func isName(name string) bool { return name != "." && fs.ValidPath(name) }

// File is an object as a file of a tree; it is an io.ReaderAt, too.
type File struct {
	*Reader
	entry entry
}

// Stat describes the file.
func (f *File) Stat() (fs.FileInfo, error) { return f.entry, nil }

// folder is an open folder.
type folder struct {
	entry entry
	left  []fs.DirEntry
}

func (f *folder) Stat() (fs.FileInfo, error) { return f.entry, nil }
func (f *folder) Close() error               { return nil }

func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.entry.name, Err: errors.New("it is a folder")}
}

func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(f.left) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(f.left) {
		n = len(f.left)
	}
	some := f.left[:n]
	f.left = f.left[n:]
	return some, nil
}

// entry describes a file or a folder.
type entry struct {
	name    string
	size    int64
	version string
	folder  bool
}

func (e entry) Name() string               { return e.name }
func (e entry) Size() int64                { return e.size }
func (e entry) IsDir() bool                { return e.folder }
func (e entry) Type() fs.FileMode          { return e.Mode().Type() }
func (e entry) Info() (fs.FileInfo, error) { return e, nil }
func (e entry) ModTime() time.Time         { return time.Time{} }
func (e entry) Sys() any                   { return e.version }

func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir | 0o555
	}
	return 0o444
}
