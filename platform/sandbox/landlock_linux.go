package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var kinds = []Kind{Wall, Landlock}

func confine(k Kind, p Profile, argv []string) int {
	switch k {
	case Wall:
		return outer(p, argv)
	case Landlock:
		return fence(p, argv)
	default:
		return complain(statusConfine, fmt.Errorf("%q is not supported on Linux", k))
	}
}

// fence becomes the command, confined by Landlock and the filter of system calls. It
// returns the exit status only if that fails.
func fence(p Profile, argv []string) int {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return complain(statusConfine, fmt.Errorf("close_range: %w", err))
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return notStarted(argv[0], err)
	}
	runtime.LockOSThread()
	if err := restrict(slices.Concat(p.Writable, p.Temporary), changes); err != nil {
		return complain(statusConfine, err)
	}
	if err := dropCapabilities(); err != nil && !errors.Is(err, unix.EPERM) { // an ordinary user has none
		return complain(statusConfine, err)
	}
	if err := refuseSyscalls(); err != nil {
		return complain(statusConfine, err)
	}
	return notStarted(argv[0], become(path, argv))
}

// leastABI is the first version of Landlock that also controls truncation (Linux 6.2).
// With an older one, commands could empty any file.
const leastABI = 3

// abi returns the kernel's version of Landlock.
var abi = sync.OnceValues(func() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("%w: Landlock: %w", ErrUnsupported, errno)
	}
	return int(v), nil
})

// landlockMissing returns an error if Landlock cannot be used.
func landlockMissing() error {
	v, err := abi()
	if err == nil && v < leastABI {
		err = fmt.Errorf("%w: Landlock version %d is too old; version %d (Linux 6.2) or later is needed", ErrUnsupported, v, leastABI)
	}
	return err
}

// changes are the rights that are refused outside the profile. fileChanges are those of
// them that can be granted for a file.
const (
	changes = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	fileChanges = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// devices are files that programs write to although they are not regular files.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// scopeABI is the first version of Landlock that can refuse signals to processes outside
// and connections to their abstract sockets (Linux 6.12).
const scopeABI = 6

// ClosesAbstractSockets reports whether the kernel can refuse connections to abstract
// sockets outside, which a Wall that shares the network needs.
func ClosesAbstractSockets() bool {
	v, err := abi()
	return err == nil && v >= scopeABI
}

// scope refuses signals and connections to abstract sockets that leave the sandbox, as
// far as the kernel can.
func scope() error {
	if !ClosesAbstractSockets() {
		return nil
	}
	return restrict(nil, 0)
}

// restrict gives up the handled rights of this thread and its children, except those for
// the paths in writable and for devices. Where the kernel can, it also refuses signals
// and connections to abstract sockets that leave the sandbox.
func restrict(writable []string, handled uint64) error {
	if err := landlockMissing(); err != nil {
		return err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	if ClosesAbstractSockets() {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)
	if handled != 0 {
		for _, path := range writable {
			if err := allow(ruleset, path, handled); err != nil {
				return err
			}
		}
		for _, path := range devices {
			if err := allow(ruleset, path, unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil {
				return err
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

// allow grants the rights in access for path and everything below it. A missing path is
// left out.
func allow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileChanges
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("%s: landlock_add_rule: %w", path, errno)
	}
	return nil
}

// become executes the program in place of this one. It must be called on the thread that
// was confined.
func become(path string, argv []string) error {
	if !strings.Contains(path, "/") {
		path = "./" + path
	}
	return syscall.Exec(path, argv, os.Environ())
}
