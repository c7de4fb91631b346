package proc

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// hasTags says whether tagged can be relied on.
const hasTags = true

// maxEnviron bounds how much of a process's environment is searched for a tag, in bytes.
// Linux allows at most 6 MiB of arguments and environment together (execve(2)). Most fit
// into usualEnviron.
const (
	usualEnviron = 8 << 10
	maxEnviron   = 6 << 20
)

// HasTTYs says whether processes have controlling terminals, see Info.TTY.
const HasTTYs = true

// scan calls visit for each process, newborn ones too. Names read from /proc are old when
// the last of them is looked up, and a chain of processes that each start a successor and
// end could hide there for ever. So scan looks at every number given out since it began,
// until no newer one is given out. whole is false if one of those could not be seen: it
// has ended, or is not quite born.
func scan(visit func(Info)) (whole bool, err error) {
	last, err := lastPid()
	if err != nil {
		return false, err
	}
	names, err := pidNames()
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil { // otherwise it is not a process
			if p, err := lookup(pid); err == nil { // otherwise it has ended meanwhile
				visit(p)
			}
		}
	}
	return chase(last, visit)
}

// maxChase bounds how many newborn processes one scan follows: far more than can start
// while a few hundred files are read.
const maxChase = 10_000

func chase(seen int, visit func(Info)) (whole bool, err error) {
	whole = true
	for range maxChase {
		last, err := lastPid()
		if err != nil {
			return false, err
		}
		if last == seen {
			return whole, nil
		}
		if last < seen { // the numbers have started again from the bottom
			return false, nil
		}
		for seen < last {
			seen++
			p, err := lookup(seen)
			if err != nil {
				whole = false
			} else {
				visit(p)
			}
		}
	}
	return false, nil
}

func pidNames() ([]string, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// lastPid returns the number given out last, the fifth field of /proc/loadavg. Threads
// have numbers, too.
func lastPid() (int, error) {
	var buf [128]byte
	load, err := readStart("/proc/loadavg", buf[:])
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(load)
	if len(fields) != 5 {
		return 0, fmt.Errorf("/proc/loadavg is %q", load)
	}
	return strconv.Atoi(string(fields[4]))
}

func lookup(pid int) (Info, error) {
	p, _, err := readStat(pid)
	return p, err
}

func readStat(pid int) (p Info, nascent bool, err error) {
	var buf [1024]byte // the line is about 350 bytes: the name is at most 64, the rest 49 numbers
	stat, err := readStart(procFile(pid, "stat"), buf[:])
	if err != nil {
		return Info{}, false, err
	}
	return parseStat(pid, stat)
}

// started converts ticks since boot, of which a second has 100 for every program.
func started(start uint64) time.Time {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(start)*(time.Second/100) - time.Duration(up.Nano()))
}

// parseStat reads the fields of /proc/PID/stat that are wanted here (proc_pid_stat(5)).
// The name in the second field may hold any byte, blanks and parentheses too, so that
// counting starts after the last parenthesis. nascent means that the process is in the
// middle of execve, if it is one whose memory we may look at.
func parseStat(pid int, stat []byte) (p Info, nascent bool, err error) {
	rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, parent, group, session, tty, front, flags, start, envEnd = 0, 1, 2, 3, 4, 5, 6, 19, 48 // minus the three fields up to the state
	if len(rest) <= envEnd || len(rest[state]) != 1 {
		return Info{}, false, fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(rest))
	}
	var errs [5]error
	number := func(i, field int) (n uint64) {
		n, errs[i] = strconv.ParseUint(string(rest[field]), 10, 64)
		return n
	}
	p = Info{
		ID:     ID{Pid: pid, Start: number(0, start)},
		Parent: int(number(1, parent)), Group: int(number(2, group)), Session: int(number(3, session)),
		Stopped: rest[state][0] == 'T' || rest[state][0] == 't', Zombie: rest[state][0] == 'Z' || rest[state][0] == 'X',
	}
	p.TTY, _ = strconv.Atoi(string(rest[tty]))
	if p.TTY != 0 { // else the group is -1
		p.Front, _ = strconv.Atoi(string(rest[front]))
	}
	nascent = number(4, flags)&kernelThread == 0 && string(rest[envEnd]) == "0"
	return p, nascent, errors.Join(errs[:]...)
}

// kernelThread is PF_KTHREAD of the kernel's <linux/sched.h>: such a thread has no memory
// and no environment, now or later.
const kernelThread = 0x00200000

// mine reports whether the process runs as our user: a process without privileges could
// signal it (kill(2) compares the real and the saved user). It asks the same of a
// privileged one, so that a daemon run as root does not reach for other users' processes.
func mine(p Info) bool {
	ids := bytes.Fields(statusLine(p.Pid, "Uid")) // real, effective, saved, file system
	want := strconv.Itoa(os.Getuid())
	return len(ids) == 4 && (string(ids[0]) == want || string(ids[2]) == want)
}

// ignores reports whether the process ignores sig.
func ignores(p Info, sig unix.Signal) bool {
	mask, err := strconv.ParseUint(string(bytes.TrimSpace(statusLine(p.Pid, "SigIgn"))), 16, 64)
	return err == nil && mask&(1<<(sig-1)) != 0
}

// statusLine returns the value of one line of /proc/PID/status, see proc_pid_status(5),
// or nil.
func statusLine(pid int, name string) []byte {
	var buf [4096]byte // about 1.5 KiB, more if a process is in many groups; the wanted lines are before or just after the groups
	status, err := readStart(procFile(pid, "status"), buf[:])
	if err != nil {
		return nil
	}
	_, line, _ := bytes.Cut(status, []byte("\n"+name+":"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return line
}

// tagged reports whether the environment the process was started with has this entry.
// unsure means that it has none yet because it is in the middle of execve: look again.
// Other users' environments cannot be read and have no tag.
func tagged(pid int, tag string) (yes, unsure bool) {
	var buf [usualEnviron]byte
	env, err := environ(pid, buf[:])
	if err != nil || len(env) > 0 {
		return hasEntry(env, tag), false
	}
	if _, nascent, err := readStat(pid); err != nil || nascent {
		return false, err == nil
	}
	env, _ = environ(pid, buf[:]) // the environment is there now, or it is really empty
	return hasEntry(env, tag), false
}

// environ returns the environment of a process, in buf if it fits.
func environ(pid int, buf []byte) ([]byte, error) {
	for {
		env, err := readStart(procFile(pid, "environ"), buf)
		if err != nil || len(env) < len(buf) || len(buf) >= maxEnviron {
			return env, err
		}
		buf = make([]byte, 8*len(buf))
	}
}

// hasEntry reports whether a NUL-separated environment has exactly this entry.
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

// signal sends sig to exactly this process and to no later owner of its number. It opens
// the handle first and then compares the start time; the handle always means the same
// process.
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

// markAll sets close-on-exec on every descriptor above 2. Linux before 5.11 does not know
// how.
func markAll() error { return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) }

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// readStart reads the beginning of a file, as much as fits into buf. Files under /proc
// have no size to ask for.
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
