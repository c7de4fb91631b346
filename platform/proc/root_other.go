//go:build !windows

package proc

import "os"

// Root reports whether this process runs as the account that nothing on the machine is
// closed to: root, or LocalSystem of Windows.
func Root() bool { return os.Geteuid() == 0 }
