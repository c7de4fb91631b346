package local

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/devserver"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/proc"
	"tether/screen"
)

// What the tools of agents say of who has a port.

// PortUsers implements agenttools.Locator.
func (a *agentTerminals) PortUsers(ports []int) map[int]string {
	if a.access.Actor().At() != "" || len(ports) == 0 {
		return nil // a host is told nothing of this machine's programs
	}
	held, err := proc.AllListeners(devserver.Running(a.server.opts.Access(term.User).List()...))
	if err != nil {
		return nil
	}
	users := map[int]string{}
	for _, port := range ports {
		users[port] = screen.Clean(a.portUser(port, held))
	}
	return users
}

// portUser says who has a port, "" if nobody has: a terminal to those who may see it.
func (a *agentTerminals) portUser(port int, held []proc.Held) string {
	held = slices.DeleteFunc(slices.Clone(held), func(l proc.Held) bool { return int(l.Addr.Port()) != port })
	for _, l := range held {
		if h, seen := seenIn(a.access, l.In); seen {
			return a.server.describe(h, l.Pid)
		}
	}
	switch {
	case len(held) == 0:
		if others, err := proc.OnPort(port); err != nil || len(others) == 0 {
			return ""
		}
		return "a program that is not this user's"
	case a.access.Actor() != term.User:
		return a.outsideUser(held)
	}
	at := ""
	pid := held[0].Pid
	if dir := proc.Directories([]int{pid})[pid]; dir != "" {
		at = " in " + homely(dir)
	}
	name := "a program"
	if argv := proc.Argv(pid); len(argv) > 0 {
		name = filepath.Base(argv[0])
	}
	return fmt.Sprintf("%s (process %d)%s, outside tether", name, pid, at)
}

// outsideUser says to an agent who has a port that no terminal has that it sees.
func (a *agentTerminals) outsideUser(held []proc.Held) string {
	dirs := directoriesOf(held, devserver.Running(a.access.List()...))
	for _, p := range a.server.portsOf(a.access, look{held: held, dirs: dirs}) {
		if p.Outside {
			return unseenUser(p)
		}
	}
	return "another program of this user"
}

// Unseen implements agenttools.Locator.
func (a *agentTerminals) Unseen() (all []agenttools.UnseenPort) {
	ports, err := a.server.portsFor(a.access, nil)
	if err != nil || a.access.Actor() == term.User {
		return nil
	}
	for _, p := range ports {
		one := agenttools.UnseenPort{Port: p.Port, Program: strings.Join(p.Command, " "), Cwd: p.Directory}
		if p.Checkout != nil {
			one.Branch = p.Checkout.Branch
		}
		if p.Adopt != "" {
			one.Adopt = "tether adopt " + p.Adopt
		}
		if !p.Since.IsZero() {
			one.Since = p.Since.UnixMilli()
		}
		same := func(o agenttools.UnseenPort) bool {
			return o.Port == one.Port && o.Program == one.Program && o.Cwd == one.Cwd
		}
		if p.Outside && !slices.ContainsFunc(all, same) { // it listens at several addresses
			all = append(all, one)
		}
	}
	return all
}

// unseenOn says which program in no terminal has a port, "" if the agent is told of none.
func (a *agentTerminals) unseenOn(port int) string {
	all, err := a.server.portsFor(a.access, nil)
	if i := slices.IndexFunc(all, func(p localapi.UserPort) bool { return p.Outside && p.Port == port }); err == nil && i >= 0 {
		return screen.Clean(unseenUser(all[i]))
	}
	return ""
}

// unseenUser says who has a port, for an agent.
func unseenUser(p localapi.UserPort) string {
	at := ""
	if p.Directory != "" {
		at = " in " + p.Directory
	}
	return fmt.Sprintf("%s%s, %s", cmp.Or(strings.Join(p.Command, " "), "a program"), at, agenttools.UnseenNotice)
}

// describe names a terminal: web of ~/src/app (main), pty-….
func (s *Server) describe(h term.Handle, pid int) string {
	i := h.Info()
	dir, branch := i.Cwd, ""
	if own := proc.Directories([]int{pid})[pid]; own != "" && !h.IsMasked() {
		dir = own
	}
	if c := s.opts.Checkouts.Known(dir)[dir]; c.Worktree != "" {
		if dir = h.Redact(c.Worktree); c.Branch != "" {
			c.Commit = ""
		}
		branch = fmt.Sprintf(" (%s)", h.Redact(c.Label()))
	}
	return fmt.Sprintf("%s of %s%s, %s", i.Name, homely(dir), branch, i.ID)
}
