package proc

import "golang.org/x/sys/unix"

func front(pid int) (Foreground, bool) {
	row, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || row.Eproc.Tpgid <= 0 {
		return Foreground{}, false
	}
	return Foreground{Pid: int(row.Eproc.Tpgid)}, true
}
