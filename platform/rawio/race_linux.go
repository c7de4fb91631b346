//go:build race

package rawio

import "syscall"

// The race detector learns from calls of package syscall that a write happens before the
// read of its bytes. So noteWrite and noteRead make such calls, which have no other
// effect.

func noteWrite()          { _, _ = syscall.Write(-1, nil) }
func noteRead(fd uintptr) { _, _ = syscall.Read(int(fd), nil) }
