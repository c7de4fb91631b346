package proc

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

func lineageLook() func(int) (Info, error) { return lookup }

// argvOf reads the kernel's copy of execve's arguments: the number of arguments, the program's path, NULs, and the arguments, each ended by
// a NUL (KERN_PROCARGS2 of sysctl(3)). It returns nothing for another user's process.
func argvOf(pid int) []string {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return nil
	}
	n := int(binary.NativeEndian.Uint32(raw))
	path, rest, _ := bytes.Cut(raw[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
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
