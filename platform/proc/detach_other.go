//go:build !linux && !darwin && !windows

package proc

import (
	"errors"
	"os"
)

// StartDetached is not written for this system yet and always fails.
func StartDetached(string, []string, []string, string) (*os.Process, error) {
	return nil, errors.New("detached programs are not supported on this system yet")
}
