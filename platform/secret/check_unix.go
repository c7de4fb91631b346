//go:build linux || darwin

package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow keeps from following a link.
const noFollow = unix.O_NOFOLLOW | noWait

// noWait keeps from waiting for the other end of a pipe.
const noWait = unix.O_NONBLOCK

func check(path string, info fs.FileInfo, fix string) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is open to other users (mode %04o); close it: chmod %s %s", path, info.Mode().Perm(), fix, path)
	}
	return nil
}

func checkOwned(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be changed by other users (mode %04o); keep them from it: chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// syncDir makes a rename last through a loss of power.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
