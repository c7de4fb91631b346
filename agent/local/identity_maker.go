package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"tether/platform/proc"
)

// system has the functions that report facts about programs. Tests replace them.
type system struct {
	holders    func(of proc.Info, first int) ([]int, error) // see proc.MasterHolders
	line       func(pid int) []proc.Ancestor                // see proc.Lineage
	privileged func(proc.Ancestor) bool                     // see proc.Privileged
	installed  func(exe string) bool                        // see proc.Installed
	has        func(p proc.Ancestor, name string) bool      // see proc.Beside
	own        func(exe string) bool                        // it is in the directory of this program
	root       bool                                         // this process is privileged itself, so that privileged proves little
}

func thisSystem() system {
	self, _ := os.Executable() // "" is no directory of another program
	return system{holders: proc.MasterHolders, line: proc.Lineage, privileged: proc.Privileged, installed: proc.Installed, has: proc.Beside,
		own: func(exe string) bool { return self != "" && filepath.Dir(exe) == filepath.Dir(self) }, root: proc.Root()}
}

// maxMade bounds how many nested terminals made examines.
const maxMade = 16

// made returns no reason if the terminal of a process with this lineage is a sign of a
// person, and otherwise why not: the program that has made it is an agent, or it is
// unknown, or it is one such as script(1) that shows no sign itself. A program that is in
// no table and has no controlling terminal may be a terminal emulator, so a person is
// assumed to sit before its terminals.
func (e *evidence) made(p proc.Ancestor, line []proc.Ancestor, within int) (no noSign) {
	if within == 0 {
		return noSign{why: fmt.Sprintf("%s is in more than %d terminals within each other", processName(e.line[0]), maxMade)}
	}
	i := leaderIn(line, p.Session)
	if i < 0 {
		line = e.leader
		if p.Pid != e.line[0].Pid {
			line = e.system.line(p.Session)
		}
		i = leaderIn(line, p.Session)
	}
	if i < 0 || line[i].Pid <= 1 || e.isTethers(line[i]) {
		return no // it was made outside this system's view, for example by docker run -it, or it is one of ours
	}
	all, why := e.makers(p, line[i], line[i+1:])
	if why != "" {
		return noSign{why: why}
	}
	for _, maker := range all {
		if no = e.shows(maker, within); no.why != "" {
			break
		}
	}
	return no
}

// isTethers reports whether the leader of a session is the child of one of tether's
// terminals.
func (e *evidence) isTethers(leader proc.Ancestor) bool {
	return slices.ContainsFunc(e.terminals, func(t started) bool { return t.pid > 1 && t.pid == leader.Pid })
}

// makers returns the lineages of the processes that have the other end of a terminal
// open, without those that have inherited it from another one; none if the system itself
// has made the terminal. why is set if no such process can be found. If the system does
// not report these processes, the process above the session's leader counts as the maker.
func (e *evidence) makers(p, leader proc.Ancestor, above []proc.Ancestor) (all [][]proc.Ancestor, why string) {
	first := 0
	if len(above) > 0 {
		first = above[0].Pid
	}
	holders, err := e.system.holders(p.Info, first)
	switch {
	case errors.Is(err, proc.ErrNoPty):
		return nil, ""
	case errors.Is(err, errors.ErrUnsupported):
		if first > 1 {
			all = append(all, above)
		}
		return all, ""
	case len(holders) == 0 && (leader.Parent == 0 || e.isService(above)):
		return nil, ""
	case len(holders) == 0:
		return nil, fmt.Sprintf("no program is found that has made the terminal of %s", processName(p))
	}
	for _, pid := range holders {
		line := above
		if pid != first {
			line = e.system.line(pid)
		}
		if !slices.ContainsFunc(line[min(1, len(line)):], func(a proc.Ancestor) bool { return slices.Contains(holders, a.Pid) }) {
			all = append(all, line)
		}
	}
	return all, ""
}

// isService reports whether a system service has started the session for somebody who has
// logged in. The process that has made such a terminal, for example sshd's, may not be
// examined.
func (e *evidence) isService(above []proc.Ancestor) bool {
	for _, a := range above {
		name := program(a.Argv)
		switch {
		case a.Pid <= 1, oneOf(batch, name):
			return false
		case e.system.privileged(a), e.system.root && oneOf(managers, name):
			return true
		}
	}
	return false
}

// shows returns why a terminal's maker does not act for a person, or no reason if it
// does.
func (e *evidence) shows(line []proc.Ancestor, within int) (no noSign) {
	if len(line) == 0 {
		return noSign{why: "the program that has made its terminal has just ended"}
	}
	maker := line[0]
	if maker.Pid == e.daemon {
		return no
	}
	look := e.agentIn
	if e.showsTerminals(maker) || e.mine(maker) {
		look = e.named // it may have marks because an agent has started it once
	}
	if c, ok := look(line); ok {
		return noSign{why: fmt.Sprintf("%s has made its terminal, and %s", processName(maker), c.Why)}
	}
	switch {
	case e.showsTerminals(maker), maker.TTY == 0 && !e.makesTerminals(maker), e.mine(maker):
		return no
	case maker.TTY == 0:
		return noSign{why: fmt.Sprintf("%s has made its terminal, and has no controlling terminal", processName(maker))}
	case maker.Front != maker.Group:
		return noSign{why: fmt.Sprintf("%s has made its terminal, and runs in the background of its own", processName(maker))}
	}
	if no = e.between(maker, line); no.why != "" {
		return no
	}
	return e.made(maker, line, within-1)
}
