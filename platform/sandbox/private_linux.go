package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// kept is the private directory of an agent while one of its commands runs. Each command
// holds a shared lock on a file next to the directory; the last command removes the
// directory.
type kept struct {
	dir    string   // "" if there is none
	lock   *os.File // nil if there is no directory, and after leave
	layers string   // the directory for changes of caches, for this command alone
}

// occupy makes the directory, unless dir is "", and locks it.
func occupy(dir string) (*kept, error) {
	k := &kept{dir: dir}
	if dir == "" {
		return k, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	k.lock = lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH); err != nil { // waits while another process removes the directory
		return nil, errors.Join(fmt.Errorf("%s: %w", lock.Name(), err), lock.Close())
	}
	for name, mode := range map[string]fs.FileMode{"": 0o700, "tmp": 0o1777 | os.ModeSticky, "home": 0o700, "layers": 0o700} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, mode)); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
	}
	if k.layers, err = os.MkdirTemp(filepath.Join(dir, "layers"), ""); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return k, nil
}

// leave removes this command's layers, and the directory if no other command uses it. It
// may be called again.
func (k *kept) leave() {
	if k.lock == nil {
		return
	}
	removeAll(k.layers)
	if unix.Flock(int(k.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		removeAll(k.dir)
	}
	k.lock.Close()
	k.lock = nil
}

// removeAll removes a directory whose subdirectories may be closed even to their owner,
// as those of Go's modules are. No confined process may be able to reach the directory
// any more.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// shown returns the paths outside that the command can see.
func (o *order) shown() []string { return slices.Concat(o.Writable, o.Readable, o.Caches, systemDirs) }

// hideSockets adds the sockets that exist in shown directories to Hidden, except granted
// ones: a program that sees a socket can connect to it. The kernel lists the names by
// which sockets were bound. A relative name is looked for where programs of this user run
// now, and in the shown directories: a program that has since gone elsewhere may have
// bound it there.
func (o *order) hideSockets() error {
	f, err := os.Open("/proc/net/unix")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	shown := o.shown()
	hide := func(path string) {
		if slices.Contains(o.Sockets, path) {
			return
		}
		if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(real, filepath.Base(path))
		}
		if underAny(path, shown) {
			o.Hidden = append(o.Hidden, path)
		}
	}
	var relative []string
	lines := bufio.NewScanner(f)
	lines.Scan() // names of the columns
	for lines.Scan() {
		switch name := socketName(lines.Text()); {
		case filepath.IsAbs(name):
			hide(name)
		case name != "" && name[0] != '@': // abstract sockets have no file
			relative = append(relative, name)
		}
	}
	if len(relative) > 0 {
		for _, dir := range slices.Concat(workingDirs(), shown) {
			for _, name := range relative {
				if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode()&os.ModeSocket != 0 {
					hide(filepath.Join(dir, name))
				}
			}
		}
	}
	return lines.Err()
}

// socketName returns the last column of a line of /proc/net/unix, which seven without
// spaces precede; "" if the socket has no name.
func socketName(line string) string {
	for range 7 {
		_, line, _ = strings.Cut(strings.TrimLeft(line, " "), " ")
	}
	return line
}

// workingDirs returns the working directories of the processes that this user may
// inspect, each once.
func workingDirs() []string {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is valid
	var dirs []string
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil { // otherwise it has ended, or is another user's
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
