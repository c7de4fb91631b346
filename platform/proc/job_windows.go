package proc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"tether/internal/retry"
)

// Job holds a program and everything that descends from it: Windows puts each child of a
// member into it, and none can leave. While this process lives it can end them all at
// once; when it dies without a word, Windows ends them.
//
// Its methods are safe for concurrent use, but nothing may follow Close.
type Job struct{ handle windows.Handle }

// NewJob returns an empty job. The caller must call Close.
func NewJob() (*Job, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create job: %w", err)
	}
	j := &Job{h}
	if err := j.limit(limitInfo(windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, 0, 0)); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// AgentJob returns the job of all programs in terminals of the agent with this principal.
// It is the same job in every process of the user's session: Windows knows it by name
// while one of them has it open. Unlike those of NewJob, its members continue when it is
// closed. The caller must call Close.
func AgentJob(principal string) (*Job, error) {
	prefix, err := agentJobPrefix()
	if err != nil {
		return nil, fmt.Errorf("job of agent %.64q: %w", principal, err)
	}
	name, err := windows.UTF16PtrFromString(`Local\` + prefix + hex.EncodeToString([]byte(principal)))
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateJobObject(nil, name)
	if h == 0 {
		return nil, fmt.Errorf("job of agent %.64q: %w", principal, err)
	}
	return &Job{h}, nil // err says whether the job existed before
}

// AgentMembers returns the numbers of the processes that are in the agent's job, see
// AgentJob.
func AgentMembers(principal string) ([]int, error) {
	job, err := AgentJob(principal)
	if err != nil {
		return nil, err
	}
	pids, err := job.Pids()
	return pids, errors.Join(err, job.Close())
}

// agentJobPrefix is how the names of the user's agents' jobs begin, since a session may
// have several users. The principal follows in hexadecimal: it may hold anything, and is
// to be found by the name.
func agentJobPrefix() (string, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", fmt.Errorf("look up the user of this process: %w", err)
	}
	sum := sha256.Sum256([]byte(user.User.Sid.String()))
	return fmt.Sprintf("tether-agent-%x-", sum[:8]), nil
}

// Bound says how many processes the members may be at a time, and how many bytes of
// memory they may have together. 0 bounds nothing.
func (j *Job) Bound(processes int, memory int64) error {
	return j.limit(limitInfo(0, processes, memory))
}

// limitInfo returns the limits in the form that Windows takes. For processes and memory,
// 0 means no bound.
func limitInfo(flags uint32, processes int, memory int64) *windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION {
	info := &windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	if processes > 0 {
		flags |= windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
		info.BasicLimitInformation.ActiveProcessLimit = uint32(min(processes, math.MaxInt32))
	}
	if memory > 0 {
		flags |= windows.JOB_OBJECT_LIMIT_JOB_MEMORY
		info.JobMemoryLimit = uintptr(memory)
	}
	info.BasicLimitInformation.LimitFlags = flags
	return info
}

func (j *Job) limit(info *windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION) error {
	_, err := windows.SetInformationJobObject(j.handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(info)), uint32(unsafe.Sizeof(*info)))
	if err != nil {
		return fmt.Errorf("limit job: %w", err)
	}
	return nil
}

// Handle is for the list of jobs a process is created in
// (PROC_THREAD_ATTRIBUTE_JOB_LIST). It remains the job's.
func (j *Job) Handle() windows.Handle { return j.handle }

// Spare lets the members live on when the job is closed or this process dies.
func (j *Job) Spare() error { return j.limit(limitInfo(0, 0, 0)) }

// Pids returns the process numbers of the members that have not ended.
func (j *Job) Pids() ([]int, error) {
	for room := 64; ; room *= 2 {
		list := make([]uintptr, 1+room) // JOBOBJECT_BASIC_PROCESS_ID_LIST: two 32-bit counts, then the numbers
		err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicProcessIdList,
			uintptr(unsafe.Pointer(&list[0])), uint32(uintptr(len(list))*unsafe.Sizeof(list[0])), nil)
		counts := (*[2]uint32)(unsafe.Pointer(&list[0])) // assigned, in the list
		if errors.Is(err, windows.ERROR_MORE_DATA) || err == nil && counts[1] < counts[0] && int(counts[0]) > room {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list job: %w", err)
		}
		pids := make([]int, counts[1])
		for i := range pids {
			pids[i] = int(list[1+i])
		}
		return pids, nil
	}
}

// Empty reports whether no member is left.
func (j *Job) Empty() (bool, error) {
	pids, err := j.Pids()
	return len(pids) == 0, err
}

// Wait returns true when no member is left, false when ctx was done first or the job
// could not be asked. It looks ever more seldom.
func (j *Job) Wait(ctx context.Context) bool {
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		empty, err := j.Empty()
		if empty || err != nil {
			return err == nil
		}
		if !retry.Wait(ctx, pause) {
			return false
		}
	}
}

// killBound is how long Kill waits for the members to be gone; only one that is stuck in
// the kernel lasts that long.
const killBound = 5 * time.Second

// Kill ends all members at once, which they cannot prevent, with this exit code, and
// returns when they are gone; the error names those that remain after 5 s.
func (j *Job) Kill(code uint32) error {
	if err := windows.TerminateJobObject(j.handle, code); err != nil {
		return fmt.Errorf("end job: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), killBound)
	defer cancel()
	if j.Wait(ctx) {
		return nil
	}
	pids, err := j.Pids()
	return errors.Join(fmt.Errorf("processes still running after they were ended: pid %v", pids), err)
}

// Close gives the job up. Unless Spare was called, that ends the members.
func (j *Job) Close() error { return windows.CloseHandle(j.handle) }
