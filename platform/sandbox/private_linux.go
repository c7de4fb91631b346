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

// kept is the private directory of an agent while one of its commands runs. Each command holds a shared lock on a file next to the
// directory; the last command removes the directory.
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

// leave removes this command's layers, and the directory if no other command uses it. It may be called again.
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

// removeAll removes a directory whose subdirectories may be closed even to their owner, as those of Go's modules are. No confined process
// may be able to reach the directory any more.
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

// hideSockets adds the sockets that exist in shown directories to Hidden, except granted ones: a program that sees a socket can connect to
// it.
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
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		i := strings.IndexByte(lines.Text(), '/') // in the last column; the others are numbers
		if i < 0 {
			continue
		}
		if path := lines.Text()[i:]; underAny(path, shown) && !slices.Contains(o.Sockets, path) {
			o.Hidden = append(o.Hidden, path)
		}
	}
	return lines.Err()
}
