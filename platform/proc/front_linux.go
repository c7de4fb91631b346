package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func front(pid int) (Foreground, bool) {
	proc := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(proc + "/stat")
	if err != nil {
		return Foreground{}, false
	}
	// The name of the program, in parentheses, may have blanks; after it come state,
	// ppid, pgrp, session, tty_nr, tpgid.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 6 {
		return Foreground{}, false
	}
	group, err := strconv.Atoi(fields[5])
	if err != nil || group <= 0 {
		return Foreground{}, false
	}
	f := Foreground{Pid: group, NoEcho: silent(proc + "/fd/0")}
	if line, err := os.ReadFile("/proc/" + strconv.Itoa(group) + "/cmdline"); err == nil && len(line) > 0 {
		f.Argv = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	}
	return f, true
}

// silent reports whether the terminal takes lines without an echo.
func silent(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil && t.Lflag&unix.ECHO == 0 && t.Lflag&unix.ICANON != 0
}
