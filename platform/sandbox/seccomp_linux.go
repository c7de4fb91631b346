package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are the system calls that a confined command may not make at all. filter also
// refuses some uses of other calls.
var refused = []uint32{
	// Keyrings: the kernel finds the keys of the person's session by the user's id, not
	// by the namespace.
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	// Namespaces and mounts, with which a command could change the wall.
	unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	// Parts of the kernel that ordinary programs do not need.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
}

// absent are the system calls that fail as if the kernel did not have them, so that
// programs use others instead.
var absent = []uint32{
	unix.SYS_CLONE3,                                                              // its flags are in memory, which a filter cannot read
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // could do what refused calls do
	unix.SYS_OPENAT2, // its mode is in memory, too; programs use openat instead
}

// setsMode is a system call that can give a file the bits set-user-id and set-group-id.
// A file with these bits runs with the rights of its owner outside of the wall, too.
type setsMode struct {
	number uint32
	mode   uint32 // the argument that is the mode
	flags  uint32 // the argument that is the flags of open, 0 for other calls
}

var modeCalls = []setsMode{
	{unix.SYS_FCHMOD, 1, 0}, {unix.SYS_FCHMODAT, 2, 0}, {unix.SYS_FCHMODAT2, 2, 0}, {unix.SYS_MKNODAT, 2, 0}, {unix.SYS_MKDIRAT, 2, 0},
	{unix.SYS_OPENAT, 3, 2},
}

// oldModeCalls are those that amd64 has and newer architectures have not: open, creat,
// chmod, mknod and mkdir. x/sys has no constants for them elsewhere.
var oldModeCalls = []setsMode{{2, 2, 1}, {85, 1, 0}, {90, 1, 0}, {133, 1, 0}, {83, 1, 0}}

// creates are the flags with which open uses its mode: O_CREAT, and the bit of O_TMPFILE
// that is its own.
const creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// newNamespaces are the flags of clone and unshare that make a namespace.
const newNamespaces = namespaces | unix.CLONE_NEWNET

// x32 is the lowest number of the system calls of x32, a second calling convention of
// amd64.
const x32 = 0x40000000

// architectures are those whose system calls the filter knows. On them the first argument
// of clone is the flags, and of socket the family.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in struct seccomp_data of linux/seccomp.h, little endian.
const (
	dataNumber, dataArch = 0, 4
	dataArg0             = 16
	argSize              = 8
)

// refuseSyscalls sets the filter for this thread and its children. It needs no_new_privs.
func refuseSyscalls() error {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("%w: system calls cannot be filtered on %s", ErrUnsupported, runtime.GOARCH)
	}
	program := filter(arch)
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// filter returns the program of the filter: a list of tests, each of which returns or
// continues with the next.
func filter(arch uint32) []unix.SockFilter {
	var f []unix.SockFilter
	add := func(code uint16, jt, jf uint8, k uint32) {
		f = append(f, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
	}
	load := func(offset uint32) { add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }
	fail := func(errno uint32) { add(unix.BPF_RET, 0, 0, unix.SECCOMP_RET_ERRNO|errno) }
	allow := func() { add(unix.BPF_RET, 0, 0, unix.SECCOMP_RET_ALLOW) }
	is := func(k uint32, then func()) { // then adds one instruction, which returns
		add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, k)
		then()
	}
	has := func(flags uint32, then func()) {
		add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, 1, flags)
		then()
	}
	call := func(number uint32, tests func()) { // tests adds instructions for one system call, the last of which returns
		at := len(f)
		add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 0, number)
		tests()
		f[at].Jf = uint8(len(f) - at - 1)
	}
	argument := func(i uint32) { load(dataArg0 + i*argSize) } // loads the lower 32 bits
	eperm := func() { fail(uint32(unix.EPERM)) }
	enosys := func() { fail(uint32(unix.ENOSYS)) }

	load(dataArch)
	call(arch, func() { load(dataNumber); add(unix.BPF_JMP|unix.BPF_JA, 0, 0, 1) })
	enosys() // 32 bit programs
	if arch == unix.AUDIT_ARCH_X86_64 {
		add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, 1, x32)
		enosys()
	}
	for _, n := range refused {
		is(n, eperm)
	}
	for _, n := range absent {
		is(n, enosys)
	}
	call(unix.SYS_IOCTL, func() { // calls that type into a terminal
		argument(1)
		is(unix.TIOCSTI, eperm)
		is(tioclinux, eperm)
		allow()
	})
	modes := modeCalls
	if arch == unix.AUDIT_ARCH_X86_64 {
		modes = slices.Concat(modes, oldModeCalls)
	}
	for _, c := range modes {
		call(c.number, func() {
			if c.flags > 0 {
				argument(c.flags)
				add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 1, 0, creates)
				allow()
			}
			argument(c.mode)
			has(unix.S_ISUID|unix.S_ISGID, eperm)
			allow()
		})
	}
	for _, n := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		call(n, func() {
			argument(0)
			has(newNamespaces, eperm)
			allow()
		})
	}
	call(unix.SYS_SOCKET, func() {
		argument(0)
		for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
			is(family, allow)
		}
		call(unix.AF_NETLINK, func() { // lists interfaces, routes and sockets
			argument(2)
			is(unix.NETLINK_ROUTE, allow)
			is(unix.NETLINK_SOCK_DIAG, allow)
			fail(uint32(unix.EAFNOSUPPORT))
		})
		fail(uint32(unix.EAFNOSUPPORT))
	})
	allow()
	return f
}

// tioclinux is TIOCLINUX of linux/tty.h, which can paste a console's selection as input.
const tioclinux = 0x541c
