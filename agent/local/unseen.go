package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"tether/agent/adopt"
	"tether/agent/config"
	"tether/agent/devserver"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/proc"
	"tether/screen"
)

// Unseen ports are those of programs in no terminal: what a person has started elsewhere.
// They are a part of the list of ports (port_users.go). This file has what an actor is
// told of them.

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

// maxTitle bounds the words of a title that a program gives itself.
const maxTitle = 3

// programName returns what a program is, without directories and arguments: its name, and
// that of the script that an interpreter runs, as in node vite.
func programName(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if first, _, title := strings.Cut(argv[0], " "); title && len(argv) == 1 && !strings.ContainsAny(first, `/\`) {
		words := strings.Fields(argv[0])
		if n := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, `/\=`) || strings.HasPrefix(w, "-") }); n > 0 {
			words = words[:n]
		}
		return words[:min(len(words), maxTitle)]
	}
	base := func(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
	script := scriptOf(proc.Ancestor{Argv: argv})
	if i := slices.Index(argv, "-m"); i > 0 && i+1 < len(argv) && strings.HasPrefix(argv[i+1], script+".") {
		script = argv[i+1] // all of the module's name
	}
	if script == "" {
		return []string{base(argv[0])}
	}
	return []string{base(argv[0]), base(script)}
}

// pane returns the pane that a process is in, as tether adopt takes it, "" if none is
// known.
func (o *outside) pane(line []proc.Ancestor) string {
	for _, a := range line {
		if name := o.panes[a.Pid]; name != "" {
			return name
		}
	}
	return tmuxPane(line)
}

// panesByPid returns the panes that can be adopted, by their first processes. Other
// programs answer it, so it is not for agents, which may ask often.
func (s *Server) panesByPid(ctx context.Context) map[int]string {
	if s.opts.Adopter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, panesWithin)
	defer cancel()
	panes, _, _ := s.opts.Adopter.Panes(ctx) // of those that cannot be listed, the list says nothing
	all := map[int]string{}
	for _, p := range panes {
		if p.Pid > 1 && p.Why == "" {
			all[p.Pid] = p.Target.String()
		}
	}
	return all
}

// panesWithin bounds how long a list of ports waits for other programs.
const panesWithin = 2 * time.Second

// tmuxPane returns the pane as the process's environment has it, if its server is among
// the ancestors: what has left a pane keeps its variables.
func tmuxPane(line []proc.Ancestor) string {
	parts := strings.Split(line[0].Tmux, ",") // socket, process number, session
	if len(parts) < 3 || !adopt.IsTmuxPane(line[0].Pane) {
		return ""
	}
	socket := strings.Join(parts[:len(parts)-2], ",")
	server, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil || !slices.ContainsFunc(line[1:], func(a proc.Ancestor) bool { return a.Pid == server }) {
		return ""
	}
	target := adopt.Target{Program: "tmux", Pane: line[0].Pane}
	switch {
	case filepath.Base(socket) == "default":
	case filepath.IsAbs(socket) && isPlain(socket): // people paste the command that it becomes a part of
		target.Server = socket
	default:
		return ""
	}
	return target.String()
}

// jobOf returns the command to which a process belongs, as far as it is known how to give
// it again: what was typed at a shell, else the process's own arguments.
func jobOf(line []proc.Ancestor) []string {
	argv := line[0].Argv
	for _, a := range line {
		if a.Pid == line[0].Group && a.Pid != a.Session {
			argv = a.Argv
		}
	}
	if len(argv) != 1 {
		return argv
	}
	words := strings.Fields(argv[0])
	if len(words) > 1 && slices.ContainsFunc(words, func(w string) bool { return !isPlain(w) }) {
		return nil // a title, which is no command
	}
	return words
}

// isPlain reports whether a word is the same in every shell.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._/:@=+-", r)
	})
}

// Unseen implements agenttools.Locator.
func (a *agentTerminals) Unseen() (all []agenttools.UnseenPort) {
	ports, err := a.server.portsFor(a.access, nil)
	if err != nil || a.access.Actor() == term.User {
		return nil
	}
	for _, p := range ports {
		one := agenttools.UnseenPort{Port: p.Port, Program: strings.Join(p.Command, " "), Cwd: p.Directory, Checkout: p.Checkout}
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
