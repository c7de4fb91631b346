//go:build unix

package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// maxFile bounds the bytes read of an installed file.
const maxFile = 1 << 20

// installed reads a file that Install may have written. ok is false if there is no such
// file. A file that tether did not make is a Problem.
func installed(path string) (text string, s Service, ok bool, err error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", s, false, nil
	case err != nil:
		return "", s, false, fmt.Errorf("read the installed service: %w", err)
	case len(b) > maxFile:
		return "", s, false, foreign(path)
	}
	if s, ok = recorded(string(b)); !ok {
		return "", s, false, foreign(path)
	}
	return string(b), s, true, nil
}
