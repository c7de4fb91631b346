package local

import (
	"errors"
	"fmt"
	"slices"

	"tether/agent/term"
	"tether/platform/proc"
)

// promotedAgent is the principal of programs in a terminal that an agent has started and
// given to the person, if an older daemon did not record which agent it was.
const promotedAgent = "promoted"

// Caller is the identity of a program at this door, and the reason for it.
type Caller struct {
	// Actor is the person, an agent or, if neither can be established, nobody, who may do
	// nothing.
	Actor term.Actor
	Why   string // which process or mark decided it
	// Sign is the sign of a person's presence, or "". NoSign is why there is none. The
	// powers of a person depend on it, see power.
	Sign, NoSign string

	// Stranger is the name of the program whose presence takes the sign, as [identity] of
	// the configuration may have it; else "".
	Stranger string

	err error // why it is nobody
	// renames: it is an agent that may give another name. An editor contains agents of
	// several names, and what a table or a maker's mark says is only a name for want of
	// another.
	renames bool
}

// started has the facts about a terminal that matter for the identity of programs in it.
type started struct {
	id       string
	pid      int        // of its child; 0 if that has ended or is not known yet
	by       term.Actor // the person or an agent
	unsigned bool       // by a caller without a sign of a person
}

// startedFrom returns these facts for a terminal of the pool.
func startedFrom(i term.Info) started {
	s := started{id: string(i.ID), by: i.Owner, unsigned: i.Unsigned}
	if i.Exit == nil && i.Pid > 1 && i.Adopted == nil { // programs in a pane count as before
		s.pid = i.Pid
	}
	if i.Owner.Role == term.RoleUser && i.Promoted { // otherwise an agent could leave its sandbox by promoting a terminal
		s.by = i.Starter
		if s.by.Role != term.RoleAgent {
			s.by = term.Agent(promotedAgent)
		}
	}
	return s
}

// evidence is everything from which a caller's identity is decided.
type evidence struct {
	line      []proc.Ancestor // the caller and its ancestors, nearest first
	leader    []proc.Ancestor // the caller's session leader and its ancestors, if line does not contain it
	beside    []proc.Ancestor // leaders of the caller's session and process group that are not in line
	daemon    int             // our own process id
	terminals []started
	agents    []AgentRecord
	lists     identityLists
	system    system
}

// identify returns the identity of the first program of the lineage: the nearest agent
// that has started it, else the person. This is an obstacle, not a security boundary,
// because a program can hide its origin.
func identify(e evidence) Caller {
	if len(e.line) == 0 {
		return nobody(errors.New("the calling program has ended or cannot be inspected"))
	}
	if c, ok := e.agentIn(e.line); ok {
		return c
	}
	if c, ok := e.besides(); ok {
		return c
	}
	c := Caller{Actor: term.User, Why: fmt.Sprintf("no agent has started %s", processName(e.line[0]))}
	var no noSign
	c.Sign, no = e.sign()
	c.NoSign, c.Stranger = no.why, no.stranger
	return c
}

// agentIn looks for the nearest agent in a lineage.
func (e *evidence) agentIn(line []proc.Ancestor) (Caller, bool) {
	if c, ok := e.named(line); ok {
		return c, true
	}
	return e.vendorMarked(line)
}

// named looks for the nearest agent in a lineage, without marks of agents' makers. What
// the daemon knows itself has priority over marks in environments: otherwise an agent in
// a sandbox could change its marks and count as another agent, without that sandbox.
// Known agents come last, because nobody has given them a name.
func (e *evidence) named(line []proc.Ancestor) (Caller, bool) {
	for _, look := range []func(proc.Ancestor) (Caller, bool){e.known, e.marked, e.listed} {
		for _, p := range line {
			if p.Pid == e.daemon {
				break // processes started by the daemon's ancestors do not count
			}
			if c, ok := look(p); ok {
				return c, true
			}
			if e.personsTerminal(p) {
				break // nor do the ancestors of the terminal's holder
			}
		}
	}
	return Caller{}, false
}

// nobody returns the caller without rights.
func nobody(why error) Caller { return Caller{Why: why.Error(), NoSign: why.Error(), err: why} }

// known looks for an agent's terminal and for a recorded agent.
func (e *evidence) known(p proc.Ancestor) (Caller, bool) {
	for _, t := range e.terminals {
		if t.by.Role == term.RoleAgent && t.pid > 1 && (p.Pid == t.pid || p.Session == t.pid) {
			return Caller{Actor: t.by, Why: fmt.Sprintf("%s runs in terminal %s", processName(p), t.id)}, true
		}
	}
	for _, r := range e.agents {
		if why := r.covers(p, e.line[0]); why != "" {
			return Caller{Actor: term.Agent(r.Principal), Why: why, renames: r.Editor}, true
		}
	}
	return Caller{}, false
}

// marked looks for marks of agents and of their terminals. Marks of the person's
// terminals do not count, because agents that run in them have these marks, too.
func (e *evidence) marked(p proc.Ancestor) (Caller, bool) {
	if n := len(p.Agents); n > 0 {
		return Caller{Actor: term.Agent(p.Agents[n-1]), Why: fmt.Sprintf("the environment of %s has the mark %s", processName(p), proc.AgentTag(p.Agents[n-1]))}, true
	}
	for _, t := range e.terminals {
		if t.by.Role == term.RoleAgent && slices.Contains(p.Terminals, t.id) {
			return Caller{Actor: t.by, Why: fmt.Sprintf("the environment of %s has the mark of terminal %s", processName(p), t.id)}, true
		}
	}
	return Caller{}, false
}

// personsTerminal reports whether p is the child of a terminal of the person's.
func (e *evidence) personsTerminal(p proc.Ancestor) bool {
	return slices.ContainsFunc(e.terminals, func(t started) bool { return t.by == term.User && t.pid > 1 && t.pid == p.Pid })
}

// noSign is why there is no sign of a person; the zero value is no reason.
type noSign struct{ why, stranger string }

// sign checks for a sign of a person: the caller is in the foreground of a controlling
// terminal that was started by a person, as far as is known, and nothing but programs in
// which people start others is between them. On systems without controlling terminals, no
// sign is required.
func (e *evidence) sign() (sign string, no noSign) {
	p := e.line[0]
	switch {
	case p.Pid == e.daemon:
		return "the daemon itself", no
	case !proc.HasTTYs:
		return "this system has no controlling terminals, so that none is asked for", no
	case p.TTY == 0:
		return "", noSign{why: fmt.Sprintf("%s has no controlling terminal", processName(p))}
	case p.Front != p.Group:
		return "", noSign{why: fmt.Sprintf("%s runs in the background of its terminal", processName(p))}
	}
	for _, a := range e.line {
		if a.Pid == e.daemon {
			break // its terminal cannot be determined
		}
		if t := e.unsigned(a); t != "" {
			return "", noSign{why: fmt.Sprintf("%s runs in terminal %s, which no person is known to have started", processName(a), t)}
		}
		if e.personsTerminal(a) {
			break
		}
	}
	if no = e.made(p, e.line, maxMade); no.why == "" && p.Pid != p.Session {
		no = e.between(p, e.line[1:])
	}
	if no.why != "" {
		return "", no
	}
	return fmt.Sprintf("%s is in the foreground of a terminal", processName(p)), no
}

// between looks for a program between a process and the leader of its session, both ends
// of line included, that is in no table: it may be an agent. A process that has lost its
// parents hides who is there.
func (e *evidence) between(p proc.Ancestor, line []proc.Ancestor) (no noSign) {
	for _, a := range line {
		if a.Pid == e.daemon || a.Session != p.Session {
			break
		}
		if name := e.stranger(a); name != "" {
			return noSign{why: fmt.Sprintf("process %d (%.60q), which is in no table of known programs, stands between %s and its terminal", a.Pid, name, processName(p)), stranger: name}
		}
		if a.Pid == p.Session {
			return no
		}
	}
	if len(e.leader) > 0 && p.Pid == e.line[0].Pid {
		return noSign{why: fmt.Sprintf("%s has lost its parents, so that nothing tells which programs stand between it and its terminal", processName(p))}
	}
	return no
}

// stranger returns the name of a program that is neither the person's by the
// configuration nor in a table of programs in which people start others, or "".
func (e *evidence) stranger(p proc.Ancestor) string {
	if e.mine(p) {
		return ""
	}
	if name := e.fitting(p); name != "" {
		for _, table := range [][]string{shells, wrappers, runners, never, editors, makers} {
			if oneOf(table, name) {
				return ""
			}
		}
	}
	return namesOf(p)[0]
}

// leaderIn returns the index of the session's leader in line, or -1.
func leaderIn(line []proc.Ancestor, session int) int {
	return slices.IndexFunc(line, func(a proc.Ancestor) bool { return a.Pid == session })
}

// unsigned returns the id of the terminal in which p runs if a caller without a sign has
// started it, else "".
func (e *evidence) unsigned(p proc.Ancestor) string {
	for _, t := range e.terminals {
		if t.unsigned && (slices.Contains(p.Terminals, t.id) || t.pid > 1 && (p.Pid == t.pid || p.Session == t.pid)) {
			return t.id
		}
	}
	return ""
}

// covers returns why descendants of p count as the recorded agent, or "" if they do not.
// A program that outlives its parents is found by the session or the process group that
// the agent leads.
func (r *AgentRecord) covers(p, caller proc.Ancestor) string {
	switch {
	case r.Editor && caller.TTY != 0:
		return "" // it belongs to the person, in one of the editor's own terminals
	case p.ID == r.ID:
		return fmt.Sprintf("%s is agent %s", processName(p), r.Principal)
	case r.Editor:
		return ""
	case p.Session == r.Pid:
		return fmt.Sprintf("%s runs in the session of agent %s", processName(p), r.Principal)
	case r.Group != 0 && p.Group == r.Group:
		return fmt.Sprintf("%s runs in the process group of agent %s", processName(p), r.Principal)
	}
	return ""
}
