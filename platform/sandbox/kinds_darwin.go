package sandbox

import (
	"fmt"
	"os"
	"syscall"
)

var kinds = []Kind{Seatbelt}

// sandboxExec is part of macOS. Its manual calls it deprecated, but macOS has no
// replacement for programs that are not bundles.
const sandboxExec = "/usr/bin/sandbox-exec"

func confine(k Kind, p Profile, argv []string) int {
	if k != Seatbelt {
		return complain(statusConfine, fmt.Errorf("%q is not supported on macOS", k))
	}
	full := append([]string{sandboxExec, "-p", seatbelt(p)}, argv...)
	return notStarted(sandboxExec, syscall.Exec(sandboxExec, full, os.Environ()))
}

func inner([]string) int {
	return complain(statusConfine, fmt.Errorf("%w: namespaces need Linux", ErrUnsupported))
}

// ClosesAbstractSockets reports whether connections to abstract sockets outside are
// impossible. It is always true: macOS has no such sockets.
func ClosesAbstractSockets() bool { return true }
