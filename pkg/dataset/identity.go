package dataset

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// identityName is the file of an output folder that has its identity.
const identityName = ".output-id"

// identityPattern is what an identity looks like. People may write one too: a
// folder that takes the place of a lost one takes its identity.
var identityPattern = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// Identity returns what tells an output folder from all others, whatever its
// path is on a machine, or nothing where the folder has none yet.
func Identity(output string) (string, error) {
	data, err := os.ReadFile(filepath.Join(output, identityName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	id := strings.TrimSpace(string(data))
	if err == nil && !identityPattern.MatchString(id) {
		err = fmt.Errorf("%s does not hold one: want up to 64 lower-case letters, digits or '-'", identityName)
	}
	if err != nil {
		return "", fmt.Errorf("identity of the output %s: %w", output, err)
	}
	return id, nil
}

// Identify returns the identity of an output folder, after giving it one where
// it has none. Processes that do so at the same time agree.
func Identify(output string) (string, error) {
	for {
		id, err := Identity(output)
		if id != "" || err != nil {
			return id, err
		}
		if err := identify(output); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("identify the output %s: %w", output, err)
		}
	}
}

// identify gives a folder an identity, unless it has one.
func identify(output string) error {
	temp, err := createTemp(filepath.Join(output, tempName), "identity.*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	random := make([]byte, 8)
	_, err = rand.Read(random)
	if err == nil {
		_, err = temp.WriteString(hex.EncodeToString(random) + "\n")
	}
	if err := errors.Join(err, temp.Chmod(0o644), temp.Sync()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), filepath.Join(output, identityName)); err != nil {
		return err
	}
	return syncDir(output)
}
