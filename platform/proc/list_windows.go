package proc

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// hasTags says whether tagged can be relied on. It is not needed: a Job knows its
// members.
const hasTags = false

// tagged always returns false: Windows does not show the environment of other processes.
func tagged(int, string) (yes, unsure bool) { return false, false }

// HasTTYs says whether processes have controlling terminals, see Info.TTY.
const HasTTYs = false

// scan calls visit for each process. The kernel copies its table in one go, so the
// picture is whole, but a parent's number may have changed hands: one that started after
// its child is not its parent.
func scan(visit func(Info)) (whole bool, err error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return false, fmt.Errorf("list processes: %w", err)
	}
	defer windows.CloseHandle(snapshot)
	var entry windows.ProcessEntry32
	entry.Size = uint32(unsafe.Sizeof(entry))
	all := map[int]Info{}
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		if p, err := lookup(int(entry.ProcessID)); err == nil { // else it has ended, or is not ours to look at
			p.Parent = int(entry.ParentProcessID)
			all[p.Pid] = p
		}
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return false, fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		if parent, ok := all[p.Parent]; ok && parent.Start > p.Start {
			p.Parent = 0
		}
		visit(p)
	}
	return true, nil
}

// lookup leaves Parent, Group and Session 0: only the table has the first, and Windows
// does not have the others.
func lookup(pid int) (Info, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return Info{}, fmt.Errorf("inspect process %d: %w", pid, err)
	}
	defer windows.CloseHandle(h)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return Info{}, fmt.Errorf("inspect process %d: %w", pid, err)
	}
	// A process that has ended is still there while anybody holds a handle of it, as
	// zombies are elsewhere.
	state, err := windows.WaitForSingleObject(h, 0)
	start := uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime)
	return Info{ID: ID{Pid: pid, Start: start}, Zombie: err == nil && state == windows.WAIT_OBJECT_0}, nil
}

// mine reports whether the process runs as our user; one that may not be inspected does
// not.
func mine(p Info) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(p.Pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	var token windows.Token
	if err := windows.OpenProcessToken(h, windows.TOKEN_QUERY, &token); err != nil {
		return false
	}
	defer token.Close()
	its, err := token.GetTokenUser()
	own, err2 := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && err2 == nil && its.User.Sid.Equals(own.User.Sid)
}

// started converts the time of a Filetime.
func started(start uint64) time.Time {
	t := windows.Filetime{LowDateTime: uint32(start), HighDateTime: uint32(start >> 32)}
	return time.Unix(0, t.Nanoseconds())
}
