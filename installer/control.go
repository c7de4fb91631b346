//go:build unix

package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// control installs a file of the service and has it obeyed. kardianos/service is one for the services of the machine.
type control interface {
	Install() error   // writes the file, which is not there, and enables the service
	Uninstall() error // disables it and removes the file
	Start() error
	Stop() error
	Restart() error
}

// maxFile bounds the bytes read of an installed file.
const maxFile = 1 << 20

// installed reads a file that Install may have written. ok is false if there is none; a file of another program is a Problem.
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
