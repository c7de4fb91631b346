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

// noWait keeps open from waiting if the path is a named pipe without another end.
const noWait = unix.O_NONBLOCK

func makeDir(path string) error { return os.MkdirAll(path, 0o700) }

// openFile opens a file, or makes it if flags say so; a new file is closed to others. It
// does not follow a link.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|noWait, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, which is not allowed here", path)
	}
	return f, err
}

func openRead(path string) (*os.File, error) { return os.Open(path) }

// createTemp makes a file with a new name that begins with prefix.
func createTemp(dir, prefix string) (*os.File, error) { return os.CreateTemp(dir, prefix+"*") } // 0600 and O_EXCL

func check(path string, info fs.FileInfo, fix string) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is open to other users (mode %04o); make it private: chmod %s %s", path, info.Mode().Perm(), fix, path)
	}
	return nil
}

func checkOwned(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is writable by other users (mode %04o); make it private: chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}

func replace(from, to string) error { return os.Rename(from, to) }

// syncDir makes a rename last through a loss of power.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
