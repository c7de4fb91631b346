package proc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows"
)

// Tree is everything that descends from a process. Use a Job for processes that must
// certainly end: a Tree finds only those whose parents, up to the leader, have not ended
// when Kill begins.
type Tree struct {
	Leader ID
	Reaped bool   // the leader has ended: nothing can be found any more
	Tag    string // unused: Windows shows no environment; a holder's job ends the processes of its terminal
}

// treeKilled is the exit code of processes that Kill ends, as for SIGKILL.
const treeKilled = 137

// Kill ends the leader and its descendants at once: Windows has no way to ask them. ctx
// and grace are unused. The error names the processes that could not be ended.
func (t Tree) Kill(context.Context, time.Duration) error {
	if t.Reaped {
		return nil
	}
	all, err := List()
	if err != nil {
		return err
	}
	leader := Info{ID: t.Leader}
	var failed []error
	for _, p := range append([]Info{leader}, Descendants(all, t.Leader.Pid)...) {
		if err := end(p.ID); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// end ends exactly this process and no later owner of its number.
func end(id ID) error {
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(id.Pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil // there is no such process
	}
	if err != nil {
		return fmt.Errorf("end process %d: %w", id.Pid, err)
	}
	defer windows.CloseHandle(h) // while it is open the number stays the process's
	now, err := lookup(id.Pid)
	if err != nil || now.ID != id || now.Zombie {
		return nil
	}
	if err := windows.TerminateProcess(h, treeKilled); err != nil {
		return fmt.Errorf("end process %d: %w", id.Pid, err)
	}
	return nil
}
