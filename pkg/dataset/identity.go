package dataset

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// identityName is the file of an output that has its identity.
const identityName = ".output-id"

// identityPattern is what an identity looks like. People may write one too: a
// folder that takes the place of a lost one takes its identity.
var identityPattern = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// Identity returns what tells an output from all others, whatever its path is on a
// machine, or nothing where it has none yet.
func Identity(output string) (string, error) {
	s, err := openStore(output)
	if err != nil {
		return "", fmt.Errorf("identity of the output %s: %w", output, err)
	}
	return identity(s, output)
}

func identity(s store, output string) (string, error) {
	data, err := fs.ReadFile(s, identityName)
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

// Identify returns the identity of an output, after giving it one where it has none.
// Processes that do so at the same time agree. In a bucket it also finds out whether
// commits are possible.
func Identify(output string) (string, error) {
	s, err := openStore(output)
	if err != nil {
		return "", fmt.Errorf("identify the output %s: %w", output, err)
	}
	for {
		id, err := identity(s, output)
		if err != nil {
			return "", err
		}
		if b, ok := s.(*bucket); ok && id != "" {
			err = b.prove(identityName, id+"\n")
		}
		if id == "" {
			err = identify(s)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("identify the output %s: %w", output, err)
		}
		if id != "" {
			return id, nil
		}
	}
}

// identify gives an output an identity, unless it has one.
func identify(s store) error {
	temp, err := s.create("identity.*.tmp")
	if err != nil {
		return err
	}
	defer s.discard(temp)
	random := make([]byte, 8)
	_, err = rand.Read(random)
	if err == nil {
		_, err = temp.WriteString(hex.EncodeToString(random) + "\n")
	}
	if err := errors.Join(err, temp.Sync()); err != nil {
		return err
	}
	if err := s.put(temp, identityName); err != nil {
		return err
	}
	return s.sync(".")
}
