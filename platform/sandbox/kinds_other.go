//go:build !linux && !darwin

package sandbox

import (
	"fmt"
	"path/filepath"
)

var kinds []Kind

func confine(k Kind, _ Profile, _ []string) int {
	return complain(statusConfine, fmt.Errorf("%w: %q is not supported on this system", ErrUnsupported, k))
}

func inner([]string) int {
	return complain(statusConfine, fmt.Errorf("%w: namespaces need Linux", ErrUnsupported))
}

// Resolve returns path without links.
func (p Profile) Resolve(path string) (string, error) { return filepath.EvalSymlinks(path) }

// ClosesAbstractSockets reports whether the kernel can refuse connections to abstract
// sockets outside. It is always false here.
func ClosesAbstractSockets() bool { return false }
