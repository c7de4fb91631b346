package local

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tether/agent/devserver"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/clip"
	"tether/platform/proc"
	"tether/screen"
)

// userPorts answers with the ports on which this user's programs listen, or only with
// those in no terminal. An agent is told of those in terminals that it sees, and of those
// in none what Options.Unseen says.
func (s *Server) userPorts(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	unseen := q.Get("unseen") == "1"
	if err := q.unknown(); err != nil {
		return err
	}
	var panes map[int]string
	if unseen && ActorFrom(r.Context()) == term.User {
		panes = s.panesByPid(r.Context())
	}
	all, err := s.portsFor(s.access(r), panes)
	if unseen {
		all = slices.DeleteFunc(all, func(p localapi.UserPort) bool { return !p.Outside || p.Pid == os.Getpid() })
	}
	return answer(w, localapi.Ports{SchemaVersion: localapi.SchemaVersion, Ports: all}, err)
}

// portsFor returns what userPorts answers. For agents, which may ask often, it is as of
// the last second. panes are as in look.
func (s *Server) portsFor(access term.Access, panes map[int]string) ([]localapi.UserPort, error) {
	look := s.look
	if access.Actor() != term.User {
		look = s.lookLately
	}
	found, err := look()
	if err != nil {
		return nil, err
	}
	found.panes = panes
	return s.portsOf(access, found), nil
}

// portsOf returns those of the sockets that an actor is told of. A socket that several
// processes of a program have open is there once.
func (s *Server) portsOf(access term.Access, found look) []localapi.UserPort {
	type key struct {
		port              int
		address, terminal string
	}
	all, known := []localapi.UserPort{}, map[key]int{}
	outside := s.outsideFor(access, found)
	for _, l := range found.held {
		h, seen := seenIn(access, l.In)
		p := localapi.UserPort{Listening: listeningOf(l.Listener), Outside: len(l.In) == 0}
		if !seen && !outside.person && !(p.Outside && outside.tells(l)) {
			continue
		}
		if seen {
			p.Terminal, p.Name = string(h.ID()), h.Info().Name
		}
		at := key{p.Port, p.Address, p.Terminal}
		if i, again := known[at]; again {
			all[i].Pid = min(all[i].Pid, p.Pid)
			continue
		}
		known[at] = len(all)
		all = append(all, p)
	}
	s.describePrograms(access, outside, found.dirs, all)
	slices.SortFunc(all, func(a, b localapi.UserPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Pid, b.Pid))
	})
	return all
}

// look is a look at all processes of this user.
type look struct {
	held []proc.Held    // what they listen on, in whichever terminals
	dirs map[int]string // directories of those that listen, and of terminals' programs
	// panes are those of other programs by their first processes; nil if nobody asked.
	panes map[int]string
}

func (s *Server) look() (l look, err error) {
	terminals := devserver.Running(s.opts.Access(term.User).List()...)
	if l.held, err = proc.AllListeners(terminals); err != nil {
		return l, fmt.Errorf("listening ports: %w", err)
	}
	l.dirs = directoriesOf(l.held, terminals)
	return l, nil
}

// directoriesOf returns the directories of programs that listen, and of terminals'.
func directoriesOf(held []proc.Held, terminals []proc.Terminal) map[int]string {
	var pids []int
	for _, l := range held {
		pids = append(pids, l.Pid)
	}
	for _, t := range terminals {
		pids = append(pids, t.Pid)
	}
	slices.Sort(pids)
	return proc.Directories(slices.Compact(pids))
}

// lookFor is how long a look holds for agents.
const lookFor = time.Second

// lately is the last look for agents. turn has a value while nobody looks.
type lately struct {
	turn chan struct{}

	// Of whoever has the turn.
	at time.Time
	of string // the running terminals
	look
}

// lookLately is a look of the last second, if the same terminals ran then: a terminal's
// programs must never seem to be in none.
func (s *Server) lookLately() (look, error) {
	<-s.lately.turn
	defer func() { s.lately.turn <- struct{}{} }()
	var of strings.Builder
	for _, t := range devserver.Running(s.opts.Access(term.User).List()...) {
		of.WriteString(t.ID + " ")
	}
	if time.Since(s.lately.at) < lookFor && s.lately.of == of.String() {
		return s.lately.look, nil
	}
	found, err := s.look()
	if err == nil {
		s.lately.at, s.lately.of, s.lately.look = time.Now(), of.String(), found
	}
	return found, err
}

// seenIn returns the innermost of the terminals, if the actor may see it.
func seenIn(access term.Access, in []string) (h term.Handle, seen bool) {
	if len(in) == 0 {
		return h, false
	}
	h, err := access.Terminal(term.ID(in[len(in)-1]))
	return h, err == nil
}

// describePrograms completes ports with their programs and checkouts. own has the
// programs' directories.
func (s *Server) describePrograms(access term.Access, outside *outside, own map[int]string, all []localapi.UserPort) {
	dirs, first := make([]string, len(all)), map[int]int{}
	for i := range all {
		p, pid := &all[i], all[i].Pid
		if n, again := first[pid]; again && p.Outside { // it listens on several
			socket := p.Listening
			*p = all[n]
			p.Listening, p.Pid, dirs[i] = socket, all[n].Pid, dirs[n]
			continue
		}
		first[pid] = i
		dirs[i] = own[pid]
		h, err := access.Terminal(term.ID(p.Terminal)) // of an error, what is shown stays as it is
		if err == nil && dirs[i] == "" {
			dirs[i] = h.Info().Cwd
		}
		if !p.Outside {
			p.Command = shownArgv(proc.Argv(pid), h.Redact)
		} else if !outside.describe(p, dirs[i]) {
			dirs[i] = ""
		}
		p.Directory = h.Redact(strings.ToValidUTF8(dirs[i], "\uFFFD"))
	}
	checkouts := s.opts.Checkouts.Known(slices.Compact(slices.Sorted(slices.Values(dirs)))...)
	for i := range all {
		p := &all[i]
		c, ok := checkouts[dirs[i]]
		if !ok || p.Directory != dirs[i] || p.Outside && outside.never(c.Worktree, c.Repository) { // of a masked one, nothing tells it
			continue
		}
		h, _ := access.Terminal(term.ID(p.Terminal))
		show := h.Redact
		if p.Outside {
			show = outside.mask
		}
		c.Show(show)
		p.Checkout = &c
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
