package local

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/clip"
	"tether/platform/proc"
)

// userPorts answers with the ports on which this user's programs listen. An agent is told
// of those in terminals that it sees.
func (s *Server) userPorts(w http.ResponseWriter, r *http.Request) error {
	if err := paramsOf(r).unknown(); err != nil {
		return err
	}
	all, err := s.portsFor(s.access(r))
	return answer(w, localapi.Ports{SchemaVersion: localapi.SchemaVersion, Ports: all}, err)
}

// portsFor returns what userPorts answers. A socket that several processes of a program
// have open is there once.
func (s *Server) portsFor(access term.Access) ([]localapi.UserPort, error) {
	held, err := s.listeners()
	if err != nil {
		return nil, err
	}
	all := []localapi.UserPort{}
	for _, l := range held {
		h, seen := seenIn(access, l.In)
		if !seen && access.Actor() != term.User {
			continue
		}
		p := localapi.UserPort{Listening: listeningOf(l.Listener), Outside: len(l.In) == 0}
		if seen {
			p.Terminal, p.Name = string(h.ID()), h.Info().Name
		}
		same := func(o localapi.UserPort) bool {
			return o.Port == p.Port && o.Address == p.Address && o.Terminal == p.Terminal && (seen || o.Pid == p.Pid)
		}
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Pid = min(all[i].Pid, p.Pid)
			continue
		}
		all = append(all, p)
	}
	s.describePrograms(access, all)
	slices.SortFunc(all, func(a, b localapi.UserPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Pid, b.Pid))
	})
	return all, nil
}

// listeners returns what this user's programs listen on, in whichever terminals.
func (s *Server) listeners() ([]proc.Held, error) {
	held, err := proc.AllListeners(running(s.opts.Access(term.User).List()...))
	if err != nil {
		return nil, fmt.Errorf("listening ports: %w", err)
	}
	return held, nil
}

// seenIn returns the innermost of the terminals, if the actor may see it.
func seenIn(access term.Access, in []string) (h term.Handle, seen bool) {
	if len(in) == 0 {
		return h, false
	}
	h, err := access.Terminal(term.ID(in[len(in)-1]))
	return h, err == nil
}

// describePrograms completes ports with their programs and checkouts.
func (s *Server) describePrograms(access term.Access, all []localapi.UserPort) {
	pids := make([]int, len(all))
	for i, p := range all {
		pids[i] = p.Pid
	}
	own, dirs := proc.Directories(pids), make([]string, len(all))
	for i, p := range all {
		dirs[i] = own[p.Pid]
		if h, err := access.Terminal(term.ID(p.Terminal)); err == nil && dirs[i] == "" {
			dirs[i] = h.Info().Cwd
		}
	}
	checkouts := s.opts.Checkouts.Known(dirs...)
	for i := range all {
		p := &all[i]
		h, _ := access.Terminal(term.ID(p.Terminal)) // of an error, what is shown stays as it is
		p.Command = shownArgv(proc.Argv(p.Pid), h.Redact)
		p.Directory = h.Redact(strings.ToValidUTF8(dirs[i], "\uFFFD"))
		if c, ok := checkouts[dirs[i]]; ok && p.Directory == dirs[i] { // of a masked one, nothing tells it
			c.Show(h.Redact)
			p.Checkout = &c
		}
	}
}

// Bounds of a program's arguments in a list.
const (
	maxShownArgs = 50
	maxShownArg  = 500 // bytes
)

// shownArgv returns as much of the arguments as a list shows.
func shownArgv(argv []string, show func(string) string) (out []string) {
	for _, arg := range argv[:min(len(argv), maxShownArgs)] {
		out = append(out, clip.Marked(show(strings.ToValidUTF8(arg, "\uFFFD")), maxShownArg))
	}
	return out
}

// PortUsers implements agenttools.Locator.
func (a *agentTerminals) PortUsers(ports []int) map[int]string {
	if a.access.Actor().At() != "" || len(ports) == 0 {
		return nil // a host is told nothing of this machine's programs
	}
	held, err := a.server.listeners()
	if err != nil {
		return nil
	}
	users := map[int]string{}
	for _, port := range ports {
		users[port] = a.portUser(port, held)
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
		return "another program of this user"
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

// homely writes a directory below the person's home as they do.
func homely(dir string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" {
		return dir
	}
	if rest, ok := strings.CutPrefix(dir, home); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		return "~" + rest
	}
	return dir
}
