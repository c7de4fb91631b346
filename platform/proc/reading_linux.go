package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of one look.
const (
	maxReaders = 256  // processes in the foreground
	maxThreads = 1024 // threads of all these processes together
	maxWaitFDs = 1024 // descriptors that a poll or select waits for
)

// keyboardLook is one look. errRefused: some process may not be examined.
type keyboardLook struct {
	tty     uint64 // device of the terminal
	threads int
	refused bool
}

// devTTY is /dev/tty, for each process its own terminal
// (Documentation/admin-guide/devices.txt of the kernel).
var devTTY = unix.Mkdev(5, 0)

func readsKeyboard(leader int) Reading {
	first, err := lookup(leader)
	if err != nil || first.TTY == 0 || first.Front <= 0 {
		return Reading{}
	}
	l := keyboardLook{tty: unix.Mkdev(uint32(first.TTY>>8&0xff), uint32(first.TTY&0xff|first.TTY>>12&0xfff00))}
	group := foreground(first)
	r, sole := Reading{Waits: WaitsNot}, Info{}
	for _, p := range group {
		w, only := l.process(p.Pid)
		if w.keys && (r.Waits != WaitsForKeys || only && sole.Pid == 0) {
			r.Waits, r.Pid, r.Timed = WaitsForKeys, p.Pid, w.timed
			if only {
				sole = p
			}
		}
	}
	switch {
	case r.Waits == WaitsForKeys:
		r.Alone = sole.Pid == r.Pid && onlyAncestors(group, sole)
		r.Relays = hasMaster(r.Pid)
	case l.refused || len(group) == 0:
		return Reading{}
	}
	return r
}

// foreground returns the processes in the foreground of the terminal of first.
func foreground(first Info) []Info {
	var group []Info
	front := func(p Info) bool { return p.Group == first.Front && p.TTY == first.TTY && !p.Zombie }
	seen := 0
	for queue := []Info{first}; len(queue) > 0 && seen < maxReaders; queue = queue[1:] {
		p := queue[0]
		seen++
		if front(p) {
			group = append(group, p)
		}
		for _, pid := range childrenOf(p.Pid) {
			if child, err := lookup(pid); err == nil {
				queue = append(queue, child)
			}
		}
	}
	if len(group) == 0 { // its parents have ended, or this kernel does not tell children (CONFIG_PROC_CHILDREN)
		_, _ = scan(func(p Info) {
			if front(p) && len(group) < maxReaders {
				group = append(group, p)
			}
		})
	}
	return group
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) []int {
	var all []int
	for _, thread := range threadsOf(pid) {
		list, _ := os.ReadFile(procFile(pid, "task/"+thread+"/children"))
		for _, field := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func threadsOf(pid int) []string {
	dir, err := os.Open(procFile(pid, "task"))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxThreads)
	return names
}

// onlyAncestors reports whether all of the group but p are above it.
func onlyAncestors(group []Info, p Info) bool {
	parents := map[int]int{}
	for _, other := range group {
		parents[other.Pid] = other.Parent
	}
	above := map[int]bool{p.Pid: true}
	for at := p.Parent; !above[at] && parents[at] != 0; at = parents[at] {
		above[at] = true
	}
	return !slices.ContainsFunc(group, func(other Info) bool { return !above[other.Pid] })
}

// hasMaster reports whether a process has the other end of a pseudo-terminal open.
func hasMaster(pid int) bool {
	has := false
	eachOpen(pid, func(link []byte) { has = has || bytes.HasSuffix(link, []byte("/ptmx")) })
	return has
}

// waiting describes the thing that a thread waits for.
type waiting struct {
	keys  bool // it waits for the keyboard
	only  bool // it waits for nothing else
	timed bool // it waits for a limited time only
}

// process reports whether a thread of the process waits for keys, and whether nothing
// else happens in it.
func (l *keyboardLook) process(pid int) (w waiting, only bool) {
	threads := threadsOf(pid)
	for _, thread := range threads {
		if l.threads++; l.threads > maxThreads {
			break
		}
		if one := l.thread(pid, thread); one.keys && (!w.keys || w.timed) {
			w = one
		}
	}
	return w, w.only && !w.timed && len(threads) == 1
}

// thread looks in which system call a thread is: /proc/PID/task/TID/syscall has its
// number and six arguments in hexadecimal (proc_pid_syscall(5)), "running" for one that
// is in none, and -1 for one that waits elsewhere.
func (l *keyboardLook) thread(pid int, thread string) (w waiting) {
	var buf [256]byte
	text, err := readStart(procFile(pid, "task/"+thread+"/syscall"), buf[:])
	if err != nil {
		l.refused = l.refused || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH)
		return w
	}
	fields := strings.Fields(string(text))
	if len(fields) < 7 {
		return w
	}
	call, err := strconv.Atoi(fields[0])
	if err != nil {
		return w
	}
	var arg [6]uint64
	for i := range arg {
		arg[i], _ = strconv.ParseUint(strings.TrimPrefix(fields[1+i], "0x"), 16, 64)
	}
	switch call {
	case unix.SYS_READ, unix.SYS_READV:
		w.keys = l.isKeyboard(pid, arg[0])
		w.only = w.keys
	case unix.SYS_PPOLL, sysPoll:
		w.keys, w.only = l.polls(pid, arg[0], arg[1])
		w.timed = call == unix.SYS_PPOLL && arg[2] != 0 || call == sysPoll && int32(arg[2]) >= 0
	case unix.SYS_PSELECT6, sysSelect:
		w.keys, w.only = l.selects(pid, arg[0], [3]uint64(arg[1:4]))
		w.timed = arg[4] != 0
	case unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, sysEpollWait:
		w.keys = l.epolls(pid, arg[0])
		w.timed = call == unix.SYS_EPOLL_PWAIT2 && arg[3] != 0 || call != unix.SYS_EPOLL_PWAIT2 && int32(arg[3]) >= 0
	}
	return w
}

// isKeyboard reports whether a descriptor of the process is the terminal.
func (l *keyboardLook) isKeyboard(pid int, fd uint64) bool {
	var stat unix.Stat_t
	err := unix.Stat(procFile(pid, "fd/"+strconv.FormatUint(fd, 10)), &stat)
	l.refused = l.refused || errors.Is(err, fs.ErrPermission)
	return err == nil && stat.Mode&unix.S_IFMT == unix.S_IFCHR && (uint64(stat.Rdev) == l.tty || uint64(stat.Rdev) == devTTY)
}

// memory reads the memory of the process.
func (l *keyboardLook) memory(pid int, at uint64, p []byte) bool {
	if at == 0 || len(p) == 0 {
		return false
	}
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &p[0], Len: uint64(len(p))}}, []unix.RemoteIovec{{Base: uintptr(at), Len: len(p)}}, 0)
	l.refused = l.refused || err != nil && !errors.Is(err, unix.ESRCH)
	return err == nil && n == len(p)
}

// polls looks into the array of a poll: fd of 32 bits, events and revents of 16
// (poll(2)).
func (l *keyboardLook) polls(pid int, at, n uint64) (keys, only bool) {
	all := make([]byte, min(n, maxWaitFDs)*uint64(unsafe.Sizeof(unix.PollFd{})))
	if !l.memory(pid, at, all) {
		return false, false
	}
	only = n <= maxWaitFDs
	for one := range slices.Chunk(all, int(unsafe.Sizeof(unix.PollFd{}))) {
		fd, events := int32(binary.NativeEndian.Uint32(one)), binary.NativeEndian.Uint16(one[4:])
		switch {
		case fd < 0:
		case events&unix.POLLIN != 0 && l.isKeyboard(pid, uint64(fd)):
			keys = true
		default:
			only = false
		}
	}
	return keys, only
}

// selects looks into the sets of a select, as many bits as there are descriptors: to
// read, to write, and for exceptions (select(2)).
func (l *keyboardLook) selects(pid int, n uint64, sets [3]uint64) (keys, only bool) {
	only = n <= maxWaitFDs
	set := make([]byte, (min(n, maxWaitFDs)+7)/8)
	for i, at := range sets {
		if at == 0 || !l.memory(pid, at, set) {
			continue
		}
		for fd := range min(n, maxWaitFDs) {
			switch {
			case set[fd/8]>>(fd%8)&1 == 0:
			case i == 0 && l.isKeyboard(pid, fd):
				keys = true
			default:
				only = only && i == 2 // some ask for exceptions, too
			}
		}
	}
	return keys, only
}

// epolls looks into /proc/PID/fdinfo of an epoll, which has a line "tfd: FD events: MASK
// …" for each descriptor (proc_pid_fdinfo(5)).
func (l *keyboardLook) epolls(pid int, fd uint64) bool {
	info, err := os.ReadFile(procFile(pid, "fdinfo/"+strconv.FormatUint(fd, 10)))
	if err != nil {
		l.refused = true
		return false
	}
	for line := range strings.Lines(string(info)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[0] != "tfd:" {
			continue
		}
		target, err := strconv.ParseUint(fields[1], 10, 31)
		events, err2 := strconv.ParseUint(fields[3], 16, 64)
		if err == nil && err2 == nil && events&unix.EPOLLIN != 0 && l.isKeyboard(pid, target) {
			return true
		}
	}
	return false
}
