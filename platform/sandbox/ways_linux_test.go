package sandbox_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outside holds the targets of the ways out.
type outside struct {
	In, Out, Home, Run, State, Tmp string // directories; only In is granted
	Pid                            int    // of a process
	Pty                            string // of that process's terminal
	PtyFD                          int    // its descriptor in that process
	Address                        uint64 // of a number in that process
	Port                           int
	Shared, Queue                  int // identifiers
	Shm                            string
}

func (o outside) abstract() string { return "@tether-ways-" + strconv.Itoa(o.Pid) }

func (o outside) file() string { return filepath.Join(o.Out, "file") }

func (o outside) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", o.Pid, name) }

// ways are the functions of testdata/ways.txt. One returns nil if the way is open.
var ways = map[string]func(o outside) error{
	"write-file":    func(o outside) error { return write(o.file()) },
	"append-bashrc": func(o outside) error { return write(filepath.Join(o.Home, ".bashrc")) },
	"write-config":  func(o outside) error { return write(filepath.Join(o.Home, ".config", "new")) },
	"git-hook":      func(o outside) error { return write(filepath.Join(o.Out, "repo/.git/hooks/pre-commit")) },
	"delete-file":   func(o outside) error { return os.Remove(filepath.Join(o.Out, "spare")) },
	"truncate-file": func(o outside) error { return os.Truncate(filepath.Join(o.Out, "full"), 0) },
	"chmod-file":    func(o outside) error { return os.Chmod(o.file(), 0o640) },
	"chown-file":    func(o outside) error { return os.Chown(o.file(), -1, os.Getegid()) },
	"chtimes-file":  func(o outside) error { return unix.Utimes(o.file(), make([]unix.Timeval, 2)) },
	"setxattr-file": func(o outside) error { return unix.Setxattr(o.file(), "user.way", []byte("x"), 0) },
	"read-file":     func(o outside) error { return read(o.file()) },
	"read-ssh":      func(o outside) error { return read(filepath.Join(o.Home, ".ssh/id")) },
	"read-aws":      func(o outside) error { return read(filepath.Join(o.Home, ".aws/credentials")) },
	"read-keyring":  func(o outside) error { return read(filepath.Join(o.Home, ".local/share/keyrings/login.keyring")) },
	"read-browser":  func(o outside) error { return read(filepath.Join(o.Home, ".mozilla/cookies")) },
	"read-state":    func(o outside) error { return read(filepath.Join(o.State, "secret")) },
	"read-shadow":   func(outside) error { return read("/etc/shadow") },
	"read-tmp":      func(o outside) error { return read(filepath.Join(o.Tmp, "file")) },
	"read-shm":      func(o outside) error { return read(o.Shm) },
	"lock-state": func(o outside) error {
		fd, err := unix.Open(filepath.Join(o.State, "secret"), unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	},
	"symlink-out": func(o outside) error {
		name := filepath.Join(o.In, "link")
		return errors.Join(os.Symlink(o.file(), name), write(name))
	},
	"hardlink-out": func(o outside) error {
		name := filepath.Join(o.In, "second")
		return errors.Join(os.Link(o.file(), name), write(name))
	},
	"rename-out": func(o outside) error {
		name := filepath.Join(o.In, "moved")
		return errors.Join(write(name), os.Rename(name, filepath.Join(o.Out, "moved")))
	},
	"setuid-chmod": func(o outside) error { return setID(o, func(name string) error { return old(90, name, 0o4755, 0) }) },
	"setgid-chmod": func(o outside) error {
		return setID(o, func(name string) error { return unix.Fchmodat(unix.AT_FDCWD, name, 0o2755, 0) })
	},
	"setuid-fchmod": func(o outside) error {
		return setID(o, func(name string) error {
			fd, err := unix.Open(name, unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return unix.Fchmod(fd, 0o4755)
		})
	},
	"setuid-fchmodat2": func(o outside) error {
		return setID(o, func(name string) error { return at(unix.SYS_FCHMODAT2, name, 0o4755, 0, 0) })
	},
	"setuid-open": func(o outside) error {
		return setID(o, func(name string) error { return old(2, name+"2", unix.O_CREAT, 0o4755) })
	},
	"setuid-creat": func(o outside) error {
		return setID(o, func(name string) error { return old(85, name+"2", 0o4755, 0) })
	},
	"setuid-openat": func(o outside) error {
		return setID(o, func(name string) error { return at(unix.SYS_OPENAT, name+"2", unix.O_CREAT|unix.O_WRONLY, 0o4755, 0) })
	},
	"setuid-openat2": func(o outside) error {
		return setID(o, func(name string) error {
			_, err := unix.Openat2(unix.AT_FDCWD, name+"2", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
			return err
		})
	},
	"setuid-tmpfile": func(o outside) error {
		return setID(o, func(name string) error {
			fd, err := unix.Open(filepath.Dir(name), unix.O_TMPFILE|unix.O_WRONLY, 0o4755)
			if err != nil {
				return err
			}
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name+"2", unix.AT_SYMLINK_FOLLOW)
		})
	},
	"setuid-mknod": func(o outside) error {
		return setID(o, func(name string) error { return old(133, name+"2", unix.S_IFREG|0o4755, 0) })
	},
	"setuid-mknodat": func(o outside) error {
		return setID(o, func(name string) error { return at(unix.SYS_MKNODAT, name+"2", unix.S_IFREG|0o4755, 0, 0) })
	},
	"setgid-mkdir": func(o outside) error {
		return setID(o, func(name string) error { return old(83, name+"2", 0o2755, 0) })
	},
	"setgid-mkdirat": func(o outside) error {
		return setID(o, func(name string) error { return unix.Mkdirat(unix.AT_FDCWD, name+"2", 0o2755) })
	},
	"rename-race": renameRace,
	"inherited-fd": func(o outside) error {
		fd, err := unix.Openat(3, "file", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		var there, here unix.Stat_t
		if err := errors.Join(unix.Fstat(fd, &there), unix.Fstat(3, &here)); err != nil {
			return err
		}
		return nil
	},
	"proc-cwd":     func(o outside) error { return read(o.proc("cwd/file")) },
	"proc-root":    func(o outside) error { return read(o.proc("root/etc/passwd")) },
	"proc-environ": func(o outside) error { return read(o.proc("environ")) },
	"proc-mem":     func(o outside) error { return open(o.proc("mem"), unix.O_RDWR) },
	"proc-fd":      func(o outside) error { return open(o.proc("fd/"+strconv.Itoa(o.PtyFD)), unix.O_RDWR|unix.O_NOCTTY) },
	"proc-list":    func(o outside) error { return read(o.proc("cmdline")) },
	"proc-init":    func(outside) error { return open("/proc/1/mem", unix.O_RDONLY) },
	"ptrace": func(o outside) error {
		if err := unix.PtraceSeize(o.Pid); err != nil {
			return err
		}
		_ = unix.PtraceDetach(o.Pid)
		return nil
	},
	"vm-read": func(o outside) error {
		var to [8]byte
		_, err := unix.ProcessVMReadv(o.Pid, []unix.Iovec{{Base: &to[0], Len: 8}}, []unix.RemoteIovec{{Base: uintptr(o.Address), Len: 8}}, 0)
		return err
	},
	"signal": func(o outside) error { return unix.Kill(o.Pid, unix.SIGURG) },
	"signal-handle": func(o outside) error {
		fd, err := unix.PidfdOpen(o.Pid, 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, unix.SIGURG, nil, 0)
	},
	"renice": func(o outside) error { return unix.Setpriority(unix.PRIO_PROCESS, o.Pid, 19) },
	"affinity": func(o outside) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(o.Pid, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(o.Pid, &set)
	},
	"prlimit": func(o outside) error {
		var limit unix.Rlimit
		if err := unix.Prlimit(o.Pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
			return err
		}
		return unix.Prlimit(o.Pid, unix.RLIMIT_NOFILE, &limit, nil)
	},
	"oom-score": func(o outside) error {
		f, err := os.OpenFile(o.proc("oom_score_adj"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("500")
		return err
	},
	"pty": func(o outside) error { return open(o.Pty, unix.O_RDWR|unix.O_NOCTTY) },
	"pty-list": func(o outside) error {
		_, err := os.Lstat(o.Pty)
		return err
	},
	"tiocsti": func(outside) error { return inject(unix.TIOCSTI, 'x') },
	"tioclinux": func(outside) error {
		return inject(0x541c, 3) // TIOCLINUX, paste the selection
	},
	"keyctl": func(outside) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		return err
	},
	"add-key": func(outside) error {
		_, err := unix.AddKey("user", "tether-way", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	},
	"request-key": func(outside) error {
		_, err := unix.RequestKey("user", "tether-no-such-key", "", 0)
		if errors.Is(err, unix.ENOKEY) || errors.Is(err, unix.ENOENT) { // the kernel has searched for the key
			return nil
		}
		return err
	},
	"socket-dbus":      func(o outside) error { return dial("unix", filepath.Join(o.Run, "bus")) },
	"socket-docker":    func(o outside) error { return dial("unix", filepath.Join(o.Run, "docker.sock")) },
	"socket-tmux":      func(o outside) error { return dial("unix", filepath.Join(o.Tmp, "tmux")) },
	"socket-ssh-agent": func(o outside) error { return dial("unix", filepath.Join(o.Run, "agent")) },
	"socket-holder":    func(o outside) error { return dial("unix", filepath.Join(o.State, "holder.sock")) },
	"socket-in-cwd":    func(o outside) error { return dial("unix", filepath.Join(o.In, "person.sock")) },
	"socket-abstract":  func(o outside) error { return dial("unix", o.abstract()) },
	"socket-tcp":       func(o outside) error { return dial("tcp", "127.0.0.1:"+strconv.Itoa(o.Port)) },
	"socket-vsock":     func(outside) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"socket-packet":    func(outside) error { return socket(unix.AF_PACKET, unix.SOCK_RAW, unix.ETH_P_ALL) },
	"socket-alg":       func(outside) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
	"netlink-uevent":   func(outside) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) },
	"shm-sysv": func(o outside) error {
		_, err := unix.SysvShmAttach(o.Shared, 0, 0)
		return err
	},
	"msg-sysv": func(o outside) error {
		var text [16]byte
		return call(unix.SYS_MSGRCV, uintptr(o.Queue), uintptr(unsafe.Pointer(&text)), 8, 0, unix.IPC_NOWAIT, 0, unix.ENOMSG)
	},
	"mount": func(o outside) error {
		if err := unix.Mount("tmpfs", o.In, "tmpfs", 0, ""); err != nil {
			return err
		}
		return unix.Unmount(o.In, unix.MNT_DETACH)
	},
	"umount":     func(o outside) error { return errors.Join(unix.Unmount("/etc/ssh", 0), unix.Unmount("/proc/sys", 0)) },
	"remount":    func(outside) error { return unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"chroot":     func(o outside) error { return errors.Join(unix.Chroot(o.In), unix.Chroot("../../../..")) },
	"pivot-root": func(o outside) error { return unix.PivotRoot(o.In, o.In) },
	"handle": func(outside) error {
		handle, mount, err := unix.NameToHandleAt(unix.AT_FDCWD, "/", 0)
		if err != nil {
			return err
		}
		_ = mount
		root, err := unix.Open("/", unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		_, err = unix.OpenByHandleAt(root, handle, unix.O_RDONLY)
		return err
	},
	"user-namespace": func(outside) error {
		c := exec.Command("/bin/true")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return c.Run()
	},
	"clone3": func(outside) error { return call(unix.SYS_CLONE3, 0, 0, 0, 0, 0, 0, unix.EINVAL) },
	"join-namespace": func(o outside) error {
		fd, err := unix.Open(o.proc("ns/ipc"), unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return unix.Setns(fd, unix.CLONE_NEWIPC)
	},
	"io-uring": func(outside) error {
		var params [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0, 0, 0, 0, 0)
	},
	"x32": func(outside) error { return call(0x40000000|unix.SYS_GETPID, 0, 0, 0, 0, 0, 0, 0) },
	"bpf": func(outside) error {
		attr := [4]uint32{unix.BPF_MAP_TYPE_ARRAY, 4, 4, 1}
		return call(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0, 0, 0, 0)
	},
	"perf": func(o outside) error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER0}
		_, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
		return err
	},
	"userfaultfd":  func(outside) error { return call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0, 0, 0, 0, 0) },
	"core-pattern": func(outside) error { return rewrite("/proc/sys/kernel/core_pattern") },
	"hostname": func(outside) error {
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		return unix.Sethostname([]byte(name))
	},
	"sysfs": func(outside) error { return open("/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY) },
	"cgroup": func(outside) error {
		all, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
		for _, name := range append(all, "/sys/fs/cgroup/cgroup.procs") {
			if err = open(name, unix.O_WRONLY); err == nil {
				return nil
			}
		}
		return err
	},
	"device-node": func(o outside) error {
		return unix.Mknod(filepath.Join(o.In, "null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	},
	"raw-disk": func(outside) error {
		all, _ := filepath.Glob("/dev/[vsn][dv]*")
		for _, name := range all {
			if open(name, unix.O_RDONLY) == nil {
				return nil
			}
		}
		return fmt.Errorf("none of %q", all)
	},
	"kernel-log": func(outside) error {
		_, err := unix.Klogctl(10, nil) // SYSLOG_ACTION_SIZE_BUFFER
		if err != nil {
			return err
		}
		return open("/dev/kmsg", unix.O_RDONLY)
	},
	"set-capability": func(o outside) error {
		name := filepath.Join(o.In, "program")
		if err := write(name); err != nil {
			return err
		}
		caps := make([]byte, 20)
		binary.LittleEndian.PutUint32(caps, 0x02000001)
		binary.LittleEndian.PutUint32(caps[4:], 1<<unix.CAP_SYS_ADMIN)
		return unix.Setxattr(name, "security.capability", caps, 0)
	},
	"setuid": func(o outside) error { // the test has made the program root's
		out, err := exec.Command(filepath.Join(o.In, "setuid"), "-u").CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) != "0" {
			return fmt.Errorf("it runs as %s", out)
		}
		return err
	},
	"memfd": memfd,
}

func write(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("way\n")
	return errors.Join(err, onOutside(f))
}

// onOutside returns an error for a file of a private file system, because nobody outside
// sees data that is written there.
func onOutside(f *os.File) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return err
	}
	if s.Type == unix.TMPFS_MAGIC && privateMemory {
		return errors.New("a file in private memory")
	}
	return nil
}

// privateMemory is set by the helper in a wall.
var privateMemory bool

func read(name string) error {
	data, err := os.ReadFile(name)
	if err == nil && len(data) == 0 {
		err = errors.New("empty")
	}
	return err
}

func rewrite(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(data)
	return err
}

func open(name string, flags int) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		c.Close()
	}
	return err
}

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// call makes a system call. The error made, which shows that the kernel made the call,
// counts as success.
func call(number, a, b, c, d, e, f uintptr, made syscall.Errno) error {
	if _, _, errno := unix.Syscall6(number, a, b, c, d, e, f); errno != 0 && errno != made {
		return errno
	}
	return nil
}

// inject puts b into a terminal's input.
func inject(request uintptr, b byte) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	slave, err := unix.IoctlRetInt(master, unix.TIOCGPTPEER)
	if err != nil {
		return err
	}
	return call(unix.SYS_IOCTL, uintptr(slave), request, uintptr(unsafe.Pointer(&b)), 0, 0, 0, 0)
}

// renameRace swaps a directory and a link to a directory outside, and writes below their
// name.
func renameRace(o outside) error {
	dir, link, way := filepath.Join(o.In, "real"), filepath.Join(o.In, "false"), filepath.Join(o.In, "way")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Symlink(o.Out, link), os.Rename(dir, way)); err != nil {
		return err
	}
	swap := func() error { return unix.Renameat2(unix.AT_FDCWD, way, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) }
	for range 500 {
		_ = write(filepath.Join(way, "raced"))
		if err := swap(); err != nil {
			return err
		}
	}
	return open(filepath.Join(o.Out, "raced"), unix.O_RDONLY)
}

// memfd runs this program from memory.
func memfd(o outside) error {
	fd, err := unix.MemfdCreate("way", 0)
	if err != nil {
		return err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "way")
	if _, err := f.Write(self); err != nil {
		return err
	}
	c := exec.Command(fmt.Sprintf("/proc/self/fd/%d", fd))
	c.Args = append(slices.Clone(os.Args[:4]), "write-file")
	out, err := c.CombinedOutput()
	if err == nil && strings.TrimSpace(string(out)) != "write-file: open" {
		err = errors.New("it wrote nothing")
	}
	return err
}

// setID lets change give a file in the granted directory, or name+"2", the bit
// set-user-id or set-group-id. It returns nil if that file has the bit then.
func setID(o outside, change func(name string) error) error {
	dir, err := os.MkdirTemp(o.In, "setid")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, nil, 0o755); err != nil {
		return err
	}
	if err := change(name); err != nil {
		return err
	}
	for _, n := range []string{name, name + "2"} {
		var s unix.Stat_t
		if unix.Stat(n, &s) == nil && s.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			return nil
		}
	}
	return errors.New("the file has no such bit")
}

// old makes a call that only amd64 has, and elsewhere the way's newer form.
func old(number uintptr, name string, a, b uintptr) error {
	if runtime.GOARCH != "amd64" {
		return unix.Fchmodat(unix.AT_FDCWD, strings.TrimSuffix(name, "2"), 0o4755, 0)
	}
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(number, uintptr(unsafe.Pointer(p)), a, b); errno != 0 {
		return errno
	}
	return nil
}

// at makes a call that begins with a directory and a name.
func at(number uintptr, name string, a, b, c uintptr) error {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	cwd := unix.AT_FDCWD
	if _, _, errno := unix.Syscall6(number, uintptr(cwd), uintptr(unsafe.Pointer(p)), a, b, c, 0); errno != 0 {
		return errno
	}
	return nil
}
