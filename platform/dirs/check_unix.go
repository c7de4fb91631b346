//go:build unix

package dirs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Check looks for a directory in the paths of d.Runtime and d.State that this user cannot
// use. Its error names that directory, its owner, and the remedy. It explains failures:
// nil means that it finds no cause, not that everything works.
func (d Dirs) Check() error {
	for _, dir := range []string{d.Runtime, d.State} {
		if err := usable(dir); err != nil {
			return err
		}
	}
	return nil
}

// usable checks dir or, if dir does not exist, the directory in which it would be made.
func usable(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil && at != filepath.Dir(at) {
			continue // at does not exist, or a directory above it is closed to this user
		}
		if err != nil {
			return nil
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		_, inside := os.Lstat(filepath.Join(at, "x"))
		mine := ok && int(stat.Uid) == os.Geteuid()
		switch {
		case !ok || at != dir && !errors.Is(inside, fs.ErrPermission) && unix.Access(at, unix.W_OK) == nil:
			return nil
		case at == dir && mine && unix.Access(at, unix.R_OK|unix.W_OK|unix.X_OK) == nil:
			return nil
		case mine:
			return fmt.Errorf("you have no access to %s (mode %04o): chmod u+rwx %s", at, info.Mode().Perm(), at)
		}
		return fmt.Errorf("%s belongs to %s: %s", at, nameOf(stat.Uid), cure(dir))
	}
}

// cure says which variable to set where dir, which the variable has led to, cannot be
// used.
func cure(dir string) string {
	for _, name := range []string{HomeVar, "XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
		if above := strings.TrimRight(os.Getenv(name), "/"); above != "" && strings.HasPrefix(dir, above+"/") {
			return "unset " + name + ", or set it to a directory of your own"
		}
	}
	return "set HOME to your own home directory, or " + HomeVar + " to a directory of your own"
}

// nameOf returns the name of a user, or "user" with the number if there is no name.
func nameOf(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "user " + id
}

// Full returns the directory in which a file could not be written because the disk or the
// user's quota on it is full.
func Full(err error) (dir string, full bool) {
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return "", false
	}
	return filepath.Dir(at.Path), true
}
