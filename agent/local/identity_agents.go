package local

import (
	_ "embed" // of known_agents.txt
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"tether/agent/term"
	"tether/platform/proc"
)

//go:embed known_agents.txt
var knownAgentsText string

// knownAgent is a row of known_agents.txt.
type knownAgent struct {
	name, argument string
	programs, dirs []string
}

// knownAgents returns the table, which TestKnownAgents checks.
var knownAgents = sync.OnceValue(func() (all []knownAgent) {
	for line := range strings.Lines(knownAgentsText) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 5 || line[0] == '#' {
			continue
		}
		for i := range f {
			if f[i] == "-" {
				f[i] = ""
			}
		}
		all = append(all, knownAgent{name: f[0], programs: strings.Fields(f[1]), dirs: strings.Fields(f[2]), argument: f[3]})
	}
	return all
})

// Identity holds the person's changes to the tables of programs, [identity] of the
// configuration. It is safe for concurrent use. The zero value changes nothing.
type Identity struct{ lists atomic.Pointer[identityLists] }

// identityLists are names of programs as [program] returns them, or whole paths.
type identityLists struct{ mine, agents []string }

// Set replaces the names or paths of programs that are the person's own, and of those
// that are agents.
func (i *Identity) Set(mine, agents []string) {
	i.lists.Store(&identityLists{mine: slices.Clone(mine), agents: slices.Clone(agents)})
}

// now returns the present lists.
func (i *Identity) now() identityLists {
	if l := i.lists.Load(); l != nil {
		return *l
	}
	return identityLists{}
}

// has reports whether a list names a process, by a name or by a path of its program. On
// Windows paths may be written either way.
func has(list []string, p proc.Ancestor) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		entry = strings.ReplaceAll(entry, `\`, "/")
		if strings.Contains(entry, "/") {
			return slices.Contains(pathsOf(p), strings.ToLower(entry))
		}
		return slices.Contains(namesOf(p), strings.ToLower(entry))
	})
}

// knownAgent returns the name of the known agent that a process is, or "".
func (e *evidence) knownAgent(p proc.Ancestor) string {
	lists := e.lists
	for _, entry := range lists.agents {
		if has([]string{entry}, p) {
			return principalOf(path.Base(strings.ReplaceAll(entry, `\`, "/")))
		}
	}
	if k := rowOf(p); k != nil && !slices.Contains(lists.mine, k.name) && !has(lists.mine, p) {
		return k.name
	}
	return ""
}

// mine reports whether the configuration says that a program is the person's own: by its
// name or path, or by that of the known agent that it is.
func (e *evidence) mine(p proc.Ancestor) bool {
	if len(e.lists.mine) == 0 {
		return false
	}
	k := rowOf(p)
	return k != nil && slices.Contains(e.lists.mine, k.name) || has(e.lists.mine, p)
}

// rowOf returns the known agent that a process is, or nil. Also what the process calls
// itself counts, because to be an agent gives no rights.
func rowOf(p proc.Ancestor) *knownAgent {
	names, files := append(namesOf(p), program(p.Argv)), pathsOf(p)
	all := knownAgents()
	for i := range all {
		k := &all[i]
		if k.argument != "" && !slices.Contains(p.Argv, k.argument) {
			continue
		}
		if slices.ContainsFunc(names, func(name string) bool { return oneOf(k.programs, name) }) || slices.ContainsFunc(files, k.ships) {
			return k
		}
	}
	return nil
}

// ships reports whether a path leads through a directory of the agent's package.
func (k *knownAgent) ships(file string) bool {
	return slices.ContainsFunc(k.dirs, func(dir string) bool {
		i := strings.Index(file, "/"+dir)
		return i >= 0 && (strings.HasPrefix(file[i+1+len(dir):], "/") || strings.HasPrefix(file[i+1+len(dir):], "-"))
	})
}

// principalOf returns a name that a principal may have, for a program's name.
func principalOf(name string) string {
	name = strings.Map(func(r rune) rune {
		if notPrincipal(r) {
			return '-'
		}
		return r
	}, name)
	name = name[:min(len(name), maxPrincipal)]
	if checkPrincipal(name) != nil {
		return unreadAgent
	}
	return name
}

// listed looks for a known agent.
func (e *evidence) listed(p proc.Ancestor) (Caller, bool) {
	name := e.knownAgent(p)
	if name == "" {
		return Caller{}, false
	}
	return Caller{Actor: term.Agent(name), Why: fmt.Sprintf("%s is the known agent %s", processName(p), name), renames: true}, true
}

// besides looks for a known agent that leads the session or the process group of a caller
// that has lost its parents.
func (e *evidence) besides() (Caller, bool) {
	for _, p := range e.beside {
		if c, ok := e.listed(p); ok {
			c.Why = fmt.Sprintf("%s runs in the session or process group of %s", processName(e.line[0]), c.Why)
			return c, true
		}
	}
	return Caller{}, false
}

// vendorMarked looks for marks that agents set for the programs that they run. The
// terminals of an emulator, a multiplexer or an editor that an agent has started once are
// the person's all the same, although their programs have its marks: there only marks
// count that the first program of the terminal does not have.
func (e *evidence) vendorMarked(line []proc.Ancestor) (Caller, bool) {
	if !slices.ContainsFunc(line, func(p proc.Ancestor) bool { return len(p.Vendors) > 0 }) {
		return Caller{}, false
	}
	var inherited []string
	if len(e.leader) > 0 && line[0].Pid == e.line[0].Pid && e.atPersons(e.leader) {
		inherited = e.leader[0].Vendors
	}
	end := len(line)
	for i, p := range line {
		if p.Pid == e.daemon || e.personsTerminal(p) || e.atPersons(line[i:]) {
			end, inherited = i, append(inherited, p.Vendors...)
			break
		}
	}
	for _, p := range line[:end] {
		for _, mark := range p.Vendors {
			if !slices.Contains(inherited, mark) {
				return Caller{Actor: term.Agent(markedAgent(mark)), Why: fmt.Sprintf("the environment of %s has the mark %.80q", processName(p), mark), renames: true}, true
			}
		}
	}
	return Caller{}, false
}

// atPersons reports whether the first process of a lineage leads the session of a
// terminal that a known emulator, multiplexer or editor has made.
func (e *evidence) atPersons(line []proc.Ancestor) bool {
	p := line[0]
	if p.TTY == 0 || p.Pid != p.Session {
		return false
	}
	makers, _ := e.makers(p, p, line[1:])
	return len(makers) > 0 && !slices.ContainsFunc(makers, func(maker []proc.Ancestor) bool {
		return len(maker) == 0 || !e.showsTerminals(maker[0]) && !e.mine(maker[0])
	})
}

// markedAgent returns the agent that sets a mark. The value of one that several set is a
// name, perhaps with a version: claude-code_2-1-197.
func markedAgent(mark string) string {
	name, value, _ := strings.Cut(mark, "=")
	for _, v := range proc.VendorMarks() {
		if v.Var == name && v.Agent != "" {
			return v.Agent
		}
	}
	if i := strings.IndexAny(value, "_@/ "); i >= 0 {
		value = value[:i]
	}
	value = strings.ToLower(value)
	for _, k := range knownAgents() {
		if k.name == value || oneOf(k.programs, value) {
			return k.name
		}
	}
	return principalOf(value)
}
