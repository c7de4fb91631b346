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

// Leftover returns the processes that carry the mark of a terminal whose child has ended. A process with another terminal's mark after it
// was started there, and does not count. It is empty if marks cannot be seen.
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

// leftoverLooks is how often it looks again for processes born while others were ended.
const leftoverLooks = 5

// left is how many processes may be left of an agent's terminal: those below its holder or, on Windows, those in the agent's job, which
// include those of the agent's other terminals. A Kill of the terminal ends only its own.
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

// endLeftover ends the processes that leftover returns, with all descendants, and those that an agent's terminal has below its holder, and
// returns the initial number of processes.
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
