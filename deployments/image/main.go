// Command image packs binaries of flipmill into a container image for all
// roles, as an OCI archive, without a container engine:
//
//	image -version v1.2.3 -out image.tar linux/amd64=flipmill-amd64 linux/arm64=flipmill-arm64
//
// The image is the one that the Containerfile describes: from scratch, so
// without a shell or anything else to run, and with a user other than root. It
// is a function of the arguments and the binaries: no clock and no host is in it.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// owner is the user and group of the image's process. Kubernetes takes only a
// number for one that is not root.
const owner = 65532

func main() {
	version := flag.String("version", "", "the release that the binaries are of")
	out := flag.String("out", "image.tar", "the archive to write")
	flag.Parse()
	if err := pack(*version, *out, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

// pack writes the archive of an image with a variant for each platform=binary.
func pack(version, out string, binaries []string) error {
	if len(binaries) == 0 || version == "" {
		return fmt.Errorf("want -version, and a platform=binary for each platform")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		platform, file, ok := strings.Cut(b, "=")
		target, err := v1.ParsePlatform(platform)
		if !ok || err != nil {
			return fmt.Errorf("%q: want platform=binary, such as linux/amd64=bin/flipmill", b)
		}
		image, err := variant(version, target, file)
		if err != nil {
			return fmt.Errorf("image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: target}})
	}
	dir, err := os.MkdirTemp("", "flipmill-image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// Podman and skopeo go by the first name, Docker by the second.
	names := map[string]string{"org.opencontainers.image.ref.name": version, "io.containerd.image.name": "docker.io/library/flipmill:" + version}
	if err := l.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	return archive(out, os.DirFS(dir))
}

// variant returns the image for one platform.
func variant(version string, platform *v1.Platform, binary string) (v1.Image, error) {
	content, err := rootFS(binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Config = v1.Config{
		Entrypoint: []string{"/flipmill"},
		User:       fmt.Sprintf("%d:%d", owner, owner),
		WorkingDir: "/data",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "flipmill",
			"org.opencontainers.image.source":   "https://github.com/flipmill/flipmill",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  version,
		},
	}
	return mutate.ConfigFile(image, config)
}

// rootFS returns all files of the image as a tar archive: the binary, the
// authorities that vouch for servers, the working folder, and one for temporary
// files.
func rootFS(binary string) ([]byte, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, entry := range []struct {
		tar.Header
		content []byte
	}{
		{tar.Header{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o755, Uid: owner, Gid: owner}, nil},
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}, nil},
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/ssl/", Mode: 0o755}, nil},
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/ssl/certs/", Mode: 0o755}, nil},
		{tar.Header{Typeflag: tar.TypeReg, Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, authorities()},
		{tar.Header{Typeflag: tar.TypeReg, Name: "flipmill", Mode: 0o755}, program},
		{tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o755, Uid: owner, Gid: owner}, nil},
	} {
		entry.Size = int64(len(entry.content))
		if err := w.WriteHeader(&entry.Header); err != nil {
			return nil, err
		}
		if _, err := w.Write(entry.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// authorities returns the certificates of those whom Mozilla trusts without
// conditions; a file of certificates cannot express any.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// archive writes a tree of files as a tar archive.
func archive(out string, tree fs.FS) error {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}
		var data []byte
		if !d.IsDir() {
			if data, err = fs.ReadFile(tree, name); err != nil {
				return err
			}
			header = &tar.Header{Typeflag: tar.TypeReg, Name: path.Clean(name), Mode: 0o644, Size: int64(len(data))}
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(out, content.Bytes(), 0o644)
}
