//go:build unix

package ipc

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckOwn returns an error if there is no socket of this user at the path, for a program
// that connects to the server of another program: who owns a socket answers there. It
// does not connect.
func CheckOwn(path string) error {
	info, err := os.Lstat(path) // a link could be turned elsewhere by its owner
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is not a socket", path)
	case !ok || int(stat.Uid) != os.Getuid():
		return fmt.Errorf("the socket %s belongs to another user", path)
	}
	return nil
}
