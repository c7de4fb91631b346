//go:build linux || darwin

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// notStarted prints why the command was not started, and returns the exit status for
// that.
func notStarted(name string, err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return complain(statusNotFound, fmt.Errorf("%s: not found in the sandbox", name))
	}
	return complain(statusExec, fmt.Errorf("%s: %w", name, err))
}
