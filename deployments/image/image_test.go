package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

const (
	root    = "../.."
	release = "v0.0.0-image-test"
)

// TestImage builds the binary by the Makefile and by the Containerfile, packs
// it, and looks at what came out.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	binary := sameBinary(t, dir)
	checkBinary(t, binary)

	archives := []string{filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")}
	for _, out := range archives {
		// What is packed is the caller's affair: one binary stands for both platforms.
		if err := pack(release, out, []string{"linux/amd64=" + binary, "linux/arm64=" + binary}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(read(t, archives[0]), read(t, archives[1])) {
		t.Error("packing twice gives two archives")
	}
	images := unpack(t, archives[0], filepath.Join(dir, "layout"))
	if len(images) != 2 {
		t.Fatalf("the image is for %d platforms, want 2", len(images))
	}
	for platform, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.OS + "/" + config.Architecture; got != platform {
			t.Errorf("the image for %s says that it is for %s", platform, got)
		}
		checkConfig(t, &config.Config)
		checkFiles(t, image, filepath.Join(dir, "root", config.Architecture))
	}
}

// sameBinary builds the binary in this folder as make build does, and in a copy
// of the sources elsewhere as the Containerfile does: the bytes must be the same.
func sameBinary(t *testing.T, dir string) string {
	t.Helper()
	plan, err := exec.Command("make", "-s", "-n", "-C", root, "build", "VERSION="+release).Output()
	if err != nil {
		t.Fatal(err)
	}
	made, contained := filepath.Join(dir, "made"), filepath.Join(dir, "contained")
	build(t, root, strings.Replace(string(plan), "-o bin/flipmill", "-o "+made, 1))

	elsewhere := filepath.Join(dir, "sources")
	copySources(t, elsewhere)
	text := containerfile(t)
	run := regexp.MustCompile(`(?m)^RUN (?:--mount=\S+\s+)*(.*go build .*) -o \S+ (\./cmd/flipmill)$`).FindStringSubmatch(text)
	if run == nil {
		t.Fatalf("no RUN line with go build in\n%s", text)
	}
	build(t, elsewhere, run[1]+" -o "+contained+" "+run[2])
	if !bytes.Equal(read(t, made), read(t, contained)) {
		t.Error("make build and the Containerfile, in two folders, give two binaries")
	}
	return made
}

func build(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "VERSION="+release)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

func containerfile(t *testing.T) string {
	t.Helper()
	return strings.ReplaceAll(string(read(t, "Containerfile")), "\\\n", " ")
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// copySources copies what the binary is built from. Go remembers a passed test
// until a file that the test itself read changes.
func copySources(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, name)
		if err = errors.Join(err, relErr); err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{"bin", "out", "dist", "testdata", "deployments"}, d.Name()) || len(rel) > 1 && rel[0] == '.' {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), content, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkBinary: an image from scratch has no loader, and nothing in the environment.
func checkBinary(t *testing.T, binary string) {
	t.Helper()
	file, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary is not static: it has a %v segment", p.Type)
		}
	}
	checkVersion(t, binary)
}

func checkVersion(t *testing.T, binary string) {
	t.Helper()
	version := exec.Command(binary, "version")
	version.Env = []string{}
	out, err := version.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "flipmill "+release+" ") {
		t.Errorf("flipmill version: %v, output %q, want the version it was built with", err, out)
	}
}

// unpack returns the images of an archive by platform. Reading them checks all
// digests.
func unpack(t *testing.T, archive, dir string) map[string]v1.Image {
	t.Helper()
	extract(t, bytes.NewReader(read(t, archive)), dir, func(*tar.Header) {})
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the archive has %d images, want 1", len(manifest.Manifests))
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	variants, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, m := range variants.Manifests {
		if images[m.Platform.String()], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// extract writes the files of a tar archive below dir, and shows each header.
func extract(t *testing.T, from io.Reader, dir string, see func(*tar.Header)) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		see(h)
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(name, content, fs.FileMode(h.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkConfig compares what the image says with the Containerfile's last stage.
func checkConfig(t *testing.T, c *v1.Config) {
	t.Helper()
	text := containerfile(t)
	_, stage, _ := strings.Cut(text, "FROM scratch\n")
	stage = strings.ReplaceAll(stage, "${VERSION}", release)
	lines := []string{"USER " + c.User, "WORKDIR " + c.WorkingDir, fmt.Sprintf("ENTRYPOINT [%q]", strings.Join(c.Entrypoint, " "))}
	for key, value := range c.Labels {
		lines = append(lines, fmt.Sprintf("LABEL %s=%q", key, value))
	}
	for _, line := range lines {
		if !strings.Contains(stage, line+"\n") {
			t.Errorf("the image has %s, the Containerfile has not:\n%s", line, stage)
		}
	}
	if n := strings.Count(stage, "LABEL"); n != len(c.Labels) {
		t.Errorf("the image has %d labels, the Containerfile %d", len(c.Labels), n)
	}
	var uid, gid int
	if _, err := fmt.Sscanf(c.User, "%d:%d", &uid, &gid); err != nil || uid == 0 || gid == 0 {
		t.Errorf("the user is %q, want numbers other than 0", c.User)
	}
}

// checkFiles extracts the image's files and looks at each: the binary is the
// only program.
func checkFiles(t *testing.T, image v1.Image, dir string) {
	t.Helper()
	var got []string
	content := mutate.Extract(image)
	defer content.Close()
	extract(t, content, dir, func(h *tar.Header) {
		got = append(got, fmt.Sprintf("%s %s %d:%d", h.FileInfo().Mode(), h.Name, h.Uid, h.Gid))
		if !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
			t.Errorf("%s is of %v, want no time", h.Name, h.ModTime)
		}
	})
	want := []string{
		"drwxr-xr-x data 65532:65532",
		"drwxr-xr-x etc 0:0",
		"drwxr-xr-x etc/ssl 0:0",
		"drwxr-xr-x etc/ssl/certs 0:0",
		"-rw-r--r-- etc/ssl/certs/ca-certificates.crt 0:0",
		"-rwxr-xr-x flipmill 0:0",
		"drwxr-xr-x tmp 65532:65532",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the image's files are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	checkVersion(t, filepath.Join(dir, "flipmill"))
	if !x509.NewCertPool().AppendCertsFromPEM(read(t, filepath.Join(dir, "etc/ssl/certs/ca-certificates.crt"))) {
		t.Error("the image has no certificates of authorities")
	}
}
