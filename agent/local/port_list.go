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

	"tether/agent/config"
	"tether/agent/devserver"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/proc"
)

// The list of ports on which this user's programs listen. Unseen ones are those of
// programs in no terminal: what a person has started elsewhere.

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

// outside says what one actor is told.
type outside struct {
	server *Server
	person bool     // everything is told
	how    string   // of the words of config.Agents.Unseen
	under  []string // directories at or below which an agent is told a program's
	panes  map[int]string
}

// outsideFor returns what an actor is told. Hosts and all who act there are told nothing,
// nor are agents without a network, which could not use a port.
func (s *Server) outsideFor(access term.Access, found look) *outside {
	o := &outside{server: s, how: cmp.Or(s.opts.Unseen, config.UnseenOff), panes: found.panes}
	switch actor := access.Actor(); {
	case actor == term.User:
		o.person = true
	case actor.Role != term.RoleAgent || actor.At() != "" || s.noNetwork(actor):
		o.how = config.UnseenOff
	case o.how == config.UnseenPorts:
		o.under = openDirectories(access, found.dirs)
	}
	return o
}

// noNetwork reports whether an agent's programs are in a sandbox without a network.
func (s *Server) noNetwork(actor term.Actor) bool {
	box := s.opts.Policy.Sandbox(actor)
	return box.Kind != "" && box.NoNetwork
}

// openDirectories returns the directories of an agent's terminals as it sees them. dirs
// has those of processes. A terminal that the agent has started itself does not count at
// the root or above the home directory: from there it would open every directory.
func openDirectories(access term.Access, dirs map[int]string) (some []string) {
	home, _ := os.UserHomeDir()
	for _, h := range access.List() {
		i := h.Info()
		of := []string{i.Cwd}
		if dir := dirs[devserver.Processes(i).Pid]; i.Exit == nil && h.Redact(dir) == dir {
			of = append(of, dir)
		}
		for _, dir := range of {
			persons := i.Owner == term.User && !i.Promoted
			if filepath.IsAbs(dir) && (persons || filepath.Dir(dir) != dir && !within(dir, home)) {
				some = append(some, dir)
			}
		}
	}
	return some
}

// within reports whether a directory is top or below it, by their names.
func within(top, dir string) bool {
	rel, err := filepath.Rel(top, dir)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// tells reports whether the actor is told of a socket of a program in no terminal. An
// agent is not told of this daemon's, nor of what was started in a terminal that has
// exited: it might not see that.
func (o *outside) tells(l proc.Held) bool {
	return o.person || o.how != config.UnseenOff && l.Pid != os.Getpid() && !slices.ContainsFunc(l.Marks, func(id string) bool {
		_, err := o.server.opts.Access(term.User).Terminal(term.ID(id))
		return err == nil
	})
}

// tellsDirectory reports whether the actor is told that a program is in a directory.
func (o *outside) tellsDirectory(dir string) bool {
	switch {
	case o.person || dir == "":
		return dir != ""
	case o.how != config.UnseenFull && !slices.ContainsFunc(o.under, func(top string) bool { return within(top, dir) }):
		return false
	}
	return o.mask(dir) == dir && !o.never(dir)
}

// never reports whether the actor must not be told of the directories: a rule never lends
// from one of them, or that is not known yet.
func (o *outside) never(dirs ...string) bool {
	if o.person || o.server.opts.Never == nil {
		return false
	}
	never, settled := o.server.opts.Never("", dirs...)
	return never || settled != nil
}

// mask returns a text as the actor is shown it.
func (o *outside) mask(text string) string {
	if o.person || o.server.opts.Mask == nil {
		return text
	}
	return o.server.opts.Mask(text)
}

// describe completes the port of a program, whose directory is dir, and reports whether
// the actor is told that.
func (o *outside) describe(p *localapi.UserPort, dir string) (told bool) {
	told = o.tellsDirectory(dir)
	argv := proc.Argv(p.Pid)
	if told || o.person {
		if line := proc.Lineage(p.Pid); len(line) > 0 {
			p.Since, p.Adopt = line[0].Started(), o.pane(line)
			if o.person {
				p.Restart = shownArgv(jobOf(line), o.mask)
			}
		}
	}
	if o.person {
		p.Command = shownArgv(argv, o.mask)
		return told
	}
	p.Command, p.Pid = shownArgv(programName(argv), o.mask), 0
	return told
}
