package term

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tether/platform/proc"
)

func (t *Terminal) leftover() []proc.Info { return Leftover(t.id) }

// Leftover returns the processes that carry the mark of a terminal whose child has ended.
// A process in which another terminal's mark follows was started there, and does not
// count. The result is empty if the system does not show marks.
func Leftover(id ID) []proc.Info {
	all, err := proc.Tagged(proc.Tag(string(id)))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(p proc.Info) bool {
		lineage := proc.Lineage(p.Pid)
		if len(lineage) == 0 {
			return true // it has ended
		}
		marks := lineage[0].Terminals
		return len(marks) == 0 || marks[len(marks)-1] != string(id)
	})
}

// leftoverLooks is how often endLeftover looks again for processes that started while it
// ended others.
const leftoverLooks = 5

// left returns how many processes of an agent's terminal may be left: those below its
// holder or, on Windows, those in the agent's job. The job includes the processes of the
// agent's other terminals, but Kill ends only those of this one.
func (t *Terminal) left() int {
	i := t.Info()
	agent := i.Owner
	if i.Promoted {
		agent = i.Starter
	}
	if agent.Role == RoleAgent {
		if members, err := proc.AgentMembers(agent.Name); err == nil {
			return len(members)
		}
	}
	if h, ok := t.pty.(interface{ Left() int }); ok {
		return h.Left()
	}
	return 0
}

// endLeftover ends the processes that Leftover returns, with all their descendants, and
// those below the holder of an agent's terminal. It returns how many there were at first.
func (t *Terminal) endLeftover(ctx context.Context) (n int, err error) {
	if before := t.left(); before > 0 {
		err := t.pty.Kill(ctx, t.pool.opts.KillGrace)
		if n = max(0, before-t.left()); err != nil {
			return n, err
		}
	}
	for range leftoverLooks {
		all := t.leftover()
		n = max(n, len(all))
		if len(all) == 0 {
			return n, nil
		}
		errs := make([]error, len(all))
		var wg sync.WaitGroup
		for i, p := range all {
			wg.Go(func() { errs[i] = proc.Tree{Leader: p.ID}.Kill(ctx, t.pool.opts.KillGrace) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return n, err
		}
	}
	if left := t.leftover(); len(left) > 0 {
		return n, fmt.Errorf("%d processes are left: new ones start faster than they can be ended", len(left))
	}
	return n, nil
}
