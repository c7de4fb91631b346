//go:build linux || darwin

package proc

import (
	"fmt"
	"os"
	"syscall"
)

// Become makes this process the program at the absolute path, with these arguments, its
// own name first, and this environment and directory. It then returns only if that fails.
// On Windows, which has nothing like it, the program runs as a child, and Become returns
// its exit status.
func Become(path string, argv []string) (status int, err error) {
	return 0, fmt.Errorf("start %q: %w", path, syscall.Exec(path, argv, os.Environ()))
}
