package proc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// stoppedState and zombieState are SSTOP and SZOMB of <sys/proc.h>.
const (
	stoppedState = 4
	zombieState  = 5
)

// HasTTYs says whether processes have controlling terminals, see Info.TTY.
const HasTTYs = true

// scan calls visit for each process. The kernel copies its table in one go, so the
// picture is whole.
func scan(visit func(Info)) (whole bool, err error) {
	rows, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return false, err
	}
	for i := range rows {
		visit(info(&rows[i]))
	}
	return true, nil
}

func lookup(pid int) (Info, error) {
	row, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Info{}, err
	}
	if int(row.Proc.P_pid) != pid {
		return Info{}, unix.ESRCH // for a number that no process has, the answer is empty
	}
	return info(row), nil
}

func info(row *unix.KinfoProc) Info {
	start := row.Proc.P_starttime
	p := Info{
		ID:      ID{Pid: int(row.Proc.P_pid), Start: uint64(start.Sec)*1e6 + uint64(start.Usec)},
		Parent:  int(row.Eproc.Ppid),
		Group:   int(row.Eproc.Pgid),
		Stopped: row.Proc.P_stat == stoppedState, Zombie: row.Proc.P_stat == zombieState,
	}
	if row.Eproc.Tdev > 0 { // NODEV is -1
		p.TTY, p.Front = int(row.Eproc.Tdev), max(0, int(row.Eproc.Tpgid))
	}
	if sid, err := unix.Getsid(p.Pid); err == nil { // the table holds only a kernel address
		p.Session = sid
	}
	return p
}

// mine reports whether the process runs as our user, see the Linux file.
func mine(p Info) bool {
	row, err := unix.SysctlKinfoProc("kern.proc.pid", p.Pid)
	if err != nil {
		return false
	}
	uid := uint32(os.Getuid())
	return row.Eproc.Pcred.P_ruid == uid || row.Eproc.Pcred.P_svuid == uid
}

// ignores reports whether the process ignores sig.
func ignores(p Info, sig unix.Signal) bool {
	row, err := unix.SysctlKinfoProc("kern.proc.pid", p.Pid)
	return err == nil && row.Proc.P_sigignore&(1<<(sig-1)) != 0
}

// hasTags says whether tagged can be relied on.
const hasTags = false

// tagged always returns false: macOS shows a process's environment only for some programs
// (not for those it ships itself). So a process that started its own session and lost its
// parent before Tree.Kill began is not found here.
func tagged(int, string) (yes, unsure bool) { return false, false }

// signal sends sig to this process. macOS has no handle for a foreign process, so that
// between the check and the signal the number could in theory change hands.
func signal(id ID, sig unix.Signal) error {
	if now, err := lookup(id.Pid); err != nil || now.ID != id {
		return unix.ESRCH
	}
	return unix.Kill(id.Pid, sig)
}

// markAll is unsupported: macOS has no close_range(2).
func markAll() error { return unix.ENOSYS }

func started(start uint64) time.Time { return time.UnixMicro(int64(start)) }
