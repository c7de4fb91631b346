package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxEnviron bounds how much of a process's environment is searched for a tag, in bytes. Linux allows a quarter of the stack limit
// for arguments and environment together, 2 MiB by default (execve(2)).
const maxEnviron = 2 << 20

func list() ([]Info, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]Info, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		if p, err := lookup(pid); err == nil { // else it ended meanwhile
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("/proc shows no processes")
	}
	return all, nil
}

func lookup(pid int) (Info, error) {
	var buf [1024]byte // the line is about 350 bytes: the name is at most 64, the rest 49 numbers
	stat, err := readStart(procFile(pid, "stat"), buf[:])
	if err != nil {
		return Info{}, err
	}
	return parseStat(pid, stat)
}

// parseStat reads the fields of /proc/PID/stat that are wanted here (proc_pid_stat(5)). The name in the second field may hold any
// byte, blanks and parentheses too, so that counting starts after the last parenthesis.
func parseStat(pid int, stat []byte) (Info, error) {
	rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, parent, group, session, start = 0, 1, 2, 3, 19 // minus the three fields up to the state
	if len(rest) <= start || len(rest[state]) != 1 {
		return Info{}, fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(rest))
	}
	p := Info{ID: ID{Pid: pid}, Zombie: rest[state][0] == 'Z' || rest[state][0] == 'X'}
	var errs [4]error
	p.Parent, errs[0] = strconv.Atoi(string(rest[parent]))
	p.Group, errs[1] = strconv.Atoi(string(rest[group]))
	p.Session, errs[2] = strconv.Atoi(string(rest[session]))
	p.Start, errs[3] = strconv.ParseUint(string(rest[start]), 10, 64)
	return p, errors.Join(errs[:]...)
}

// mine tells whether the process runs as our user: a process without privileges could signal it (kill(2) compares the real and the
// saved user). It asks the same of a privileged one, so that a daemon run as root does not reach for other users' processes.
func mine(p Info) bool {
	var buf [2048]byte
	status, err := readStart(procFile(p.Pid, "status"), buf[:])
	return err == nil && ownedBy(status, os.Getuid())
}

// ownedBy reads the Uid line of /proc/PID/status: real, effective, saved, file system.
func ownedBy(status []byte, uid int) bool {
	_, line, found := bytes.Cut(status, []byte("\nUid:"))
	if !found {
		return false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	ids := bytes.Fields(line)
	want := strconv.Itoa(uid)
	return len(ids) == 4 && (string(ids[0]) == want || string(ids[2]) == want)
}

// tagged tells whether the environment the process was started with has this entry. Other users' environments cannot be read and
// have no tag.
func tagged(pid int, tag string) bool {
	f, err := os.Open(procFile(pid, "environ"))
	if err != nil {
		return false
	}
	defer f.Close()
	env, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	return err == nil && hasEntry(env, tag)
}

// hasEntry tells whether a NUL-separated environment has exactly this entry.
func hasEntry(env []byte, entry string) bool {
	for len(env) > 0 {
		var e []byte
		e, env, _ = bytes.Cut(env, []byte{0})
		if string(e) == entry {
			return true
		}
	}
	return false
}

// signal sends sig to exactly this process and to no later owner of its number: the handle is opened first, then the start time is
// compared, and the handle cannot change what it stands for.
func signal(id ID, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.Pid, 0)
	if err == nil {
		defer unix.Close(fd)
	} else if errors.Is(err, unix.ESRCH) {
		return err
	}
	if now, err := lookup(id.Pid); err != nil || now.ID != id {
		return unix.ESRCH
	}
	if err != nil { // Linux before 5.3, or a sandbox that forbids it: the number is right as of a moment ago
		return unix.Kill(id.Pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// readStart reads the beginning of a file, as much as fits into buf. Files under /proc have no size to ask for.
func readStart(name string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, &os.PathError{Op: "read", Path: name, Err: err}
	}
	return buf[:n], nil
}
