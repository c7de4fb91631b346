package proc

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

func lineageLook() func(int) (Info, error) { return lookup }

// execArgs reads the kernel's copy of execve's arguments: their number, the program's
// path, NULs, and the arguments, each ended by a NUL (KERN_PROCARGS2 of sysctl(3)). The
// path is empty for another user's process.
func execArgs(pid int) (n int, path, rest []byte) {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return 0, nil, nil
	}
	path, rest, _ = bytes.Cut(raw[4:], []byte{0})
	return int(binary.NativeEndian.Uint32(raw)), path, bytes.TrimLeft(rest, "\x00")
}

func exeOf(pid int) string {
	_, path, _ := execArgs(pid)
	return string(path)
}

// Privileged reports whether a process runs as another user, or has rights from its file
// that this user cannot give: its arguments cannot be read then.
func Privileged(a Ancestor) bool { return len(a.Argv) == 0 || !mine(a.Info) }

func argvOf(pid int) []string {
	n, path, rest := execArgs(pid)
	if len(path) == 0 {
		return nil
	}
	var argv []string
	for ; n > 0 && len(rest) > 0; n-- {
		var arg []byte
		arg, rest, _ = bytes.Cut(rest, []byte{0})
		argv = append(argv, string(arg))
	}
	if len(argv) == 0 {
		argv = []string{string(path)}
	}
	return argv
}
