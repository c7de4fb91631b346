//go:build linux || darwin

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks bounds the links in a path, as Linux does (path_resolution(7)).
const maxLinks = 40

// Resolve returns path without links. If it leads through a link that an agent may have
// made, in Writable or Roots, the error is ErrAgentLink. An agent may put a link into the
// result later, so the caller must open it without following links.
func (p Profile) Resolve(path string) (string, error) { return p.resolve("", path) }

// resolve is Resolve with the file system's root at root.
func (p Profile) resolve(root, path string) (string, error) {
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(root + next)
		switch {
		case errors.Is(err, unix.EINVAL): // no link
			at = next
			continue
		case err != nil:
			return "", err
		case p.agentsChange(root, at):
			return "", &fs.PathError{Op: "follow", Path: next, Err: ErrAgentLink}
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "follow", Path: next, Err: unix.ELOOP}
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}

// agentsChange reports whether an agent may be able to change the names in a directory.
// In Roots that takes this user's rights, too.
func (p Profile) agentsChange(root, dir string) bool {
	if underAny(dir, p.Writable) {
		return true
	}
	if !underAny(dir, p.Roots) || within(p.Home, dir) {
		return false
	}
	info, err := os.Stat(root + dir)
	if err != nil {
		return true
	}
	if home, err := os.Stat(root + p.Home); err == nil && os.SameFile(info, home) { // Home is a link, or below one
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid() || unix.Access(root+dir, unix.W_OK) == nil
}

func underAny(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(path, dir) })
}
