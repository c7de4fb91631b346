package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The file system of a wall is a memory file system with only the mounts that are made
// here. The sources of mounts are opened below oldRoot and their mount points below
// newRoot, both with openat2 or os.Root, so that a link that the agent has made in a
// granted directory leads nowhere else.

// baseDir is the first mount point of the new file system, which hides it while the file
// system is built. Any directory that always exists would do.
const (
	baseDir = "/tmp"
	oldRoot = "/old"
	newRoot = "/new"
)

// Attributes of mounts.
const (
	readOnly  = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	mayChange = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	device    = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC // the node is read-only, not the device
)

type builder struct {
	old   int      // the directory oldRoot
	new   *os.Root // newRoot
	in    order
	fixed []string // directories inside that fix has made mount points
}

// build makes the file system of the profile, makes it the root, and unmounts the former
// root.
func build(in order) error {
	if err := begin(); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	old, err := unix.Open(oldRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(old)
	root, err := os.OpenRoot(newRoot)
	if err != nil {
		return err
	}
	defer root.Close()
	b := builder{old: old, new: root, in: in}
	for _, step := range []func() error{
		b.system, b.devices, b.processes, func() error { return b.private(in.Profile) }, func() error { return b.grants(in) },
		func() error { return b.hide(in) }, func() error { return b.sockets(in.Sockets) }, func() error { return b.door(in.Door) }, b.end,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// begin makes a memory file system the root, with the former one at oldRoot.
func begin() error {
	steps := []func() error{
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return unix.Mount("tmpfs", baseDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755") },
		func() error { return os.Mkdir(baseDir+oldRoot, 0o755) },
		func() error { return unix.PivotRoot(baseDir, baseDir+oldRoot) },
		func() error { return os.Chdir("/") },
		func() error { return os.Mkdir(newRoot, 0o755) },
		func() error { return unix.Mount("tmpfs", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755") },
		func() error { return os.Mkdir(nothingDir, 0o500) },
		func() error { return os.WriteFile(nothingFile, nil, 0o400) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Empty paths that are mounted over hidden paths.
const (
	nothingDir  = "/nothing"
	nothingFile = "/nothing.file"
)

// end makes the new tree the root, read-only apart from the mounts in it, and unmounts
// the former root.
func (b *builder) end() error {
	if err := unix.MountSetattr(unix.AT_FDCWD, newRoot, 0, &unix.MountAttr{Attr_set: readOnly}); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the former root: %w", err)
	}
	return os.Chdir("/")
}

// system shows the directories of the system. Missing ones are left out.
func (b *builder) system() error {
	for _, path := range systemDirs {
		if err := b.show(path, readOnly); err != nil {
			return err
		}
	}
	return b.show("/etc/resolv.conf", readOnly) // often a link to a file below /run
}

// devices gives the wall a /dev with the devices that any user may use, and terminals of
// its own.
func (b *builder) devices() error {
	if err := b.memory("/dev", "mode=0755", unix.MS_NOSUID); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := b.show("/dev/"+name, device); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := b.new.Symlink(target, "dev/"+link); err != nil {
			return err
		}
	}
	if err := b.new.Mkdir("dev/pts", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("devpts", newRoot+"/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	if err := b.memory("/dev/shm", "mode=1777", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	return b.console()
}

// console shows the command's own terminal at /dev/console, so that it has a name inside.
// The terminal is a device outside, and the command inherits it as standard input.
func (b *builder) console() error {
	var own, named unix.Stat_t
	name, err := os.Readlink(oldRoot + "/proc/self/fd/0")
	if err != nil || !terminal() || unix.Fstat(0, &own) != nil {
		return nil
	}
	if unix.Stat(oldRoot+name, &named) != nil || own.Rdev != named.Rdev || own.Ino != named.Ino {
		return nil // the terminal belongs to another devpts
	}
	return b.bind(name, "/dev/console", device)
}

// processes gives the wall a /proc with its own processes. The kernel's settings in it
// are read-only, because root, even in a user namespace, could change them.
func (b *builder) processes() error {
	if err := b.new.MkdirAll("proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", newRoot+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"} {
		tree, err := unix.OpenTree(unix.AT_FDCWD, newRoot+"/proc/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = b.attach(tree, "/proc/"+name, readOnly)
		}
		if err != nil {
			return fmt.Errorf("/proc/%s: %w", name, err)
		}
	}
	return nil
}

// private makes the directories, besides the granted ones, to which the command can
// write.
func (b *builder) private(p Profile) error {
	type dir struct{ from, to, mode string }
	dirs := []dir{{"tmp", "/tmp", "mode=1777"}, {"tmp", "/var/tmp", "mode=1777"}}
	if p.Home != "" {
		dirs = append(dirs, dir{"home", p.Home, "mode=0700"})
	}
	for _, d := range dirs {
		var err error
		if p.Private == "" {
			err = b.memory(d.to, d.mode, unix.MS_NOSUID|unix.MS_NODEV)
		} else {
			err = b.bind(filepath.Join(p.Private, d.from), d.to, mayChange)
		}
		if err != nil {
			return err
		}
	}
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if runtime == "" || !filepath.IsAbs(runtime) || p.Home != "" && within(runtime, p.Home) {
		return nil
	}
	return b.memory(runtime, "mode=0700", unix.MS_NOSUID|unix.MS_NODEV)
}

// grants shows the paths of the profile, each directory before the paths below it.
func (b *builder) grants(in order) error {
	type grant struct {
		path string
		show func(path string) error
	}
	var all []grant
	add := func(paths []string, show func(string) error) {
		for _, p := range paths {
			all = append(all, grant{p, show})
		}
	}
	add(in.Readable, func(path string) error { return b.show(path, readOnly) })
	add(in.Caches, func(path string) error { return b.cache(path, in.Layers) })
	add(in.Writable, func(path string) error { return b.bind(path, path, mayChange) })
	slices.SortStableFunc(all, func(a, b grant) int { return strings.Compare(a.path, b.path) })
	for _, g := range all {
		if err := g.show(g.path); err != nil {
			return err
		}
	}
	return nil
}

// hide covers hidden paths below grants with empty mounts. It hides nothing in the
// private directories, whose contents belong to the agent. A link is followed inside: one
// that leads to a path that is not shown hides nothing.
func (b *builder) hide(in order) error {
	granted := in.shown()
	for _, path := range in.Hidden {
		if !underAny(path, granted) {
			continue
		}
		fd, err := b.inside(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES) && b.closed(path) {
			continue
		}
		if err == nil {
			err = errors.Join(b.cover(fd), unix.Close(fd))
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// closed reports whether the directory that keeps this user from a path belongs to
// another user. The command cannot open it either.
func (b *builder) closed(path string) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		fd, err := b.inside(dir)
		if errors.Is(err, unix.EACCES) {
			continue
		}
		if err != nil {
			return false
		}
		var stat unix.Stat_t
		err = errors.Join(unix.Fstat(fd, &stat), unix.Close(fd))
		return err == nil && int(stat.Uid) != os.Geteuid()
	}
	return false
}

// cover mounts an empty file or directory over an open path.
func (b *builder) cover(fd int) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	path, err := os.Readlink(fmt.Sprintf("%s/proc/self/fd/%d", oldRoot, fd))
	if err != nil {
		return err
	}
	path = strings.TrimPrefix(path, newRoot)
	if err := b.fix(filepath.Dir(path)); err != nil {
		return err
	}
	over := nothingFile
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		over = nothingDir
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, over, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	return b.attach(tree, path, readOnly)
}

// fix makes mount points of a directory and those above it, in Writable, so that the
// command cannot rename them. Otherwise a hidden path below would have another name in
// the next wall, and be shown there.
func (b *builder) fix(dir string) error {
	for ; dir != "/" && underAny(dir, b.in.Writable); dir = filepath.Dir(dir) {
		if slices.Contains(b.in.Writable, dir) || slices.Contains(b.fixed, dir) {
			continue
		}
		b.fixed = append(b.fixed, dir)
		fd, err := b.inside(dir)
		if err != nil {
			return err
		}
		tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		err = errors.Join(err, unix.Close(fd))
		if err == nil {
			err = b.attach(tree, dir, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) sockets(paths []string) error {
	for _, path := range paths {
		if err := b.show(path, mayChange); err != nil {
			return err
		}
	}
	return nil
}

// door shows a directory of sockets, read-only: connecting to a socket does not change
// the file system.
func (b *builder) door(d Door) error {
	if d.From == "" {
		return nil
	}
	return b.bind(d.From, d.At, readOnly)
}

// show is bind for a path of the system or the person, which may be a link: the target of
// the link is shown at the path.
func (b *builder) show(path string, attr uint64) error {
	real, err := b.real(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.bind(real, path, attr)
}

// real returns the path without links, as seen from the former root. These paths do not
// exist: one through a link that an agent may have made, through a file, through links in
// a circle, or in a directory that the user may not search. They fail no wall.
func (b *builder) real(path string) (string, error) {
	real, err := b.in.resolve(oldRoot, path)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES) {
		return "", fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return real, err
}

// bind shows a path outside at a path inside. No part of the path outside may be a link.
// A missing path is left out.
func (b *builder) bind(path, at string, attr uint64) error {
	fd, err := b.open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return b.attach(tree, at, attr)
}

// open opens a path outside, no part of which may be a link.
func (b *builder) open(path string) (int, error) {
	fd, err := unix.Openat2(b.old, inRoot(path), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

// attach mounts the tree at a path inside, with attr for all its mounts. It closes tree.
func (b *builder) attach(tree int, at string, attr uint64) error {
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("%s: mount_setattr: %w", at, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(tree, &stat); err != nil {
		return err
	}
	place, err := b.place(at, stat.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	if err := unix.MoveMount(tree, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// place opens the directory or file of a mount point, and makes it if it does not exist.
// The caller closes the descriptor.
func (b *builder) place(at string, dir bool) (int, error) {
	fd, err := b.inside(at) // before makePlace, which fails in a directory that cannot be read
	if errors.Is(err, fs.ErrNotExist) {
		if err = b.makePlace(inRoot(at), dir); err == nil {
			fd, err = b.inside(at)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("cannot create a mount point for %s: %w", at, err)
	}
	return fd, nil
}

// inside opens a path inside. Links are followed there.
func (b *builder) inside(path string) (int, error) {
	root, err := unix.Open(newRoot, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return unix.Openat2(root, inRoot(path), &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// makePlace makes a directory or an empty file, with the directories above it.
func (b *builder) makePlace(name string, dir bool) error {
	if dir {
		return b.new.MkdirAll(name, 0o755)
	}
	if err := b.new.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := b.new.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// memory mounts a new memory file system.
func (b *builder) memory(at, options string, flags uintptr) error {
	place, err := b.place(at, true)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	if err := unix.Mount("tmpfs", fmt.Sprintf("%s/proc/self/fd/%d", oldRoot, place), "tmpfs", flags, options); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

// cache shows a directory. Changes go to a layer over it below layers. If layers is "" or
// the kernel cannot mount such a layer, the directory is read-only.
func (b *builder) cache(path, layers string) error {
	real, err := b.real(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if layers == "" || strings.ContainsAny(layers, `,:\`) {
		return b.bind(real, path, readOnly)
	}
	lower, err := b.open(real)
	if err != nil {
		return err
	}
	defer unix.Close(lower)
	upper, err := os.MkdirTemp(oldRoot+layers, "")
	if err != nil {
		return err
	}
	for _, name := range []string{"/upper", "/work"} {
		if err := os.Mkdir(upper+name, 0o700); err != nil {
			return err
		}
	}
	place, err := b.place(path, true)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	options := fmt.Sprintf("lowerdir=%s/proc/self/fd/%d,upperdir=%s/upper,workdir=%s/work,userxattr", oldRoot, lower, upper, upper)
	if unix.Mount("overlay", fmt.Sprintf("%s/proc/self/fd/%d", oldRoot, place), "overlay", unix.MS_NOSUID|unix.MS_NODEV, options) != nil {
		return b.bind(real, path, readOnly)
	}
	return nil
}

// inRoot returns an absolute path in the form that openat2 and os.Root take: relative to
// the root.
func inRoot(path string) string {
	if path == "/" {
		return "."
	}
	return strings.TrimPrefix(filepath.Clean(path), "/")
}
