package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ptySlaves is the major number of pseudo-terminals as processes see them
// (Documentation/admin-guide/devices.txt of the kernel); the minor number is their index.
const ptySlaves = 136

// master is the other end of a pseudo-terminal. The index alone does not identify it:
// other instances of devpts, such as a container's, use the same numbers.
type master struct {
	index  string // as fdinfo shows it
	device uint64 // that the instance of devpts is; 0 if it cannot be seen
	mounts string // namespace of mounts in which the terminal is, as its link says; "" if it cannot be seen
}

func masterHolders(of Info, first int) ([]int, error) {
	// field 7 of /proc/PID/stat: the minor number in bits 31 to 20 and 7 to 0, the major
	// in 15 to 8 (proc_pid_stat(5))
	if of.TTY>>8&0xff != ptySlaves {
		return nil, ErrNoPty
	}
	m := master{index: strconv.Itoa(of.TTY&0xff | of.TTY>>12&0xfff00), mounts: mountsOf(of.Pid)}
	var stat unix.Stat_t
	if unix.Stat(procFile(of.Pid, "root/dev/pts/"+m.index), &stat) == nil {
		m.device = stat.Dev
	}
	if p, err := lookup(first); err == nil && p.Session != of.Session && m.heldBy(first) {
		return []int{first}, nil
	}
	var all []int
	_, err := scan(func(p Info) {
		if p.Session != of.Session && !p.Zombie && m.heldBy(p.Pid) {
			all = append(all, p.Pid)
		}
	})
	return all, err
}

func mountsOf(pid int) string {
	link, _ := os.Readlink(procFile(pid, "ns/mnt")) // "" says that it cannot be seen
	return link
}

// heldBy reports whether a process has it open.
func (m master) heldBy(pid int) bool {
	dir, err := os.Open(procFile(pid, "fd"))
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // names read before an error count
	var buf [256]byte
	for _, name := range names {
		n, err := unix.Readlinkat(int(dir.Fd()), name, buf[:])
		if err == nil && bytes.HasSuffix(buf[:n], []byte("ptmx")) && m.isOpenAs(pid, name) {
			return true
		}
	}
	return false
}

// isOpenAs reports whether an open /dev/ptmx is this one.
func (m master) isOpenAs(pid int, fd string) bool {
	var buf [512]byte // "tty-index:" is the fifth line
	info, err := readStart(procFile(pid, "fdinfo/"+fd), buf[:])
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(info, []byte("\ntty-index:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	if !found || string(bytes.TrimSpace(line)) != m.index {
		return false
	}
	// It was opened as the file ptmx of its instance, or as a device next to that
	// instance's directory.
	var stat unix.Stat_t
	var system unix.Statfs_t
	path := procFile(pid, "fd/"+fd)
	if unix.Stat(path, &stat) != nil || unix.Statfs(path, &system) != nil {
		return false
	}
	if system.Type == unix.DEVPTS_SUPER_MAGIC {
		return m.device == 0 || m.device == stat.Dev
	}
	theirs := mountsOf(pid)
	return m.mounts == "" || theirs == "" || m.mounts == theirs
}

// exeOf is the file that the process runs, "" where that cannot be seen. Unlike its
// arguments, a process cannot change it but by running another.
func exeOf(pid int) string {
	name, err := os.Readlink(procFile(pid, "exe"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(name, " (deleted)")
}

// rootOf is where a process's view of the file system begins: it may be a container's.
func rootOf(pid int) string { return procFile(pid, "root") }

// setIDDirs are where a system keeps programs that run with other rights than their
// caller's.
var setIDDirs = []string{"/usr/bin", "/usr/local/bin", "/bin", "/usr/libexec", "/usr/lib/openssh"}

// Privileged reports whether a process runs as another user, or has rights from its file
// that this user cannot give: then its name is its own, although it may not be looked at.
func Privileged(a Ancestor) bool {
	if !mine(a.Info) {
		return true
	}
	if a.Exe != "" {
		return false
	}
	for _, line := range []string{"Uid", "Gid"} {
		if ids := bytes.Fields(statusLine(a.Pid, line)); len(ids) == 4 && (!bytes.Equal(ids[0], ids[1]) || !bytes.Equal(ids[0], ids[2])) {
			return true
		}
	}
	if len(a.Argv) == 0 {
		return false
	}
	for _, dir := range setIDDirs { // it may have given its rights up
		var stat unix.Stat_t
		if unix.Stat(filepath.Join(dir, filepath.Base(a.Argv[0])), &stat) == nil && stat.Uid == 0 && stat.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			return true
		}
	}
	return false
}
