package holder

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"tether/platform/ipc"
	"tether/platform/proc"
)

// guard decides which processes that have the key may be a holder's daemon. The key alone
// is not enough: it is in a file that every program of the user outside a sandbox can
// read.
type guard struct {
	lock    string   // path of the daemon's lock; "": none is required
	outside []string // agents that have started the holder's first daemon
}

// newGuard returns the guard of a holder that the process starter has started.
func newGuard(lock string, starter int) guard { return guard{lock, agentsAbove(proc.Lineage(starter))} }

// agentsAbove returns the agents that have started a process with this lineage.
func agentsAbove(lineage []proc.Ancestor) []string {
	var all []string
	for _, a := range lineage {
		all = append(all, a.Agents...)
	}
	return all
}

// check refuses a process that does not hold the daemon's lock, if the system can tell.
// It also refuses a process that an agent has started, unless the same agent has started
// the holder's first daemon: then tether is the agent's own.
func (g guard) check(conn net.Conn) error {
	peer, err := ipc.PeerOf(conn)
	known := !errors.Is(err, ipc.ErrNoPeer)
	if known && err != nil {
		return &RefusedError{fmt.Sprintf("the holder cannot identify the connecting process: %v", err)}
	}
	defer peer.Close()
	pid := peer.Pid
	if g.lock != "" {
		holds, err := ipc.Holds(pid, g.lock)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return &RefusedError{fmt.Sprintf("the holder cannot check whether process %d is the daemon: %v", pid, err)}
		}
		if err == nil && !holds {
			return &RefusedError{fmt.Sprintf("the holder accepts only the daemon, and process %d does not hold the daemon's lock %s", pid, g.lock)}
		}
	}
	if !known {
		return nil // this system says nothing about peers
	}
	lineage := proc.Lineage(pid)
	if len(lineage) == 0 || peer.Gone() {
		return &RefusedError{fmt.Sprintf("the holder refused process %d, which has ended", pid)}
	}
	for _, mark := range agentsAbove(lineage) {
		if !slices.Contains(g.outside, mark) {
			return &RefusedError{fmt.Sprintf("the holder refused process %d, which agent %.64s has started", pid, mark)}
		}
	}
	return nil
}
