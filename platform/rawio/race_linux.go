//go:build race

package rawio

import "syscall"

// unnoted makes the functions below do nothing. It is for a test.
var unnoted bool

// The race detector learns from calls of package syscall that a write comes before the read of its bytes, so noteWrite and noteRead make two
// that do nothing else.
func noteWrite() {
	if !unnoted {
		_, _ = syscall.Write(-1, nil)
	}
}

func noteRead(fd uintptr) {
	if !unnoted {
		_, _ = syscall.Read(int(fd), nil)
	}
}
