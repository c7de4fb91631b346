//go:build linux || darwin || windows

package ipc

import (
	"fmt"
	"path/filepath"
)

// checkPath checks the path of a socket.
func checkPath(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("socket path %q is not absolute", path)
	}
	if len(path) > MaxPath {
		return fmt.Errorf("socket path %q has %d bytes, this system allows %d", path, len(path), MaxPath)
	}
	return nil
}
