//go:build !linux && !darwin

package sandbox

import "fmt"

var kinds []Kind

func confine(k Kind, _ Profile, _ []string) int {
	return complain(statusConfine, fmt.Errorf("%w: %q is not supported on this system", ErrUnsupported, k))
}

func inner([]string) int {
	return complain(statusConfine, fmt.Errorf("%w: namespaces need Linux", ErrUnsupported))
}

// ClosesAbstractSockets reports whether the kernel can refuse connections to abstract sockets outside. It is always false here.
func ClosesAbstractSockets() bool { return false }
